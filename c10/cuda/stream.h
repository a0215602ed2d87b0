// Streams and events.
#pragma once

#include <taeda/c10/cuda/device.h>

namespace taeda::cuda {

// Note [Streams]
// Stream 0 of a device is the driver's default one. Others come from a pool of
// 32 for each priority, made when first asked for and handed out in turn, so
// that programs that make streams without end do not exhaust the driver. They
// do not wait for the default stream. The current stream of each device is a
// thread's own matter.
GpuStream current_stream(int device);
inline GpuStream current_stream() { return current_stream(current_device()); }
void set_stream(GpuStream stream);
// `priority` is clamped to what the device has; smaller numbers go first.
GpuStream new_stream(int device, int priority);
// For who is about to use the stream: kept work is launched first.
StreamHandle handle_of(GpuStream stream);
// For what needs no order with kept work.
StreamHandle bare_handle(GpuStream stream);
int priority_of(GpuStream stream);
bool is_done(GpuStream stream);
void wait_for(GpuStream stream);
void wait_for_device(int device);

// The number of the graph that the stream's work is recorded into now, 0 where
// it is done.
uint64_t recording_of(GpuStream stream);
// RuntimeError naming the call where the stream records: what cannot be part
// of a graph.
void refuse_in_recording(const char* call, GpuStream stream);

// Note [Kept work]
// A thread may keep calls back in order to launch several of them at once, as
// those of a list of tensors (aten/native/cuda/list_launch.h). Nobody can tell:
// whoever uses a stream asks for its handle, or changes which one is current,
// and both launch what the thread has kept. Its tensors' memory is held until
// then, so that it is not handed out again; launch() does not let go of it, as
// it may run under the lock of whoever frees memory.
class KeptWork {
 public:
  virtual void launch() = 0;

 protected:
  ~KeptWork() = default;
};
// Launched by this thread's next use of a stream.
void keep_work(KeptWork* work);
void launch_kept_work();

// While it is there, this thread may call what no stream does, as taking
// memory, although another one records.
class RecordingPause {
 public:
  RecordingPause();
  ~RecordingPause();
  RecordingPause(const RecordingPause&) = delete;
  RecordingPause& operator=(const RecordingPause&) = delete;

 private:
  int mode_ = -1;  // the thread's own
};

// A mark in a stream; the driver's event is made with the first record.
class Event {
 public:
  Event(int device, bool timing, bool blocking, bool interprocess = false)
      : device_(device),
        timing_(timing),
        blocking_(blocking),
        interprocess_(interprocess) {}
  // One of another process.
  Event(int device, const std::string& handle);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(GpuStream stream);
  // `stream` goes on when the mark is passed.
  void block(GpuStream stream) const;
  // Raises what kernels found wrong, as wait() does; has_passed() does not.
  bool is_done() const;
  bool has_passed() const;
  void wait() const;
  // For another process; RuntimeError unless made with `interprocess`.
  std::string handle();
  // Milliseconds from this one to `end`; both with timing, passed.
  float until(const Event& end) const;

 private:
  void make();

  int device_;
  bool timing_, blocking_, interprocess_;
  EventHandle handle_ = nullptr;
};

}  // namespace taeda::cuda
