#include <taeda/aten/core/observe.h>

#include <taeda/aten/core/observed_boxing.h>
#include <taeda/aten/core/op_info.h>

#include <algorithm>
#include <array>
#include <mutex>

namespace taeda::observe {

namespace {

using Slots = std::array<std::atomic<void*>, kNumDispatchKeys>;

// The kernels of each entry, found by its address: open addressing, since each
// observed call looks here. It only grows, under the lock; a larger one takes
// the place of one that is kept, since a call may be reading it.
class Table {
 public:
  explicit Table(size_t rows)
      : mask_(std::bit_ceil(2 * rows) - 1),
        rows_(std::make_unique<Row[]>(mask_ + 1)) {}

  Slots* find(const OperatorEntry* op) const {
    for (size_t i = place_of(op);; ++i) {
      const Row& row = rows_[i & mask_];
      const OperatorEntry* own = row.op.load(std::memory_order_acquire);
      if (own == op) return row.slots.load(std::memory_order_relaxed);
      if (own == nullptr) return nullptr;
    }
  }
  void add(const OperatorEntry* op, Slots* slots) {
    size_t i = place_of(op);
    while (rows_[i & mask_].op.load() != nullptr) ++i;
    rows_[i & mask_].slots = slots;
    rows_[i & mask_].op.store(op, std::memory_order_release);
    ++used_;
  }
  bool has_room(size_t more) const { return 2 * (used_ + more) <= mask_ + 1; }

 private:
  struct Row {
    std::atomic<const OperatorEntry*> op{nullptr};
    std::atomic<Slots*> slots{nullptr};
  };
  size_t place_of(const OperatorEntry* op) const {
    auto bits = reinterpret_cast<uintptr_t>(op);
    return static_cast<size_t>((bits >> 4) * 0x9E3779B97F4A7C15U >> 20);
  }
  size_t mask_;
  size_t used_ = 0;
  std::unique_ptr<Row[]> rows_;
};

std::mutex change;  // held where an observer comes or goes
std::atomic<Observer*> current{nullptr};
std::atomic<Table*> table{nullptr};
thread_local Frame* innermost = nullptr;

std::atomic_ref<void*> slot(const OperatorEntry& op, size_t key) {
  return std::atomic_ref<void*>(const_cast<OperatorEntry&>(op).slots[key]);
}

void keep_all_kernels() {
  const auto& entries = Dispatcher::get().all();
  Table* old = table.load();
  Table* all = old;
  if (all == nullptr || !all->has_room(entries.size())) {
    all = new Table(2 * entries.size());
  }
  for (const OperatorEntry* op : entries) {
    Slots* kept = old == nullptr ? nullptr : old->find(op);
    bool is_new = all->find(op) == nullptr;
    if (kept == nullptr) kept = new Slots{};
    for (size_t k = 0; k < kNumDispatchKeys; ++k) {
      (*kept)[k] = slot(*op, k).load(std::memory_order_relaxed);
    }
    if (is_new) all->add(op, kept);
  }
  table.store(all, std::memory_order_release);
}

// For good: a call that found a slot empty may come to the adapter late.
void place_adapters() {
  std::vector<Adapter> adapters = all_adapters();
  std::ranges::sort(adapters, {}, &Adapter::plain);
  for (OperatorEntry* op : Dispatcher::get().all()) {
    auto found =
        std::ranges::lower_bound(adapters, op->to_boxed, {}, &Adapter::plain);
    if (found == adapters.end() || found->plain != op->to_boxed) continue;
    std::atomic_ref(op->to_boxed).store(found->observed);
  }
}

void copy_value(Stack& stack, const void* value) {
  stack.push_back(*static_cast<const IValue*>(value));
}

}  // namespace

void Values::push_to(Stack& stack) const {
  for (size_t i = 0; i < count; ++i) push[i](stack, at[i]);
}

const TensorBase* Values::tensor(size_t i) const {
  if (push[i] != push_at<TensorBase>) return nullptr;
  return static_cast<const TensorBase*>(at[i]);
}

void Observer::gives(Frame&, const Values&) {}

void set_observer(Observer& observer, std::string_view user) {
  std::lock_guard guard(change);
  TAEDA_CHECK(current.load() == nullptr,
              user,
              ": calls are observed already: only one of profile() and "
              "nan_guard() can be on at a time");
  keep_all_kernels();
  place_adapters();
  current.store(&observer, std::memory_order_release);
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    for (size_t k = 0; k < kNumDispatchKeys; ++k) {
      slot(*op, k).store(nullptr, std::memory_order_release);
    }
  }
}

void clear_observer(const Observer& observer) {
  std::lock_guard guard(change);
  if (current.load() != &observer) return;
  const Table& all = *table.load();
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    Slots* kept = all.find(op);
    if (kept == nullptr) continue;  // registered since
    for (size_t k = 0; k < kNumDispatchKeys; ++k) {
      void* kernel = (*kept)[k].load();
      if (kernel != nullptr) slot(*op, k).store(kernel);
    }
  }
  current.store(nullptr);
}

void* kernel_at(const OperatorEntry& op, DispatchKey key) {
  auto k = static_cast<size_t>(key);
  void* kernel = slot(op, k).load(std::memory_order_acquire);
  if (kernel != nullptr) return kernel;
  const Table* all = table.load(std::memory_order_acquire);
  Slots* kept = all == nullptr ? nullptr : all->find(&op);
  return kept == nullptr ? nullptr : (*kept)[k].load(std::memory_order_relaxed);
}

void set_kernel(const OperatorEntry& op, DispatchKey key, void* kernel) {
  std::lock_guard guard(change);
  auto k = static_cast<size_t>(key);
  const Table* all = table.load();
  Slots* kept = all == nullptr ? nullptr : all->find(&op);
  if (kept != nullptr) (*kept)[k] = kernel;
  bool is_taken_out = kept != nullptr && current.load() != nullptr;
  slot(op, k).store(is_taken_out ? nullptr : kernel);
}

Call::Call(const OperatorEntry& op, DispatchKeySet keys, Values arguments) {
  DispatchKey key = op.select(keys);
  kernel_ = kernel_at(op, key);
  Observer* observer = current.load(std::memory_order_acquire);
  if (observer == nullptr) return;
  if (innermost != nullptr && innermost->op == &op && key < innermost->key) {
    innermost->key = key;
    return;
  }
  frame_ = {&op, arguments, innermost, key};
  innermost = &frame_;
  observer_ = observer;
  observer->begins(frame_);
}

void Call::close() {
  innermost = frame_.outer;
  observer_->ends(frame_);
}

void Call::wrote() {
  if (observer_ == nullptr) return;
  const Values& all = frame_.arguments;
  size_t from = frame_.op->written_first;
  Values written{all.at + from, all.push + from, frame_.op->written_count};
  observer_->gives(frame_, written);
}

void call_boxed_kernel(const OperatorEntry& op,
                       DispatchKeySet keys,
                       Stack& stack) {
  BoxedKernel& kernel = boxed_kernel(op, keys);
  if (TAEDA_LIKELY(current.load(std::memory_order_relaxed) == nullptr)) {
    kernel.call(op, keys, stack);
    return;
  }
  // Copies: the kernel takes the values on the stack for its own.
  Stack values(stack.end() - op.info->arguments, stack.end());
  size_t base = stack.size() - values.size();
  std::vector<const void*> at;
  for (const IValue& v : values) at.push_back(&v);
  std::vector<Push> push(std::max<size_t>(at.size(), 1), copy_value);
  Call call(op, keys, {at.data(), push.data(), at.size()});
  kernel.call(op, keys, stack);
  if (!call.is_seen()) return;
  for (size_t i = base; i < stack.size(); ++i) call.gave(&stack[i], copy_value);
}

}  // namespace taeda::observe
