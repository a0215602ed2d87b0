// Memory that the ranks of a group on one host share, and waiting in it.
#pragma once

#include <taeda/csrc/distributed/call.h>
#include <taeda/csrc/distributed/channel.h>

#include <atomic>
#include <mutex>

namespace taeda::distributed {

// Note [Steps in shared memory]
// A collective is a number of steps, the same at each rank. In step k a rank
// writes its part into its slot k % kDepth and then sets `posted` to k + 1;
// who needs the part waits for that, reads it, and sets its own `finished` to
// k + 1 when it needs no more of this step. A slot is written again once all
// ranks have finished the step before that used it. Each counter has one
// writer. A reader compares the head that came with a collective's first step
// with its own, so that ranks which disagree raise and do not hang.
//
// Note [Reading another rank's memory]
// Where the system lets the ranks read each other's memory (process_vm_readv),
// long values are not copied into slots: a rank's part is then the addresses of
// its tensors, and it stays in the step until all others have finished with it.
inline constexpr size_t kDepth = 2;

struct RankState {
  alignas(64) std::atomic<uint64_t> posted;
  alignas(64) std::atomic<uint64_t> reduced;
  alignas(64) std::atomic<uint64_t> finished;
  // The bell is rung for whoever of this rank sleeps.
  alignas(64) std::atomic<uint32_t> bell;
  std::atomic<uint32_t> sleepers;
  std::atomic<uint32_t> left;
  std::atomic<int32_t> process;
  std::atomic<uint64_t> probe;  // the address of a copy of the segment's token
  // The collective it is in, or was in last: sequence * 512 + kind * 2 +
  // inside.
  alignas(64) std::atomic<uint64_t> standing;
  Head heads[kDepth];
};

// A ring of bytes from one rank to another. Positions only grow.
struct Ring {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};

class Segment {
 public:
  // Null at all ranks where they are not on one host, or have no room.
  static std::unique_ptr<Segment> open(const Place& place,
                                       Store& store,
                                       Millis limit);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const Place& place() const { return place_; }
  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  RankState& state(int rank) const { return states_[rank]; }
  RankState& mine() const { return states_[place_.rank]; }
  char* slot(int rank, uint64_t step) const {
    return slots_ +
           (static_cast<size_t>(rank) * kDepth + step % kDepth) * slot_size_;
  }
  size_t slot_size() const { return slot_size_; }
  Ring& ring(int from, int to) const;
  char* ring_bytes(int from, int to) const {
    return reinterpret_cast<char*>(&ring(from, to)) + sizeof(Ring);
  }
  size_t ring_size() const { return ring_size_; }

  void ring_bells() const;
  // Returns when `ready()`. `check()` is called while that takes long; it may
  // raise, and looks at `ready()` once more before it does.
  template <class Ready, class Check>
  void await(Ready&& ready, Check&& check) const;

  // See Note [Reading another rank's memory]; false where the rank has gone.
  bool reads_directly() const { return reads_directly_; }
  bool read(int rank, void* to, uint64_t address, size_t bytes) const;

  bool is_alive(int rank) const;
  // The rank that was seen first to have ended or left the group, by whichever
  // rank: others end because of it. -1 if none has.
  int find_lost() const;
  // One of the ranks has met an error after which counters do not agree.
  void set_broken() {
    head().broken = place_.rank + 1;
    ring_bells();
  }
  int broken_by() const { return head().broken.load() - 1; }
  void set_aborted(const std::string& reason);
  void raise_if_aborted() const;
  std::string where_ranks_stand() const;

 private:
  struct SegmentHead {
    char magic[8];
    uint64_t token;
    std::atomic<int32_t> broken;  // a rank and one, as the next
    std::atomic<int32_t> lost;
    std::atomic<int32_t> attached;
    std::atomic<int32_t> readers;
    std::atomic<int32_t> tested;
  };
  Segment(const Place& place, int fd, size_t bytes);
  static size_t layout(int size, size_t& slot_size, size_t& ring_size);
  static std::unique_ptr<Segment> create(const Place& place, std::string& name);
  static std::unique_ptr<Segment> attach(const Place& place,
                                         const std::string& name);
  void meet(Millis limit);
  void test_reading(TimePoint end);
  void await_count(const std::atomic<int32_t>& count, TimePoint end) const;
  SegmentHead& head() const { return *reinterpret_cast<SegmentHead*>(memory_); }
  void sleep(uint32_t bell) const;
  static void spin();
  // Some 20 microseconds. Giving the core away in between (sched_yield) would
  // hand it to any other program for a whole slice of time; who sleeps is
  // woken at once.
  static constexpr int kSpins = 400;
  static constexpr Millis kPatience{15};

  Place place_;
  int fd_;
  size_t bytes_;
  char* memory_ = nullptr;
  RankState* states_ = nullptr;
  char* slots_ = nullptr;
  char* rings_ = nullptr;
  uint64_t token_ = 0;
  bool reads_directly_ = false;
  size_t slot_size_ = 0;
  size_t ring_size_ = 0;
  std::atomic<bool> aborted_ = false;
  mutable std::mutex mutex_;  // guards the reason
  std::string reason_;
};

template <class Ready, class Check>
void Segment::await(Ready&& ready, Check&& check) const {
  for (int turn = 0; turn < kSpins; ++turn) {
    if (ready()) return;
    spin();
  }
  RankState& me = mine();
  struct Sleeper {
    explicit Sleeper(RankState& s) : state(s) { state.sleepers.fetch_add(1); }
    ~Sleeper() { state.sleepers.fetch_sub(1); }
    RankState& state;
  } sleeper(me);
  TimePoint next = Clock::now() + kPatience;
  for (;;) {
    const uint32_t bell = me.bell.load();
    if (ready()) return;
    sleep(bell);
    if (Clock::now() < next) continue;
    // What has ended may have been ready before it did.
    const bool late = !ready();
    if (late) check();
    next = Clock::now() + kPatience;
  }
}

}  // namespace taeda::distributed
