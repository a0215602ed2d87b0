// The last collectives and messages of this process, for those who ask why it
// stands still.
#pragma once

#include <taeda/csrc/distributed/call.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace taeda::distributed {

// The shape of the tensor that a rank gives; dimensions beyond are left out.
struct Shape {
  static constexpr size_t kMost = 8;
  std::array<int64_t, kMost> sizes{};
  uint8_t dims = 0;
  bool known = false;  // a barrier has none

  Shape() = default;
  template <class Sizes>
  explicit Shape(const Sizes& given)
      : dims(static_cast<uint8_t>(std::min(given.size(), kMost))), known(true) {
    std::copy_n(given.begin(), dims, sizes.begin());
  }
};

struct FlightEntry {
  enum class State : uint8_t { Scheduled, Started, Completed, Failed };
  uint64_t id = 0;
  std::string group;
  std::string place;  // "train.py:12", of the caller
  Head head;
  Shape shape;
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

// What the ranks of a group say when one of its collectives has failed here,
// from whoever gathers it; nothing by default. It is added to the error's text.
using Reporter = std::function<std::string(const std::string& group)>;
void set_reporter(Reporter reporter);
std::string report_of(const std::string& group);

}  // namespace taeda::distributed
