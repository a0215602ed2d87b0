#include <taeda/csrc/profiler/recorder.h>

#include <taeda/aten/core/observe.h>
#include <taeda/c10/core/allocator.h>
#include <taeda/csrc/autograd/observe.h>
#include <taeda/csrc/profiler/arguments.h>
#include <taeda/csrc/profiler/clock.h>
#include <taeda/csrc/profiler/recording_allocator.h>
#include <taeda/csrc/profiler/thread_log.h>

#include <mutex>
#include <thread>
#include <unordered_set>

#include <sys/syscall.h>
#include <unistd.h>

namespace taeda::profiler {

uint32_t (*capture_stack)() = nullptr;

namespace {

// The recording that runs, from 1; 0 for none. Written under `State::change`.
std::atomic<uint32_t> running{0};

struct State {
  std::mutex change;
  std::vector<ThreadLog*> logs;  // kept: a thread may append when it ends
  std::unordered_set<std::string> names;
  uint32_t last = 0;
  Options options;
  Moment first;
};
State& state() {
  static State* all = new State;
  return *all;
}

ThreadLog& this_log() {
  thread_local ThreadLog* log = nullptr;
  if (log == nullptr) {
    log = new ThreadLog(static_cast<uint64_t>(syscall(SYS_gettid)));
    std::lock_guard guard(state().change);
    state().logs.push_back(log);
  }
  return *log;
}

const std::string* kept_name(const std::string& name) {
  std::lock_guard guard(state().change);
  return &*state().names.insert(name).first;
}

class Turn {
 public:
  explicit Turn(uint32_t epoch_meant = running.load())
      : log(this_log()),
        epoch(epoch_meant),
        outer_(log.busy.exchange(true)),
        valid(epoch != 0 && running.load() == epoch) {}
  ~Turn() { log.busy.store(outer_, std::memory_order_release); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  Event& add(Kind kind) {
    Event& event = log.add(epoch);
    event.kind = kind;
    event.parent = log.open;
    number_ = log.count();
    return event;
  }
  // The token of the event that was added, which is now open.
  uint64_t open() {
    log.open = number_;
    return uint64_t{epoch} << 32 | number_;
  }

  ThreadLog& log;
  const uint32_t epoch;

 private:
  // A turn may begin in another one: asking for the program's place may free
  // memory.
  const bool outer_;
  uint32_t number_ = 0;

 public:
  const bool valid;
};

uint32_t keep_values(ThreadLog& log, const observe::Values& values) {
  log.arguments.push_back(describe_values(values));
  return static_cast<uint32_t>(log.arguments.size());
}

// Where the program called an operator itself: the ones inside are there too.
bool wants_stack(ThreadLog& log, uint32_t parent) {
  if (!state().options.stacks || capture_stack == nullptr) return false;
  return parent == 0 || log[parent].kind >= Kind::User;
}

class CallRecorder final : public observe::Observer {
 public:
  void begins(observe::Frame& frame) override {
    Turn turn;
    if (!turn.valid) return;
    Event& event = turn.add(Kind::Operator);
    event.op = frame.op;
    event.sequence = static_cast<int64_t>(autograd::next_sequence_nr());
    if (state().options.shapes) {
      event.arguments = keep_values(turn.log, frame.arguments);
    }
    if (wants_stack(turn.log, event.parent)) event.stack = capture_stack();
    frame.token = turn.open();
    event.start = ticks();
  }
  void gives(observe::Frame& frame, const observe::Values& results) override {
    if (!state().options.shapes || frame.token == 0) return;
    Turn turn(static_cast<uint32_t>(frame.token >> 32));
    if (!turn.valid) return;
    Event& event = turn.log[static_cast<uint32_t>(frame.token)];
    event.results = keep_values(turn.log, results);
  }
  void ends(observe::Frame& frame) noexcept override {
    if (frame.token == 0) return;
    int64_t now = ticks();
    Turn turn(static_cast<uint32_t>(frame.token >> 32));
    if (!turn.valid) return;
    Event& event = turn.log[static_cast<uint32_t>(frame.token)];
    event.end = now;
    // A number that nobody took: the call made no node.
    auto next = static_cast<int64_t>(autograd::next_sequence_nr());
    if (next == event.sequence) event.sequence = -1;
    turn.log.open = event.parent;
  }
};

uint64_t begin_node(Kind kind,
                    const autograd::Node& node,
                    const std::string& name,
                    const autograd::Tensors* grads) {
  const std::string* kept = kept_name(name);
  Turn turn;
  if (!turn.valid) return 0;
  Event& event = turn.add(kind);
  event.name = kept;
  // Nodes of leaves have no call that made them.
  bool leaf = node.accumulated_variable() != nullptr;
  event.sequence = leaf ? -1 : static_cast<int64_t>(node.sequence_nr());
  if (grads != nullptr && state().options.shapes) {
    turn.log.arguments.push_back(describe_tensors(*grads));
    event.arguments = static_cast<uint32_t>(turn.log.arguments.size());
  }
  uint64_t token = turn.open();
  event.start = ticks();
  return token;
}

// The C++ class that PyTorch's nodes of leaves are shown by.
std::string shown_name(const autograd::Node& node) {
  std::string name = node.name();
  return node.accumulated_variable() != nullptr
             ? str_cat("torch::autograd::", name)
             : name;
}

class NodeRecorder final : public autograd::NodeObserver {
 public:
  uint64_t evaluates(const autograd::Node& node) override {
    if (!is_recording()) return 0;
    std::string name =
        str_cat("autograd::engine::evaluate_function: ", shown_name(node));
    return begin_node(Kind::Evaluation, node, name, nullptr);
  }
  void evaluated(uint64_t token) noexcept override { end_event(token); }
  uint64_t applies(const autograd::Node& node,
                   const autograd::Tensors& grads) override {
    if (!is_recording()) return 0;
    return begin_node(Kind::Node, node, shown_name(node), &grads);
  }
  void applied(const autograd::Node&,
               uint64_t token,
               const autograd::Tensors*) override {
    end_event(token);
  }
};

CallRecorder& call_recorder() {
  static auto* recorder = new CallRecorder;
  return *recorder;
}
NodeRecorder& node_recorder() {
  static auto* recorder = new NodeRecorder;
  return *recorder;
}

ThreadEvents taken(ThreadLog& log, const Moment& first, const Moment& last) {
  ThreadEvents out;
  out.thread = log.thread();
  out.events.reserve(log.count());
  for (uint32_t i = 1; i <= log.count(); ++i) {
    Event event = log[i];
    event.start = to_ns(event.start, first, last);
    event.end = event.end == 0 ? last.ns : to_ns(event.end, first, last);
    out.events.push_back(event);
  }
  out.arguments = std::move(log.arguments);
  log.clear(0);
  return out;
}

}  // namespace

bool is_recording() { return running.load(std::memory_order_relaxed) != 0; }

void record_memory(const void* address, int64_t bytes, int64_t total) noexcept {
  if (!is_recording()) return;
  Turn turn;
  if (!turn.valid) return;
  Event& event = turn.add(Kind::Memory);
  event.address = address;
  event.bytes = bytes;
  event.total = total;
  event.start = event.end = ticks();
}

void start_recording(const Options& options) {
  observe::set_observer(call_recorder(), "profiler");
  State& all = state();
  std::lock_guard guard(all.change);
  all.options = options;
  all.first = Moment();
  if (options.memory) record_allocations(true);
  autograd::node_observer = &node_recorder();
  running = ++all.last;
}

Recording stop_recording() {
  TAEDA_CHECK(is_recording(), "profiler: nothing is being recorded");
  State& all = state();
  uint32_t epoch = running.exchange(0);
  observe::clear_observer(call_recorder());
  autograd::node_observer = nullptr;
  if (all.options.memory) record_allocations(false);
  std::lock_guard guard(all.change);
  Moment last;
  Recording out{all.first.ns, last.ns, {}};
  for (ThreadLog* log : all.logs) {
    while (log->busy.load()) std::this_thread::yield();
    if (log->epoch() != epoch || log->count() == 0) continue;
    out.threads.push_back(taken(*log, all.first, last));
  }
  return out;
}

uint64_t begin_event(Kind kind, const std::string& name) {
  if (!is_recording()) return 0;
  const std::string* kept = kept_name(name);
  Turn turn;
  if (!turn.valid) return 0;
  Event& event = turn.add(kind);
  event.name = kept;
  if (wants_stack(turn.log, event.parent)) event.stack = capture_stack();
  uint64_t token = turn.open();
  event.start = ticks();
  return token;
}

void end_event(uint64_t token) noexcept {
  if (token == 0) return;
  int64_t now = ticks();
  Turn turn(static_cast<uint32_t>(token >> 32));
  auto number = static_cast<uint32_t>(token);
  if (!turn.valid || number > turn.log.count()) return;
  turn.log[number].end = now;
  turn.log.open = turn.log[number].parent;
}

}  // namespace taeda::profiler
