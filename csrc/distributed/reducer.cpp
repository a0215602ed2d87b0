#include <taeda/csrc/distributed/reducer.h>

#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/engine.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/sparse_coo_tensor.h>
#include <taeda/gen/ops/zero.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>
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

std::unique_lock<std::recursive_mutex> locked(std::recursive_mutex& mutex) {
  return std::unique_lock(mutex);
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : between) + word;
  }
  return text;
}

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
    auto lock = locked(held->mutex_);
    if (held->active_ && held->pass_ == pass) held->queue_end();
  }
  const std::weak_ptr<Reducer> reducer;
  const uint64_t pass;
};

// Buckets ---------------------------------------------------------------------

std::vector<std::vector<size_t>> cut_into_buckets(
    TensorList parameters,
    const std::vector<size_t>& order,
    const ReducerOptions& options) {
  struct Open {
    ScalarType dtype;
    Device device;
    std::vector<size_t> numbers;
    int64_t bytes = 0;
  };
  std::vector<std::vector<size_t>> found;
  std::vector<Open> open;
  for (size_t number : order) {
    if (!options.sparse.empty() && options.sparse[number]) {
      found.push_back({number});
      continue;
    }
    const Tensor& p = parameters[number];
    auto at = std::find_if(open.begin(), open.end(), [&](const Open& o) {
      return o.dtype == p.dtype() && o.device == p.device();
    });
    if (at == open.end()) {
      at = open.insert(open.end(), {p.dtype(), p.device(), {}});
    }
    at->numbers.push_back(number);
    at->bytes += static_cast<int64_t>(p.nbytes());
    const size_t last = options.limits.size() - 1;
    if (at->bytes < options.limits[std::min(found.size(), last)]) continue;
    found.push_back(std::move(at->numbers));
    open.erase(at);
  }
  for (Open& o : open) found.push_back(std::move(o.numbers));
  return found;
}

Bucket Reducer::make_bucket(std::vector<size_t> numbers) const {
  Bucket made;
  const Tensor& first = parameters_[numbers[0]];
  made.is_sparse = !options_.sparse.empty() && options_.sparse[numbers[0]];
  const ScalarType dtype = options_.dtype.value_or(first.dtype());
  if (!made.is_sparse) {
    int64_t length = 0;
    for (size_t number : numbers) length += parameters_[number].numel();
    made.buffer = ops::zeros({length}, dtype, std::nullopt, first.device());
    int64_t begin = 0;
    for (size_t number : numbers) {
      const Tensor& p = parameters_[number];
      const DimVector rows = contiguous_strides(p.sizes());
      const bool dense = p.is_non_overlapping_and_dense();
      IntArrayRef strides = dense ? p.strides() : IntArrayRef(rows);
      made.views.push_back(
          ops::as_strided(made.buffer, p.sizes(), strides, begin));
      begin += p.numel();
    }
  }
  made.numbers = std::move(numbers);
  return made;
}

void Reducer::make_buckets(std::vector<std::vector<size_t>> lists) {
  GradModeGuard no_grad(false);
  buckets_.clear();
  homes_.resize(parameters_.size());
  for (auto& numbers : lists) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      homes_[numbers[i]] = {buckets_.size(), i};
    }
    buckets_.push_back(make_bucket(std::move(numbers)));
    buckets_.back().index = buckets_.size() - 1;
  }
  buckets_.back().is_last = true;
}

std::vector<size_t> Reducer::bucket_bytes() const {
  auto lock = locked(mutex_);
  std::vector<size_t> found;
  for (const Bucket& b : buckets_) {
    const Tensor& first = parameters_[b.numbers[0]];
    size_t length = 0;
    for (size_t n : b.numbers) length += parameters_[n].numel();
    found.push_back(length *
                    element_size(options_.dtype.value_or(first.dtype())));
  }
  return found;
}

std::optional<std::vector<size_t>> Reducer::take_order() {
  auto lock = locked(mutex_);
  const bool varies = options_.find_unused && !options_.static_graph;
  if (!has_finished_ || !is_first_order_ || varies) return std::nullopt;
  is_first_order_ = false;
  std::vector<size_t> order = arrivals_;
  std::vector<bool> is_there(parameters_.size());
  for (size_t number : order) is_there[number] = true;
  for (const Bucket& b : buckets_) {
    for (size_t number : b.numbers) {
      if (!is_there[number]) order.push_back(number);
    }
  }
  return order;
}

void Reducer::set_order(const std::vector<size_t>& order) {
  auto lock = locked(mutex_);
  auto lists = cut_into_buckets(parameters_, order, options_);
  const bool is_same = std::equal(lists.begin(),
                                  lists.end(),
                                  buckets_.begin(),
                                  buckets_.end(),
                                  [](const auto& numbers, const Bucket& b) {
                                    return numbers == b.numbers;
                                  });
  if (!is_same) make_buckets(std::move(lists));
}

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
  auto lock = locked(mutex_);
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
  auto lock = locked(mutex_);
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

namespace {
// Keeps the phrases that programs look for.
std::string advice(const ReducerOptions& options) {
  const char* outputs =
      "making sure all `forward` function outputs participate in calculating "
      "loss";
  if (options.static_graph) {
    return "This error indicates that your training graph has changed in this "
           "iteration, e.g., one parameter is used in first iteration, but "
           "then got unused in the second iteration. this is not compatible "
           "with static_graph set to True.";
  }
  if (options.find_unused) {
    return str_cat(
        "This error indicates that your module has parameters that were not "
        "used in producing loss. Since `find_unused_parameters=True` is "
        "enabled, some output of `forward` did not reach the loss: ",
        outputs,
        " helps.");
  }
  return str_cat(
      "This error indicates that your module has parameters that were not used "
      "in producing loss. You can enable unused parameter detection by passing "
      "the keyword argument `find_unused_parameters=True` to "
      "`taeda.nn.parallel.DistributedDataParallel`, and by ",
      outputs,
      '.');
}
}  // namespace

void Reducer::check_finished() const {
  auto lock = locked(mutex_);
  // A forward pass without a backward one leaves nothing unfinished.
  if (!active_ || !has_begun_) return;
  std::vector<std::string> numbers, names;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (learns_graph() ? visits_[i] != 0 : seen_[i] || missing_[i]) continue;
    numbers.push_back(std::to_string(i));
    if (!options_.names.empty()) names.push_back(options_.names[i]);
  }
  const std::string who =
      str_cat(" which did not receive grad for rank ", options_.rank, ": ");
  std::string text = str_cat(
      "Expected to have finished reduction in the prior iteration before "
      "starting a new one. ",
      advice(options_));
  if (options_.tells_names) {
    text += str_cat("\nParameters", who, joined(names, ", "));
  }
  text += str_cat("\nParameter indices", who, joined(numbers, " "));
  if (!options_.tells_names) {
    text +=
        "\nTo learn their names, set the environment variable "
        "TORCH_DISTRIBUTED_DEBUG to INFO or DETAIL.";
  }
  throw_error(ErrorKind::Runtime, std::move(text));
}

// During the pass -------------------------------------------------------------

std::string Reducer::named(size_t number) const {
  std::string text = str_cat("Parameter at index ", number);
  if (options_.names.empty()) return text;
  return text + " with name " + options_.names[number];
}

void Reducer::fail_twice(size_t number) const {
  const std::string who = named(number);
  if (options_.static_graph && visits_[number] == 0) {
    throw_error(
        ErrorKind::Runtime,
        str_cat("Your training graph has changed in this iteration, e.g., one "
                "parameter is unused in first iteration, but then got used in "
                "the second iteration. this is not compatible with "
                "static_graph set to True. ",
                who,
                " is the one."));
  }
  const char* why =
      missing_[number]
          ? " was taken to be unused, since no output of `forward` led to it, "
            "and has got a gradient"
          : " has been marked as ready twice: it got two gradients in one "
            "backward pass, as where parts of the model are computed again by "
            "reentrant checkpoints, or where it is used outside of `forward`";
  throw_error(ErrorKind::Runtime,
              str_cat("Expected to mark a variable ready only once. ",
                      who,
                      why,
                      ". If the graph is the same in each iteration, "
                      "static_graph=True allows for that."));
}

void Reducer::arrived(size_t number) {
  auto lock = locked(mutex_);
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
  graph_is_known_ = options_.static_graph;
}

// At its end ------------------------------------------------------------------

void Reducer::end() {
  auto lock = locked(mutex_);
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
  auto lock = locked(mutex_);
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
