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
StreamHandle handle_of(GpuStream stream);
int priority_of(GpuStream stream);
bool is_done(GpuStream stream);
void wait_for(GpuStream stream);
void wait_for_device(int device);

// A mark in a stream; the driver's event is made with the first record.
class Event {
 public:
  Event(int device, bool timing, bool blocking)
      : device_(device), timing_(timing), blocking_(blocking) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(GpuStream stream);
  // `stream` goes on when the mark is passed.
  void block(GpuStream stream) const;
  bool is_done() const;
  void wait() const;
  // Milliseconds from this one to `end`; both with timing, passed.
  float until(const Event& end) const;

 private:
  int device_;
  bool timing_, blocking_;
  EventHandle handle_ = nullptr;
};

}  // namespace taeda::cuda
