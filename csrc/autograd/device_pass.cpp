// See Note [Backward on devices].
#include <taeda/csrc/autograd/device_pass.h>

#include <taeda/aten/core/dispatcher.h>
#include <taeda/csrc/autograd/saved_variable.h>
#include <taeda/csrc/autograd/variable.h>

#include <chrono>
#include <optional>
#include <thread>

namespace taeda::autograd {

namespace {

// A node whose gradients are complete. What stands in another pass goes first,
// since that one waits for it; then the latest recorded.
struct Task {
  DevicePass* pass;
  int nesting;
  uint64_t sequence_nr;
  uint32_t state;
  bool operator<(const Task& o) const {
    return nesting != o.nesting ? nesting < o.nesting
                                : sequence_nr < o.sequence_nr;
  }
};

}  // namespace

class Worker {
 public:
  void post(Task task) {
    std::lock_guard guard(mutex_);
    tasks_.push_back(task);
    std::push_heap(tasks_.begin(), tasks_.end());
    changed_.notify_one();
  }
  // Runs what is posted until the pass is done; without one, forever.
  void run_until(DevicePass* pass);
  // One less of a pass's nodes. After the last one the pass may be gone.
  void finish_one(std::atomic<int64_t>& outstanding) {
    std::lock_guard guard(mutex_);
    if (outstanding.fetch_sub(1) == 1) changed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task> tasks_;  // a heap
};

namespace {

// Of a GPU's thread, and of one that stands in for it while it waits.
thread_local std::shared_ptr<Worker> workers_thread;

std::shared_ptr<Worker> worker_of(int device) {
  static std::mutex& mutex = *new std::mutex;
  // Threads are never joined: they wait for work until the process ends.
  static auto& all = *new std::vector<std::shared_ptr<Worker>>;
  std::lock_guard guard(mutex);
  auto at = static_cast<size_t>(device);
  if (at >= all.size()) all.resize(at + 1);
  if (all[at] == nullptr) {
    auto worker = std::make_shared<Worker>();
    std::thread([worker] {
      call_on_thread([&worker] {
        workers_thread = worker;
        worker->run_until(nullptr);
      });
    }).detach();
    all[at] = std::move(worker);
  }
  return all[at];
}

// The current stream of a device for a while.
class StreamScope {
 public:
  explicit StreamScope(GpuStream stream)
      : before_(gpu().current_stream(stream.device)),
        changed_(before_ != stream) {
    if (changed_) gpu().set_stream(stream);
  }
  ~StreamScope() {
    if (changed_) gpu().set_stream(before_);
  }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  GpuStream before_;
  bool changed_;
};

class AutocastScope {
 public:
  explicit AutocastScope(const autocast::Settings& settings)
      : before_(autocast::settings()) {
    autocast::restore(settings);
  }
  ~AutocastScope() { autocast::restore(before_); }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  autocast::Settings before_;
};

bool stays_on_its_thread() {
  return !local_state.multithreading_enabled ||
         (local_state.included & kLevelKeys.bits()) != 0 ||
         !saved_hooks().stack.empty() ||
         (holds_interpreter != nullptr && holds_interpreter());
}

void mark_used(const Tensor& t, GpuStream stream) {
  if (!t.defined() || !t.is_cuda() || t.layout() != Layout::Strided) return;
  if (meets_python(t) || !t.storage() || t.storage()->nbytes() == 0) return;
  gpu().record_stream(t.storage()->data(), stream);
}

}  // namespace

void Worker::run_until(DevicePass* pass) {
  constexpr auto kBetweenSignals = std::chrono::milliseconds(20);
  std::unique_lock<std::mutex> lock(mutex_);
  while (pass == nullptr || !pass->is_done()) {
    if (!tasks_.empty()) {
      std::pop_heap(tasks_.begin(), tasks_.end());
      Task task = tasks_.back();
      tasks_.pop_back();
      lock.unlock();
      task.pass->run_one(task.state);
      lock.lock();
    } else if (pass == nullptr || check_interrupt == nullptr) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, kBetweenSignals);
      lock.unlock();
      pass->check();
      lock.lock();
    }
  }
}

std::vector<int> devices_of(const NodeTable& table) {
  std::vector<int> found;
  for (uint32_t i = 0; i < table.size(); ++i) {
    const Node& node = *table[i].node;
    for (size_t k = 0; k < node.num_outputs(); ++k) {
      const OutputInfo& output = node.output(k);
      if (!output.known || !output.device.is_cuda()) continue;
      int device = output.device.index;
      if (std::find(found.begin(), found.end(), device) == found.end()) {
        found.push_back(device);
      }
    }
  }
  return found;
}

DevicePass::DevicePass(Pass& pass, const std::vector<int>& devices)
    : pass_(pass),
      owner_(workers_thread ? workers_thread : std::make_shared<Worker>()),
      nesting_(pass_nesting()),
      state_(local_state),
      casts_(autocast::settings()),
      on_one_thread_(stays_on_its_thread()) {
  for (int device : devices) {
    callers_.push_back(gpu().current_stream(device));
  }
}

DevicePass::~DevicePass() = default;

int DevicePass::device_of(const Node& node) const {
  if (node.num_outputs() == 0) return -1;
  const OutputInfo& first = node.output(0);
  return first.known && first.device.is_cuda() ? first.device.index : -1;
}

GpuStream DevicePass::callers(int device) const {
  for (GpuStream stream : callers_) {
    if (stream.device == device) return stream;
  }
  return gpu().current_stream(device);
}

GpuStream DevicePass::stream_of(const Node& node, int device) const {
  if (device_of(node) != device) return callers(device);
  return {device, static_cast<int64_t>(node.output(0).stream)};
}

void DevicePass::order(GpuStream first, GpuStream then) {
  if (first == then) return;
  void* made = gpu().new_event(first.device, false, false, false);
  auto free = [](void* event) { gpu().free_event(event); };
  std::unique_ptr<void, decltype(free)> event(made, free);
  gpu().record(made, first);
  gpu().wait(then, made);
}

void DevicePass::use(GpuStream stream) {
  if (stream == callers(stream.device)) return;
  if (std::find(used_.begin(), used_.end(), stream) == used_.end()) {
    used_.push_back(stream);
  }
}

void DevicePass::add(uint32_t index, uint32_t input_nr, Tensor grad) {
  if (!grad.defined() || !grad.is_cuda()) {
    return pass_.add(index, input_nr, std::move(grad));
  }
  int device = grad.device().index;
  GpuStream made_on = gpu().current_stream(device);
  GpuStream wanted = stream_of(*pass_.table()[index].node, device);
  use(made_on);
  use(wanted);
  if (made_on != wanted) {
    order(made_on, wanted);
    mark_used(grad, wanted);
  }
  StreamScope scope(wanted);
  pass_.add(index, input_nr, std::move(grad));
}

void DevicePass::deliver(Node& node, Tensors& outputs) {
  std::lock_guard guard(mutex_);
  NodeTable& table = pass_.table();
  const auto& edges = node.next_edges();
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    if (!edge.valid() || !pass_.will_run(edge.node.get())) continue;
    uint32_t next = table.find(edge.node.get());
    add(next,
        edge.input_nr,
        i < outputs.size() ? std::move(outputs[i]) : Tensor());
    if (--table[next].dependencies == 0) push(next);
  }
}

void DevicePass::push(uint32_t index) {
  const Node& node = *pass_.table()[index].node;
  int device = device_of(node);
  bool elsewhere = device >= 0 && !on_one_thread_;
  std::shared_ptr<Worker> worker = elsewhere ? worker_of(device) : owner_;
  outstanding_.fetch_add(1);
  worker->post({this, nesting_, node.sequence_nr(), index});
}

void DevicePass::fail(std::exception_ptr error) {
  std::lock_guard guard(mutex_);
  if (error_ == nullptr) error_ = std::move(error);
  failed_.store(true);
}

void DevicePass::check() {
  if (failed_.load()) return;
  try {
    check_interrupt();
  } catch (...) {
    fail(current_error());
  }
}

void DevicePass::run_one(uint32_t index) {
  if (!failed_.load()) {
    try {
      run_here(index);
    } catch (...) {
      fail(current_error());
    }
  }
  std::shared_ptr<Worker> owner = owner_;
  owner->finish_one(outstanding_);
}

void DevicePass::run_here(uint32_t index) {
  Node& node = *pass_.table()[index].node;
  PassScope scope(&pass_);
  LocalStateGuard state(state_);
  AutocastScope casts(casts_);
  int device = device_of(node);
  if (device < 0) return pass_.run_node(index);
  GpuGuard guard(Device(DeviceType::CUDA, static_cast<int8_t>(device)));
  GpuStream stream = stream_of(node, device);
  StreamScope streams(stream);
  pass_.run_node(index);
  if (stream == callers(device)) return;
  // What is left behind is the caller's, who uses it on a stream of its own.
  TensorImpl* leaf = node.accumulated_variable();
  if (leaf == nullptr) return;
  auto* meta = static_cast<AutogradMeta*>(leaf->autograd_meta());
  if (meta != nullptr) mark_used(meta->grad, callers(device));
}

void DevicePass::join_streams() {
  for (GpuStream stream : used_) order(stream, callers(stream.device));
  for (const Tensor& t : pass_.results()) {
    if (!used_.empty() && t.defined() && t.is_cuda()) {
      mark_used(t, callers(t.device().index));
    }
  }
}

void DevicePass::run(const std::function<void()>& begin) {
  try {
    std::lock_guard guard(mutex_);
    begin();
  } catch (...) {
    fail(std::current_exception());
  }
  owner_->run_until(this);
  try {
    join_streams();
  } catch (...) {
    fail(std::current_exception());
  }
  if (error_ != nullptr) std::rethrow_exception(error_);
}

Handover::Handover() : worker_(workers_thread) {}
void Handover::take() const { workers_thread = worker_; }

}  // namespace taeda::autograd
