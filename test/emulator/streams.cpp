#include "emulator.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

namespace emulator {

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

thread_local int current_device = 0;

Machine& Machine::get() {
  static auto& machine = *new Machine;
  return machine;
}

namespace {

// Of the processes that share devices; what this one took goes when it ends.
void share_devices(std::vector<Memory>& devices, const char* name) {
  int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  size_t bytes = sizeof(std::atomic<size_t>) * devices.size();
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return;
  auto* counts = static_cast<std::atomic<size_t>*>(at);
  for (size_t i = 0; i < devices.size(); ++i) {
    devices[i].shared_used = counts + i;
  }
  std::atexit([] {
    for (Memory& m : Machine::get().devices) *m.shared_used -= m.own_used;
  });
}

}  // namespace

Machine::Machine() {
  draw_.seed(static_cast<unsigned>(setting("TAEDA_EMULATOR_SEED", 1)));
  devices = std::vector<Memory>(setting("TAEDA_EMULATOR_DEVICES", 2));
  if (const char* name = std::getenv("TAEDA_EMULATOR_SHARED")) {
    share_devices(devices, name);
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    devices[i].total = setting("TAEDA_EMULATOR_MEMORY", uint64_t{1} << 29);
    auto* stream = new Stream;
    stream->device = static_cast<int>(i);
    streams.push_back(stream);
  }
}

Stream* Machine::stream(void* handle) {
  if (handle != nullptr) return static_cast<Stream*>(handle);
  return streams[static_cast<size_t>(current_device)];
}

Result Machine::enqueue(void* handle, Work work) {
  if (failed != 0) return failed;
  Stream* s = stream(handle);
  if (devices[static_cast<size_t>(s->device)].reset) return kReset;
  if (s->capture != nullptr) {
    Graph& graph = *s->capture->graph;
    graph.nodes.push_back({std::move(work), s->last});
    s->last = {graph.nodes.size() - 1};
    return 0;
  }
  s->queue.push_back(std::move(work));
  run_instant(s);
  return 0;
}

void Machine::run_instant(Stream* s) {
  while (!s->queue.empty() && s->queue.front().instant) {
    s->queue.front().run();
    s->queue.pop_front();
  }
}

// One piece of work of a stream that can go on; false where none can. What
// waits for another process is not ready, and stays; others may use the machine
// meanwhile.
bool Machine::run_one() {
  std::vector<Stream*> ready;
  for (Stream* s : streams) {
    if (s->queue.empty()) continue;
    const Work& next = s->queue.front();
    bool waits =
        next.event != nullptr && next.event->counts->passed < next.count;
    if (!waits) ready.push_back(s);
  }
  if (ready.empty()) return false;
  Stream* chosen = ready[draw_() % ready.size()];
  Work work = std::move(chosen->queue.front());
  chosen->queue.pop_front();
  now += 0.001;
  if (work.run) {
    Result result = work.run();
    if (result == taeda::cuda::kNotReady) {
      chosen->queue.push_front(std::move(work));
      mutex.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      mutex.lock();
      return true;
    }
    if (result != 0 && failed == 0) failed = result;
  }
  run_instant(chosen);
  return true;
}

Result Machine::run_until(const std::function<bool()>& done) {
  while (failed == 0 && !done()) {
    if (run_one()) continue;
    if (waits_for_others()) {
      mutex.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      mutex.lock();
    } else {
      failure = "streams wait for each other";
      failed = 999;
    }
  }
  return failed;
}

Result Machine::finish(Stream* s) {
  return run_until([&] { return s->queue.empty(); });
}

Result Machine::finish_all(int device) {
  return run_until([&] {
    for (Stream* s : streams) {
      if (s->device == device && !s->queue.empty()) return false;
    }
    return true;
  });
}

bool Machine::is_pinned(const void* data, size_t bytes) const {
  auto next = pinned.upper_bound(static_cast<const char*>(data));
  if (next == pinned.begin()) return false;
  auto block = std::prev(next);
  return static_cast<const char*>(data) + bytes <= block->first + block->second;
}

Memory* Machine::memory_at(Address at, size_t bytes) {
  for (Memory& m : devices) {
    if (m.holds(at, bytes)) return &m;
  }
  return nullptr;
}

}  // namespace emulator
