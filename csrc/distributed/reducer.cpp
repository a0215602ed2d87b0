#include <taeda/csrc/distributed/reducer.h>

#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/engine.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/sparse_coo_tensor.h>
#include <taeda/gen/ops/zero.h>
#include <taeda/gen/ops/zeros.h>

#include <numeric>
#include <unordered_set>

namespace taeda::distributed {

// Note [A pass of the reducer]
// `prepare` begins it, after the forward pass. The engine tells of each leaf
// that it has come to (add_leaf_end_hook). A gradient is copied into its place
// in a bucket; a bucket that is complete is sent when all before it have been,
// so that all ranks send in one order. Parameters that are known to be unused
// count as arrived when the first other one does. At the end of the pass all
// buckets are waited for, and parameters are given the averages. Where a pass
// breaks off, or leaves a parameter out, buckets remain unsent, and the next
// forward pass raises (check_finished).
//
// The end is that of the pass that computes the outputs' gradients, not of one
// that begins inside of it, where a part is computed again: nodes that made
// outputs tell which that is (watch). A static graph is learned in its first
// pass: arrivals are only counted, since parameters of such a part may come
// several times, and everything is sent at the end. Later passes count down.

namespace {

bool have_same_memory(const Tensor& a, const Tensor& b) {
  return a.layout() == Layout::Strided && a.numel() != 0 &&
         a.const_raw_data() == b.const_raw_data();
}

}  // namespace

struct Reducer::Hook final : autograd::AccumulateHook {
  Hook(const std::shared_ptr<Reducer>& r, size_t n) : reducer(r), number(n) {}
  void call(const Tensor&) override {
    if (auto held = reducer.lock()) held->arrived(number);
  }
  const std::weak_ptr<Reducer> reducer;
  const size_t number;
};

// Stands before a node that made an output.
struct Reducer::Sink final : autograd::NodePreHook {
  Sink(const std::shared_ptr<Reducer>& r, uint64_t p) : reducer(r), pass(p) {}
  void call(autograd::Tensors&) override {
    auto held = reducer.lock();
    if (!held) return;
    const std::lock_guard lock(held->mutex_);
    if (held->active_ && held->pass_ == pass) held->queue_end();
  }
  const std::weak_ptr<Reducer> reducer;
  const uint64_t pass;
};

// Hooks -----------------------------------------------------------------------

Reducer::Reducer(std::vector<Tensor> parameters,
                 ReducerOptions options,
                 std::shared_ptr<BucketSender> sender)
    : parameters_(std::move(parameters)),
      options_(std::move(options)),
      sender_(std::move(sender)),
      seen_(parameters_.size()),
      missing_(parameters_.size()),
      used_(parameters_.size(), true),
      visits_(parameters_.size()) {
  TAEDA_CHECK(!parameters_.empty(), "Reducer: there are no parameters");
  TAEDA_CHECK(!options_.limits.empty(), "Reducer: there are no bucket sizes");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    TAEDA_CHECK(parameters_[i].requires_grad(),
                "Reducer: parameter ",
                i,
                " requires no gradient");
    numbers_.emplace(parameters_[i].impl(), i);
  }
  // Gradients come about in the reverse order of use.
  std::vector<size_t> order(parameters_.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  make_buckets(cut_into_buckets(parameters_, order, options_));
}

std::shared_ptr<Reducer> Reducer::make(std::vector<Tensor> parameters,
                                       ReducerOptions options,
                                       std::shared_ptr<BucketSender> sender) {
  std::shared_ptr<Reducer> made(new Reducer(
      std::move(parameters), std::move(options), std::move(sender)));
  made->add_hooks();
  return made;
}

void Reducer::add_hooks() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.push_back(std::make_shared<Hook>(shared_from_this(), i));
    autograd::add_leaf_end_hook(parameters_[i], hooks_.back());
  }
}

void Reducer::remove_hooks() {
  for (const auto& hook : hooks_) {
    autograd::remove_leaf_end_hook(parameters_[hook->number], hook.get());
  }
  hooks_.clear();
}

Reducer::~Reducer() { remove_hooks(); }

// Before the pass -------------------------------------------------------------

void Reducer::prepare(TensorList outputs) {
  const std::lock_guard lock(mutex_);
  active_ = true;
  has_begun_ = end_is_queued_ = false;
  ++pass_;
  arrivals_.clear();
  next_bucket_ = 0;
  waits_.clear();
  used_wait_ = nullptr;
  for (Bucket& b : buckets_) b.left = b.numbers.size();
  seen_.assign(parameters_.size(), false);
  if (options_.static_graph) {
    visits_left_ = visits_;
  } else if (options_.find_unused) {
    find_missing(outputs);
  }
  watch(outputs);
}

void Reducer::skip() {
  const std::lock_guard lock(mutex_);
  active_ = false;
}

// What no output leads to.
void Reducer::find_missing(TensorList outputs) {
  missing_.assign(parameters_.size(), true);
  size_t left = parameters_.size();
  std::vector<const autograd::Node*> todo;
  std::unordered_set<const autograd::Node*> seen;
  auto reach = [&](const TensorImpl* variable) {
    auto at = numbers_.find(variable);
    if (at == numbers_.end() || !missing_[at->second]) return;
    missing_[at->second] = false;
    --left;
  };
  for (const Tensor& t : outputs) {
    reach(t.impl());
    auto node = autograd::grad_fn(t);  // the tensor holds it
    if (node && seen.insert(node.get()).second) todo.push_back(node.get());
  }
  while (!todo.empty() && left != 0) {
    const autograd::Node* node = todo.back();
    todo.pop_back();
    reach(node->accumulated_variable());
    for (const autograd::Edge& edge : node->next_edges()) {
      if (edge.valid() && seen.insert(edge.node.get()).second) {
        todo.push_back(edge.node.get());
      }
    }
  }
}

void Reducer::watch(TensorList outputs) {
  auto sink = std::make_shared<Sink>(shared_from_this(), pass_);
  for (const Tensor& t : outputs) {
    if (auto node = autograd::grad_fn(t)) {
      node->extra().pre_hooks.push_back(sink);
    }
  }
}

// During the pass -------------------------------------------------------------

void Reducer::arrived(size_t number) {
  const std::lock_guard lock(mutex_);
  if (!active_) return;
  const bool is_new = !learns_graph() || visits_[number] == 0;
  if (is_first_order_ && is_new) arrivals_.push_back(number);
  const bool is_first = !std::exchange(has_begun_, true);
  // Of outputs that were not found in what the model returned.
  if (!end_is_queued_) queue_end();
  if (learns_graph()) {
    ++visits_[number];
    return;
  }
  if (is_first) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (missing_[i]) ready(i);
    }
  }
  if (options_.static_graph && --visits_left_[number] > 0) return;
  ready(number);
}

void Reducer::ready(size_t number) {
  if (seen_[number]) fail_twice(number);
  seen_[number] = true;
  const Home home = homes_[number];
  Bucket& bucket = buckets_[home.bucket];
  take(bucket, home.place);
  --bucket.left;
  send_complete();
}

// A parameter's gradient into the bucket. That of an unused one is what other
// passes have added up, and the same at all ranks, or nothing.
void Reducer::take(Bucket& bucket, size_t place) {
  GradModeGuard no_grad(false);
  const Tensor& parameter = parameters_[bucket.numbers[place]];
  const Tensor& grad = autograd::grad_of(parameter);
  if (bucket.is_sparse) {
    TAEDA_CHECK(grad.defined() && grad.layout() == Layout::Sparse,
                "DistributedDataParallel: the gradient of ",
                named(bucket.numbers[place]),
                " was expected to be sparse, and is ",
                grad.defined() ? "dense" : "not there");
    bucket.buffer = grad;
    return;
  }
  const Tensor& view = bucket.views[place];
  if (!grad.defined()) {
    ops::zero_(view);
  } else if (!have_same_memory(grad, view)) {
    ops::copy_(view, grad);
    // The memory of what was there is given back now and not at the end.
    if (options_.views) autograd::set_grad(parameter, view);
  }
}

void Reducer::send_complete() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].left == 0) {
    GradModeGuard no_grad(false);
    waits_.push_back(sender_->send(buckets_[next_bucket_]));
    if (++next_bucket_ < buckets_.size()) continue;
    if (tells_used()) {
      used_flags_ = used_here();
      used_wait_ = sender_->sum(used_flags_);
    }
  }
}

void Reducer::queue_end() {
  if (std::exchange(end_is_queued_, true)) return;
  autograd::queue_callback([self = shared_from_this()] { self->end(); });
}

// Of a static graph, at the end of its first pass.
void Reducer::learn_graph() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    missing_[i] = visits_[i] == 0;
    ready(i);
  }
  graph_is_known_ = next_bucket_ == buckets_.size();
}

Tensor Reducer::used_here() const {
  const auto n = static_cast<int64_t>(parameters_.size());
  Tensor flags = ops::zeros({n}, kInt);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    flags.mutable_data<int32_t>()[i] = missing_[i] ? 0 : 1;
  }
  if (options_.own_device.is_cpu()) return flags;
  return ops::_to_copy(flags, std::nullopt, std::nullopt, options_.own_device);
}

void Reducer::take_used(const Tensor& flags) {
  Tensor here = flags;
  if (!flags.is_cpu()) {
    here = ops::_to_copy(
        flags, std::nullopt, std::nullopt, Device(DeviceType::CPU));
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    used_[i] = here.const_data<int32_t>()[i] != 0;
  }
  use_is_known_ = options_.static_graph;
}

// At its end ------------------------------------------------------------------

void Reducer::end() {
  const std::lock_guard lock(mutex_);
  if (!active_) return;
  GradModeGuard no_grad(false);
  end_is_queued_ = false;
  if (learns_graph() && has_begun_) learn_graph();
  if (next_bucket_ < buckets_.size()) return;
  active_ = false;
  for (auto& wait : waits_) std::exchange(wait, nullptr)();
  if (used_wait_) {
    std::exchange(used_wait_, nullptr)();
    take_used(std::exchange(used_flags_, Tensor()));
  }
  for (Bucket& b : buckets_) receive(b);
  has_finished_ = true;
}

void Reducer::receive(Bucket& bucket) {
  // The gradient was the buffer, and is to be held by the parameter alone.
  if (bucket.is_sparse) return bucket.buffer.reset();
  for (size_t i = 0; i < bucket.numbers.size(); ++i) {
    if (!used_[bucket.numbers[i]]) continue;
    const Tensor& parameter = parameters_[bucket.numbers[i]];
    const Tensor& grad = autograd::grad_of(parameter);
    const Tensor& view = bucket.views[i];
    if (options_.views) {
      if (!grad.defined() || !have_same_memory(grad, view)) {
        autograd::set_grad(parameter, view);
      }
    } else if (grad.defined()) {
      ops::copy_(grad, view);
    } else {
      autograd::set_grad(parameter, ops::_to_copy(view, parameter.dtype()));
    }
  }
}

// No rows of a table.
static Tensor no_rows(const Tensor& like) {
  DimVector sizes(like.sizes().begin(), like.sizes().end());
  sizes[0] = 0;
  const Tensor indices = ops::zeros({1, 0}, kLong, std::nullopt, like.device());
  return ops::sparse_coo_tensor(
      indices,
      ops::zeros(sizes, like.dtype(), std::nullopt, like.device()),
      like.sizes());
}

void Reducer::shadow() {
  const std::lock_guard lock(mutex_);
  GradModeGuard no_grad(false);
  std::vector<Bucket> stand_ins;
  std::vector<BucketSender::Wait> waits;
  for (const Bucket& b : buckets_) {
    stand_ins.push_back(make_bucket(b.numbers));
    stand_ins.back().index = b.index;
    stand_ins.back().is_last = b.is_last;
    if (b.is_sparse) {
      stand_ins.back().buffer = no_rows(parameters_[b.numbers[0]]);
    }
    waits.push_back(sender_->send(stand_ins.back()));
  }
  if (tells_used()) {
    missing_.assign(parameters_.size(), true);
    const Tensor flags = used_here();
    sender_->sum(flags)();
    take_used(flags);
  }
  for (const auto& wait : waits) wait();
  has_finished_ = true;
}

}  // namespace taeda::distributed
