// The events of one thread, which it alone appends to.
#pragma once

#include <taeda/csrc/profiler/recorder.h>

#include <atomic>
#include <memory>

namespace taeda::profiler {

// Note [Turns]
// A thread appends to its log without a lock; whoever ends the recording reads
// all logs. So an append is a turn: it raises `busy`, looks whether the
// recording that it means (`epoch`) is still running, and lowers `busy` after.
// The reader ends the recording first and then waits for each `busy` to be
// lowered: whoever raises it later sees the end and appends nothing.
class ThreadLog {
 public:
  explicit ThreadLog(uint64_t thread) : thread_(thread) {}

  // Events lie in pieces that do not move: growing copies nothing.
  Event& add(uint32_t epoch) {
    if (epoch != epoch_) clear(epoch);
    if (count_ % kPiece == 0) {
      pieces_.push_back(std::make_unique<Event[]>(kPiece));
    }
    ++count_;
    return (*this)[count_];
  }
  // Counted from 1.
  Event& operator[](uint32_t number) {
    return pieces_[(number - 1) / kPiece][(number - 1) % kPiece];
  }
  uint32_t count() const { return count_; }
  uint32_t epoch() const { return epoch_; }
  uint64_t thread() const { return thread_; }
  void clear(uint32_t epoch) {
    epoch_ = epoch;
    pieces_.clear();
    arguments.clear();
    count_ = open = 0;
  }

  std::atomic<bool> busy{false};
  uint32_t open = 0;  // the innermost open event
  std::vector<std::vector<Argument>> arguments;

 private:
  static constexpr uint32_t kPiece = 1024;
  uint64_t thread_;
  uint32_t epoch_ = 0;
  uint32_t count_ = 0;
  std::vector<std::unique_ptr<Event[]>> pieces_;
};

}  // namespace taeda::profiler
