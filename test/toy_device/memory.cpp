// Devices, memory, streams and events.
#include "toy.h"

#include <torch/extension.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>

namespace toy {

namespace {

using Clock = std::chrono::steady_clock;

// A recursive lock: work that runs may free memory, which locks.
std::recursive_mutex& mutex() {
  static auto& all = *new std::recursive_mutex;
  return all;
}

struct Queue {
  std::deque<std::function<void()>> work;
  int64_t queued = 0, done = 0;
};
struct Machine {
  std::map<std::pair<int, int64_t>, Queue> queues;
  int64_t streams = 0, blocks = 0, done = 0;
  std::set<const void*> pinned;
};
Machine& machine() {
  static auto& all = *new Machine;
  return all;
}

thread_local int current = 0;
thread_local int64_t stream_of[kDevices] = {};

// The first `until` pieces of a queue; all of them when it is -1.
void run(int device, int64_t stream, int64_t until = -1) {
  std::lock_guard guard(mutex());
  Queue& queue = machine().queues[{device, stream}];
  while (!queue.work.empty() && (until < 0 || queue.done < until)) {
    auto work = std::move(queue.work.front());
    queue.work.pop_front();
    work();
    ++queue.done;
    ++machine().done;
  }
}

struct Event {
  int device;
  int64_t stream, at;
  std::shared_ptr<Clock::time_point> when;
};

}  // namespace

void enqueue(int device, std::function<void()> work) {
  std::lock_guard guard(mutex());
  Queue& queue = machine().queues[{device, stream_of[device]}];
  queue.work.push_back(std::move(work));
  ++queue.queued;
}

void drain_stream(int device, int64_t stream) { run(device, stream); }
void drain(int device) {
  std::lock_guard guard(mutex());
  for (auto& [where, queue] : machine().queues) {
    if (where.first == device) run(device, where.second);
  }
}

int64_t blocks_in_use() { return machine().blocks; }
int64_t work_done() { return machine().done; }

namespace {

// Every block is followed by eight bytes that nobody may write.
constexpr uint64_t kGuard = 0x7e57'7e57'7e57'7e57;

class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t n) override {
    std::lock_guard guard(mutex());
    TORCH_CHECK(n < (size_t{1} << 40), "toy: no block of ", n, " bytes");
    auto* block = static_cast<char*>(std::malloc(n + 16));
    std::memcpy(block, &n, 8);
    std::memset(block + 8, 0xfb, n);
    std::memcpy(block + 8 + n, &kGuard, 8);
    ++machine().blocks;
    return {block + 8,
            block,
            &Memory::free,
            c10::Device(c10::DeviceType::PrivateUse1,
                        static_cast<c10::DeviceIndex>(current))};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Memory::free; }
  void copy_data(void* to, const void* from, size_t n) const override {
    drain(current);
    std::memcpy(to, from, n);
  }

 private:
  static void free(void* block) {
    std::lock_guard guard(mutex());
    size_t n = 0;
    std::memcpy(&n, block, 8);
    if (std::memcmp(static_cast<char*>(block) + 8 + n, &kGuard, 8) != 0) {
      std::fputs("toy: work wrote behind a block\n", stderr);
      std::abort();
    }
    --machine().blocks;
    std::free(block);
  }
};

class Pinned final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t n) override {
    std::lock_guard guard(mutex());
    void* data = std::malloc(n + 1);
    machine().pinned.insert(data);
    return {data, data, &Pinned::free, c10::Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t n) const override {
    std::memcpy(to, from, n);
  }
  static bool owns(const void* data) {
    std::lock_guard guard(mutex());
    return machine().pinned.contains(data);
  }

 private:
  static void free(void* data) {
    std::lock_guard guard(mutex());
    machine().pinned.erase(data);
    std::free(data);
  }
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device d) const override {
    c10::Device before = getDevice();
    setDevice(d);
    return before;
  }
  c10::Device getDevice() const override {
    return {kType, static_cast<c10::DeviceIndex>(current)};
  }
  void setDevice(c10::Device d) const override {
    TORCH_CHECK(d.index() >= 0 && d.index() < kDevices,
                "toy: no device ",
                int{d.index()});
    current = d.index();
  }
  void uncheckedSetDevice(c10::Device d) const noexcept override {
    current = d.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

  c10::Stream getStream(c10::Device d) const override {
    return {c10::Stream::UNSAFE, d, stream_of[d.index()]};
  }
  c10::Stream getDefaultStream(c10::Device d) const override {
    return {c10::Stream::DEFAULT, d};
  }
  c10::Stream getNewStream(c10::Device d, int) const override {
    std::lock_guard guard(mutex());
    return {c10::Stream::UNSAFE, d, ++machine().streams};
  }
  c10::Stream exchangeStream(c10::Stream s) const override {
    c10::Stream before = getStream(s.device());
    stream_of[s.device_index()] = s.id();
    return before;
  }
  bool queryStream(const c10::Stream& s) const override {
    std::lock_guard guard(mutex());
    return machine().queues[{s.device_index(), s.id()}].work.empty();
  }
  void synchronizeStream(const c10::Stream& s) const override {
    run(s.device_index(), s.id());
  }
  void synchronizeDevice(const c10::DeviceIndex d) const override { drain(d); }

  void record(void** event,
              const c10::Stream& s,
              const c10::DeviceIndex device,
              const c10::EventFlag) const override {
    std::lock_guard guard(mutex());
    destroyEvent(*event, device);
    Queue& queue = machine().queues[{device, s.id()}];
    auto when = std::make_shared<Clock::time_point>();
    queue.work.push_back([when] { *when = Clock::now(); });
    *event = new Event{device, s.id(), ++queue.queued, when};
  }
  void block(void* event, const c10::Stream& s) const override {
    std::lock_guard guard(mutex());
    Event e = *static_cast<Event*>(event);
    Queue& queue = machine().queues[{s.device_index(), s.id()}];
    queue.work.push_back([e] { run(e.device, e.stream, e.at); });
    ++queue.queued;
  }
  bool queryEvent(void* event) const override {
    std::lock_guard guard(mutex());
    auto* e = static_cast<Event*>(event);
    return machine().queues[{e->device, e->stream}].done >= e->at;
  }
  void synchronizeEvent(void* event) const override {
    auto* e = static_cast<Event*>(event);
    run(e->device, e->stream, e->at);
  }
  void destroyEvent(void* event,
                    const c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* from,
                     void* to,
                     const c10::DeviceIndex) const override {
    synchronizeEvent(from);
    synchronizeEvent(to);
    std::chrono::duration<double, std::milli> passed =
        *static_cast<Event*>(to)->when - *static_cast<Event*>(from)->when;
    return passed.count();
  }
  // The storage lives until the stream has got there.
  void recordDataPtrOnStream(const c10::Storage& storage,
                             const c10::Stream& s) const override {
    std::lock_guard guard(mutex());
    Queue& queue = machine().queues[{s.device_index(), s.id()}];
    queue.work.push_back([storage] {});
    ++queue.queued;
  }
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  const at::Generator& getDefaultGenerator(
      c10::DeviceIndex device) const override {
    static at::Generator all[kDevices] = {default_generator(0),
                                          default_generator(1)};
    return all[device < 0 ? current : device];
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return new_generator(device < 0 ? current : device);
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    static Pinned allocator;
    return &allocator;
  }
  bool isPinnedPtr(const void* data) const override {
    return Pinned::owns(data);
  }
};

Memory memory;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &memory);
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);
const bool hooked = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace
}  // namespace toy

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("blocks_in_use", &toy::blocks_in_use);
  m.def("work_done", &toy::work_done);
  m.def("rename", [](const std::string& name) {
    c10::register_privateuse1_backend(name);
  });
}
