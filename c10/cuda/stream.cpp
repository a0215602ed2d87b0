#include <taeda/c10/cuda/stream.h>

#include <taeda/c10/cuda/fault.h>
#include <taeda/c10/cuda/mem_pool.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace taeda::cuda {

namespace {

constexpr unsigned kIndependentStream = 1;  // CU_STREAM_NON_BLOCKING
constexpr unsigned kBlockingEvent = 1;      // CU_EVENT_BLOCKING_SYNC
constexpr unsigned kEventWithoutTime = 2;   // CU_EVENT_DISABLE_TIMING
constexpr unsigned kInterprocessEvent = 4;  // CU_EVENT_INTERPROCESS
constexpr int kPoolSize = 32;
constexpr int kPriorities = 8;

struct Made {
  StreamHandle handle;
  int priority;
};

// The streams of a device besides its default one: stream `id` stands at
// id - 1. Under the lock; entries stay where they are.
struct Streams {
  std::mutex mutex;
  std::deque<Made> list;
  std::array<std::vector<int64_t>, kPriorities> pools;
  std::array<unsigned, kPriorities> turns{};
};

Streams& streams_of(int device) {
  static auto& all = *new std::vector<Streams>(
      static_cast<size_t>(std::max(device_count(), 1)));
  check_device("stream", device);
  return all[static_cast<size_t>(device)];
}

Made find(GpuStream stream) {
  Streams& streams = streams_of(stream.device);
  std::lock_guard guard(streams.mutex);
  auto at = static_cast<size_t>(stream.id - 1);
  TAEDA_CHECK(stream.id > 0 && at < streams.list.size(),
              "CUDA: device ",
              stream.device,
              " has no stream ",
              stream.id);
  return streams.list[at];
}

thread_local std::unordered_map<int, int64_t> current_ids;

thread_local KeptWork* kept_work = nullptr;

}  // namespace

void keep_work(KeptWork* work) { kept_work = work; }

void launch_kept_work() {
  if (TAEDA_LIKELY(kept_work == nullptr)) return;
  std::exchange(kept_work, nullptr)->launch();
}

GpuStream current_stream(int device) {
  auto found = current_ids.find(device);
  return {device, found == current_ids.end() ? 0 : found->second};
}

void set_stream(GpuStream stream) {
  launch_kept_work();
  if (stream.id != 0) find(stream);
  current_ids[stream.device] = stream.id;
}

GpuStream new_stream(int device, int priority) {
  Streams& streams = streams_of(device);
  use_context(device);
  int least = 0, greatest = 0;
  check(driver().priorities(&least, &greatest), "cuCtxGetStreamPriorityRange");
  priority = std::clamp(priority, std::max(greatest, 1 - kPriorities), least);
  std::lock_guard guard(streams.mutex);
  auto level = static_cast<size_t>(std::min(-priority, kPriorities - 1));
  std::vector<int64_t>& pool = streams.pools[level];
  unsigned turn = streams.turns[level]++ % kPoolSize;
  if (turn == pool.size()) {
    StreamHandle handle = nullptr;
    check(driver().stream_create(&handle, kIndependentStream, priority),
          "cuStreamCreateWithPriority");
    streams.list.push_back({handle, priority});
    pool.push_back(static_cast<int64_t>(streams.list.size()));
  }
  return {device, pool[turn]};
}

StreamHandle handle_of(GpuStream stream) {
  launch_kept_work();
  return bare_handle(stream);
}

StreamHandle bare_handle(GpuStream stream) {
  return stream.id == 0 ? nullptr : find(stream).handle;
}

int priority_of(GpuStream stream) {
  return stream.id == 0 ? 0 : find(stream).priority;
}

bool is_done(GpuStream stream) {
  StreamHandle handle = handle_of(stream);
  use_context(stream.device);
  Result status = driver().stream_query(handle);
  if (status == kNotReady) return false;
  check(status, "cuStreamQuery");
  check_fault(stream.device);
  return true;
}

uint64_t recording_of(GpuStream stream) {
  // The default stream cannot record, nor be asked.
  if (!recording_goes_on() || stream.id == 0) return 0;
  constexpr int kActive = 1;
  int status = 0;
  uint64_t number = 0;
  use_context(stream.device);
  check(driver().capture_info(
            bare_handle(stream), &status, &number, nullptr, nullptr, nullptr),
        "cuStreamGetCaptureInfo");
  return status == kActive ? number : 0;
}

void refuse_in_recording(const char* call, GpuStream stream) {
  TAEDA_CHECK(recording_of(stream) == 0,
              call,
              ": cannot be part of a CUDA graph: it waits for the GPU, as "
              "item(), cpu() and nonzero() do. Call it before the capture, or "
              "after a replay");
}

RecordingPause::RecordingPause() {
  constexpr int kRelaxed = 2;
  if (!recording_goes_on() || driver().exchange_mode == nullptr) return;
  mode_ = kRelaxed;
  check(driver().exchange_mode(&mode_), "cuThreadExchangeStreamCaptureMode");
}

RecordingPause::~RecordingPause() {
  if (mode_ >= 0) driver().exchange_mode(&mode_);
}

void wait_for(GpuStream stream) {
  refuse_in_recording("synchronize", stream);
  StreamHandle handle = handle_of(stream);
  use_context(stream.device);
  check(driver().stream_wait(handle), "cuStreamSynchronize");
  check_fault(stream.device);
}

void wait_for_device(int device) {
  launch_kept_work();
  refuse_in_recording("synchronize", current_stream(device));
  use_context(device);
  check(driver().context_wait(), "cuCtxSynchronize");
  check_fault(device);
}

Event::~Event() {
  if (handle_ != nullptr) driver().event_destroy(handle_);
}

Event::Event(int device, const std::string& handle)
    : device_(device), timing_(false), blocking_(false), interprocess_(true) {
  need("Event.from_ipc_handle", driver().open_event);
  IpcHandle given{};
  TAEDA_CHECK_AS(Value,
                 handle.size() == sizeof(given.bytes),
                 "Event.from_ipc_handle: expected a handle of ",
                 sizeof(given.bytes),
                 " bytes, got ",
                 handle.size());
  std::memcpy(given.bytes, handle.data(), handle.size());
  check_device("Event.from_ipc_handle", device);
  use_context(device);
  check(driver().open_event(&handle_, given), "cuIpcOpenEventHandle");
}

void Event::make() {
  use_context(device_);
  if (handle_ != nullptr) return;
  unsigned flags = (timing_ ? 0 : kEventWithoutTime) |
                   (blocking_ ? kBlockingEvent : 0) |
                   (interprocess_ ? kInterprocessEvent : 0);
  check(driver().event_create(&handle_, flags), "cuEventCreate");
}

std::string Event::handle() {
  TAEDA_CHECK(interprocess_,
              "Event.ipc_handle: the event must be created with "
              "interprocess=True");
  need("Event.ipc_handle", driver().event_handle);
  make();
  IpcHandle out{};
  check(driver().event_handle(&out, handle_), "cuIpcGetEventHandle");
  return {reinterpret_cast<const char*>(out.bytes), sizeof(out.bytes)};
}

void Event::record(GpuStream stream) {
  if (handle_ == nullptr) device_ = stream.device;
  TAEDA_CHECK(device_ == stream.device,
              "Event device ",
              device_,
              " does not match recording stream's device ",
              stream.device);
  make();
  check(driver().event_record(handle_, handle_of(stream)), "cuEventRecord");
}

void Event::block(GpuStream stream) const {
  if (handle_ == nullptr) return;
  use_context(stream.device);
  check(driver().stream_wait_event(handle_of(stream), handle_, 0),
        "cuStreamWaitEvent");
}

bool Event::has_passed() const {
  if (handle_ == nullptr) return true;
  use_context(device_);
  Result status = driver().event_query(handle_);
  if (status != kNotReady) check(status, "cuEventQuery");
  return status != kNotReady;
}

bool Event::is_done() const {
  if (!has_passed()) return false;
  if (handle_ != nullptr) check_fault(device_);
  return true;
}

void Event::wait() const {
  if (handle_ == nullptr) return;
  use_context(device_);
  check(driver().event_wait(handle_), "cuEventSynchronize");
  check_fault(device_);
}

float Event::until(const Event& end) const {
  TAEDA_CHECK_AS(Value,
                 timing_ && end.timing_,
                 "Both events must be created with argument "
                 "'enable_timing=True'.");
  TAEDA_CHECK(handle_ != nullptr && end.handle_ != nullptr,
              "Both events must be recorded before calculating elapsed time.");
  TAEDA_CHECK(is_done() && end.is_done(),
              "Both events must be completed before calculating elapsed time.");
  use_context(device_);
  float ms = 0;
  // CUDA 13 has the function under its second name alone.
  auto* elapsed = driver().elapsed_new != nullptr ? driver().elapsed_new
                                                  : driver().elapsed_old;
  check(elapsed(&ms, handle_, end.handle_), "cuEventElapsedTime");
  return ms;
}

}  // namespace taeda::cuda
