#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/graph.h>
#include <taeda/csrc/distributed/group_sender.h>
#include <taeda/csrc/distributed/hash_store.h>
#include <taeda/csrc/distributed/reducer.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/sum.h>

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <thread>

#include "../errors.h"

namespace taeda::distributed {
namespace {

constexpr size_t kParameters = 11;
constexpr int kRanks = 3;
constexpr int kSteps = 500;  // of each of four kinds

// Leaves of 1, 4, 7, ... elements.
std::vector<Tensor> leaves() {
  std::vector<Tensor> made;
  for (size_t i = 0; i < kParameters; ++i) {
    const auto n = static_cast<int64_t>(1 + 3 * i);
    Tensor t = make_tensor("test", IntArrayRef({n}), kFloat);
    std::fill_n(t.mutable_data<float>(), n, 1.0f);
    autograd::set_requires_grad(t, true);
    made.push_back(t);
  }
  return made;
}

// The sum of factor * parameter over the numbers; gradients are the factor, and
// arrive in the reverse order.
Tensor loss_of(const std::vector<Tensor>& parameters,
               const std::vector<size_t>& numbers,
               double factor) {
  Tensor total;
  for (size_t i : numbers) {
    Tensor term = ops::sum(ops::mul(parameters[i], Scalar(factor)));
    total = total.defined() ? ops::add(total, term) : term;
  }
  return total;
}

std::vector<size_t> all_numbers() {
  std::vector<size_t> numbers(kParameters);
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  return numbers;
}

ReducerOptions small_buckets() {
  ReducerOptions options;
  options.limits = {20, 100};
  return options;
}

// Keeps what it was asked to send; the average of one rank.
struct Recorded final : BucketSender {
  Wait send(const Bucket& bucket) override {
    sent.push_back(bucket.index);
    return [this] { ++waited; };
  }
  Wait sum(const Tensor&) override {
    ++summed;
    return [] {};
  }
  std::vector<size_t> sent;
  size_t waited = 0;
  size_t summed = 0;
};

struct Fixture {
  explicit Fixture(const ReducerOptions& options)
      : reducer(Reducer::make(parameters, options, sender)) {}
  void step(const std::vector<size_t>& numbers) {
    const Tensor loss = loss_of(parameters, numbers, 2.0);
    reducer->check_finished();
    reducer->prepare(TensorList(&loss, 1));
    autograd::backward(TensorList(&loss, 1));
  }
  std::vector<Tensor> parameters = leaves();
  std::shared_ptr<Recorded> sender = std::make_shared<Recorded>();
  std::shared_ptr<Reducer> reducer;
};

TEST(Reducer, SendsInOneOrderWhateverArrivesFirst) {
  Fixture f(small_buckets());
  std::vector<size_t> numbers = all_numbers();
  std::mt19937 random(7);
  const size_t buckets = f.reducer->bucket_bytes().size();
  ASSERT_GT(buckets, 3u);
  for (int step = 0; step < 20; ++step) {
    std::shuffle(numbers.begin(), numbers.end(), random);
    f.sender->sent.clear();
    f.sender->waited = 0;
    f.step(numbers);
    ASSERT_EQ(f.sender->sent.size(), buckets);
    EXPECT_TRUE(std::is_sorted(f.sender->sent.begin(), f.sender->sent.end()));
    EXPECT_EQ(f.sender->waited, buckets);
  }
  EXPECT_EQ(f.sender->summed, 0u);
}

TEST(Reducer, BucketsAreCutInTheOrderOfArrival) {
  Fixture f(small_buckets());
  EXPECT_FALSE(f.reducer->take_order().has_value());
  std::vector<size_t> numbers = all_numbers();
  std::swap(numbers[2], numbers[8]);
  f.step(numbers);
  std::reverse(numbers.begin(), numbers.end());
  EXPECT_EQ(f.reducer->take_order(), numbers);
  EXPECT_FALSE(f.reducer->take_order().has_value());
}

TEST(Reducer, GradientsAreViewsOfBuckets) {
  ReducerOptions options = small_buckets();
  options.views = true;
  Fixture f(options);
  f.step(all_numbers());
  for (const Tensor& p : f.parameters) {
    EXPECT_TRUE(autograd::grad_of(p).is_view());
  }
  // They are added up where they are.
  f.step(all_numbers());
  EXPECT_EQ(autograd::grad_of(f.parameters[3]).const_data<float>()[0], 4.0f);
}

TEST(Reducer, TellsWhichParametersWereLeftOut) {
  Fixture f(small_buckets());
  f.step({0, 1, 2, 4, 5, 6, 7, 8, 10});
  expect_throws(ErrorKind::Runtime,
                "did not receive grad for rank 0: 3 9",
                [&] { f.step(all_numbers()); });
}

TEST(Reducer, APassThatFailsIsUnfinished) {
  struct Failing final : autograd::TensorHook {
    void call(Tensor&) override {
      throw_error(ErrorKind::Value, "no gradient today");
    }
  };
  Fixture f(small_buckets());
  autograd::register_hook(f.parameters[5], std::make_shared<Failing>());
  expect_throws(
      ErrorKind::Value, "no gradient today", [&] { f.step(all_numbers()); });
  expect_throws(ErrorKind::Runtime,
                "Expected to have finished reduction in the prior iteration",
                [&] { f.step(all_numbers()); });
}

TEST(Reducer, AStaticGraphMayNotChange) {
  ReducerOptions options = small_buckets();
  options.static_graph = true;
  Fixture f(options);
  const std::vector<size_t> some{0, 2, 4, 6, 8, 10};
  for (int step = 0; step < 3; ++step) f.step(some);
  EXPECT_EQ(f.sender->summed, 1u);
  EXPECT_FALSE(autograd::grad_of(f.parameters[1]).defined());
  expect_throws(ErrorKind::Runtime,
                "Your training graph has changed in this iteration",
                [&] { f.step(all_numbers()); });
}

// It knows from the others what they use, and from its own first pass how often
// it comes to each parameter.
TEST(Reducer, WhoJoinsBeforeItsFirstBatchLearnsAStaticGraphLater) {
  ReducerOptions options = small_buckets();
  options.static_graph = true;
  Fixture f(options);
  f.reducer->shadow();
  const std::vector<size_t> some{0, 2, 4, 6, 8, 10};
  for (int step = 0; step < 3; ++step) f.step(some);
  EXPECT_EQ(f.sender->summed, 1u);
  expect_throws(ErrorKind::Runtime,
                "Your training graph has changed in this iteration",
                [&] { f.step(all_numbers()); });
}

TEST(Reducer, ParametersOutliveIt) {
  std::vector<Tensor> parameters;
  {
    Fixture f(small_buckets());
    parameters = f.parameters;
  }
  const Tensor loss = loss_of(parameters, all_numbers(), 3.0);
  autograd::backward(TensorList(&loss, 1));
  EXPECT_EQ(autograd::grad_of(parameters[0]).const_data<float>()[0], 3.0f);
  EXPECT_EQ(autograd::accumulate_hook(parameters[0]), nullptr);
}

// Many steps of several ranks ------------------------------------------------

// What each rank uses in a step, the same for whoever asks.
std::vector<size_t> used_in(int step, int rank, bool some) {
  std::mt19937 random(static_cast<uint32_t>(1000 * step + rank));
  std::vector<size_t> numbers = all_numbers();
  std::shuffle(numbers.begin(), numbers.end(), random);
  if (some) numbers.resize(1 + random() % kParameters);
  return numbers;
}

double factor_of(int step, int rank) { return 1.0 + (step + rank) % 5; }

void expect_averages(const std::vector<Tensor>& parameters,
                     int step,
                     bool some) {
  std::vector<float> wanted(kParameters);
  std::vector<bool> used(kParameters);
  for (int rank = 0; rank < kRanks; ++rank) {
    for (size_t i : used_in(step, rank, some)) {
      wanted[i] += static_cast<float>(factor_of(step, rank)) / kRanks;
      used[i] = true;
    }
  }
  for (size_t i = 0; i < kParameters; ++i) {
    const Tensor& grad = autograd::grad_of(parameters[i]);
    ASSERT_EQ(grad.defined(), used[i]) << "step " << step << ", " << i;
    if (!used[i]) continue;
    const float* values = grad.const_data<float>();
    EXPECT_FLOAT_EQ(values[0], wanted[i]) << "step " << step << ", " << i;
    EXPECT_FLOAT_EQ(values[grad.numel() - 1], wanted[i]);
  }
}

void train(Group& group, int rank, ReducerOptions options, int steps) {
  // Those of a static graph are the same in each step, in changing order.
  const bool some = options.find_unused;
  std::vector<Tensor> parameters = leaves();
  auto shared = std::shared_ptr<Group>(&group, [](Group*) {});
  options.rank = rank;
  auto reducer =
      Reducer::make(parameters, options, std::make_shared<GroupSender>(shared));
  for (int step = 0; step < steps; ++step) {
    reducer->check_finished();
    // Any order that the ranks agree on.
    if (reducer->take_order()) reducer->set_order(used_in(step, 0, false));
    const Tensor loss =
        loss_of(parameters, used_in(step, rank, some), factor_of(step, rank));
    reducer->prepare(TensorList(&loss, 1));
    autograd::backward(TensorList(&loss, 1));
    expect_averages(parameters, step, some);
    if (testing::Test::HasFatalFailure()) return;
    for (const Tensor& p : parameters) autograd::set_grad(p, Tensor());
  }
}

void train_on_ranks(const char* name,
                    const ReducerOptions& options,
                    int steps) {
  auto store = std::make_shared<HashStore>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Group group({rank, kRanks, name},
                  store,
                  std::chrono::seconds(120),
                  Route::SharedMemory);
      train(group, rank, options, steps);
      group.shut_down();
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(ReducerStress, ChangingOrder) {
  train_on_ranks("order", small_buckets(), kSteps);
}

TEST(ReducerStress, ChangingUnusedParameters) {
  ReducerOptions options = small_buckets();
  options.find_unused = true;
  train_on_ranks("unused", options, kSteps);
}

TEST(ReducerStress, Views) {
  ReducerOptions options = small_buckets();
  options.find_unused = options.views = true;
  train_on_ranks("views", options, kSteps);
}

TEST(ReducerStress, StaticGraph) {
  ReducerOptions options = small_buckets();
  options.static_graph = true;
  train_on_ranks("static", options, kSteps);
}

}  // namespace
}  // namespace taeda::distributed
