// Ends a process in which a thread that should never stand still does.
#pragma once

#include <taeda/csrc/distributed/error.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace taeda::distributed {

// The thread that is watched beats; where it does not for the limit, the last
// calls of this process are told on stderr and the process is ended by SIGABRT.
// It needs no lock of Python's, so it also ends who holds that for ever.
class Heartbeat {
 public:
  // `who` beats, as the text says.
  Heartbeat(std::string who, Millis limit);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void beat();
  void stop();

 private:
  void watch();
  [[noreturn]] void end_process() const;

  const std::string who_;
  const Millis limit_;
  std::mutex mutex_;  // guards the two below
  TimePoint last_;
  bool stopped_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace taeda::distributed
