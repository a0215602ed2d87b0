// Marks in streams.
#include "emulator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace emulator {

bool share_counts(Event* event);
void forget_counts(Event* event);

bool Machine::waits_for_others() const {
  return std::any_of(
      shared_events.begin(), shared_events.end(), [](const Event* e) {
        return e->foreign && !e->is_passed();
      });
}

namespace {

// Nobody here may ever wait for a mark that another process waits for.
void move_shared_events_on() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::thread([] {
      Machine& m = Machine::get();
      for (;;) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        std::lock_guard guard(m.mutex);
        auto own = [](const Event* e) {
          return !e->foreign && !e->is_passed();
        };
        bool pending =
            std::any_of(m.shared_events.begin(), m.shared_events.end(), own);
        bool once_more = true;
        if (pending) {
          m.run_until([&] { return !std::exchange(once_more, false); });
        }
      }
    }).detach();
  });
}

constexpr unsigned kInterprocess = 4;

Machine& machine() { return Machine::get(); }

}  // namespace

}  // namespace emulator

using namespace emulator;

#define EXPORT extern "C" __attribute__((visibility("default"))) Result

using Guard = std::lock_guard<std::recursive_mutex>;

EXPORT cuEventCreate(Event** out, unsigned flags) {
  Guard guard(machine().mutex);
  if (machine().devices[static_cast<size_t>(current_device)].reset) {
    return kReset;
  }
  *out = new Event;
  if ((flags & kInterprocess) == 0) return 0;
  return share_counts(*out) ? 0 : kInvalid;
}
EXPORT cuEventDestroy_v2(Event* event) {
  Guard guard(machine().mutex);
  if (!event->foreign) {
    machine().run_until([&] { return event->is_passed(); });
  }
  // Streams that were to wait for it need not any more.
  for (Stream* stream : machine().streams) {
    for (Work& work : stream->queue) {
      if (work.event == event) work.event = nullptr;
    }
  }
  forget_counts(event);
  delete event;
  return 0;
}
EXPORT cuEventRecord(Event* event, void* handle) {
  Guard guard(machine().mutex);
  Stream* stream = machine().stream(handle);
  event->capture = 0;
  if (Capture* capture = stream->capture) {
    event->capture = capture->number;
    event->behind = stream->last;
    return 0;
  }
  uint64_t count = ++event->counts->recorded;
  if (event->file >= 0) move_shared_events_on();
  return machine().enqueue(handle, {"record", [=]() -> Result {
                                      event->counts->passed = count;
                                      event->milliseconds = machine().now;
                                      return 0;
                                    }});
}
EXPORT cuEventQuery(Event* event) {
  Guard guard(machine().mutex);
  if (event->capture != 0) return machine().refuse_wait(nullptr);
  if (event->is_passed()) return 0;
  if (!event->foreign) {
    bool stepped = false;
    machine().run_until([&] { return std::exchange(stepped, true); });
  }
  return event->is_passed() ? 0 : taeda::cuda::kNotReady;
}
EXPORT cuEventSynchronize(Event* event) {
  Guard guard(machine().mutex);
  if (event->capture != 0) return machine().refuse_wait(nullptr);
  return machine().waited(
      machine().run_until([&] { return event->is_passed(); }));
}
EXPORT cuEventElapsedTime_v2(float* ms, Event* from, Event* to) {
  *ms = static_cast<float>(to->milliseconds - from->milliseconds);
  return 0;
}

// A stream that waits for a recorded mark records as well from then on.
EXPORT cuStreamWaitEvent(void* handle, Event* event, unsigned) {
  Guard guard(machine().mutex);
  Stream* stream = machine().stream(handle);
  if (event->capture == 0) {
    if (Capture* capture = stream->capture) {
      capture->spoilt = true;
      return kOutside;
    }
    uint64_t count = event->counts->recorded;
    return machine().enqueue(handle, {"wait", {}, event, count});
  }
  auto found = machine().captures.find(event->capture);
  if (found == machine().captures.end()) return kOutside;
  if (stream->capture == nullptr) {
    if (!stream->queue.empty()) machine().finish(stream);
    stream->capture = found->second;
    stream->last.clear();
  }
  for (size_t node : event->behind) {
    auto& last = stream->last;
    if (std::find(last.begin(), last.end(), node) == last.end()) {
      last.push_back(node);
    }
  }
  return 0;
}
