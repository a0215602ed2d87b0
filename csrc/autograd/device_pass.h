// Passes with nodes on GPUs. See Note [Backward on devices].
#pragma once

#include <taeda/csrc/autograd/autocast.h>
#include <taeda/csrc/autograd/pass.h>

#include <taeda/c10/core/gpu.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>

namespace taeda::autograd {

// Note [Backward on devices]
// Each GPU has a thread, made when the first of its nodes is to run, which runs
// the nodes of all passes on that GPU: where a node's first output lies is
// where it runs. The other nodes run on the thread that called backward, which
// waits for the pass. While a thread of a GPU waits for a pass that began
// inside of one of its nodes, it goes on with what is queued for it, so that
// threads never wait for each other in a circle. All nodes run on the calling
// thread where multithreading is switched off, where the caller holds the
// interpreter's lock, and while modes, levels or hooks of saved tensors are in
// force, which are a thread's own.
//
// A node runs on the stream on which its forward ran (OutputInfo::stream).
// Gradients are added up on the stream of the node that gets them: it waits for
// the stream that made them, and they are marked as used by it. When the pass
// ends, the caller's current streams wait for all streams that it used. So
// backward is ordered like any other call: after what the caller's streams did
// before, and before what they do afterwards.
//
// What nodes deliver is guarded by the pass's lock, which is taken before the
// interpreter's, never after it.

// Queues of work, one of each GPU's thread and one of each waiting caller.
class Worker;

class DevicePass {
 public:
  DevicePass(Pass& pass, const std::vector<int>& devices);
  ~DevicePass();
  DevicePass(const DevicePass&) = delete;
  DevicePass& operator=(const DevicePass&) = delete;

  // Calls `begin`, which adds and pushes what the pass begins with, and runs
  // all that follows. Throws what a node threw, when no other thread has to do
  // with the pass any more.
  void run(const std::function<void()>& begin);
  // Inside of `begin`: a gradient, on the stream of the node that gets it, and
  // a node whose gradients are complete.
  void add(uint32_t index, uint32_t input_nr, Tensor grad);
  void push(uint32_t index);
  // What a node has made, on the thread and the streams that made it.
  void deliver(Node& node, Tensors& outputs);

  // For workers: runs one node; asks for signals while nothing is to be done.
  void run_one(uint32_t index);
  void check();
  bool is_done() const { return outstanding_.load() == 0; }

 private:
  int device_of(const Node& node) const;  // -1: runs on the caller's thread
  GpuStream stream_of(const Node& node, int device) const;
  GpuStream callers(int device) const;
  void use(GpuStream stream);
  void order(GpuStream first, GpuStream then);
  void join_streams();
  void run_here(uint32_t index);
  void fail(std::exception_ptr error);

  Pass& pass_;
  std::shared_ptr<Worker> owner_;
  int nesting_;
  LocalState state_;
  autocast::Settings casts_;
  bool on_one_thread_;
  std::vector<GpuStream> callers_;  // of each device, when the pass began
  std::mutex mutex_;
  std::vector<GpuStream> used_;  // under the lock
  std::exception_ptr error_;     // likewise
  std::atomic<bool> failed_{false};
  std::atomic<int64_t> outstanding_{0};
};

// Carries to another thread, which this one waits for, that it works for a GPU.
class Handover {
 public:
  Handover();
  void take() const;

 private:
  std::shared_ptr<Worker> worker_;
};

// The GPUs on which nodes of the table run.
std::vector<int> devices_of(const NodeTable& table);

}  // namespace taeda::autograd
