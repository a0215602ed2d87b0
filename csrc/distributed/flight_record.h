// The last collectives and messages of this process, for those who ask why it
// stands still.
#pragma once

#include <taeda/csrc/distributed/call.h>

#include <mutex>
#include <string>
#include <vector>

namespace taeda::distributed {

struct FlightEntry {
  enum class State : uint8_t { Scheduled, Started, Completed, Failed };
  uint64_t id = 0;
  std::string group;
  std::string place;  // "train.py:12", of the caller
  Head head;
  int peer = -1;
  Millis limit{0};
  State state = State::Scheduled;
  // Nanoseconds since the epoch; zero for what has not happened.
  int64_t created = 0;
  int64_t started = 0;
  int64_t ended = 0;
};
const char* name_of(FlightEntry::State state);

// One per process, as long as it lives. Locked, a few hundred nanoseconds each.
class FlightRecord {
 public:
  static FlightRecord& instance();
  // Returns an id for the next two; an entry that has been overwritten since is
  // left alone.
  uint64_t add(FlightEntry entry);
  void start(uint64_t id);
  void end(uint64_t id, bool well);
  std::vector<FlightEntry> entries() const;
  void reset(size_t most);

 private:
  FlightRecord();
  FlightEntry* find(uint64_t id);
  mutable std::mutex mutex_;  // guards all below
  std::vector<FlightEntry> ring_;
  uint64_t next_ = 0;
};

}  // namespace taeda::distributed
