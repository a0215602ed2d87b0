// Devices that exist in memory of the host alone.
#pragma once

#include "checked_memory.h"

#include <taeda/c10/cuda/driver.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace emulator {

using taeda::cuda::Address;
using taeda::cuda::Result;

inline constexpr Result kInvalid = 1;
inline constexpr Result kNotMapped = 700;  // an illegal address
inline constexpr Result kReset = 709;      // the device was
// Of streams that record.
inline constexpr Result kNotRecorded = 900, kSpoilt = 901, kUnjoined = 904,
                        kOutside = 905;

// Note [Emulated memory]
// Device memory is mapped without any right of access. Work on the device is
// done between open() and close(), which grant and take it, so that a CPU
// kernel that gets a device's pointer faults at once. Blocks are filled with a
// pattern that is NaN as a float and a large number as an integer, each time
// that they are given away.
//
// Note [Checked memory]
// All devices' memory lies in one arena, beside which lies a state for each of
// its bytes. The allocator tells which bytes are a block (taken, freed; both
// in the order of the block's stream), and leaves a red zone behind each. The
// kernels' every access asks for the states (kernel_check.h), copies write
// them. What is wrong goes to stderr and to TAEDA_EMULATOR_REPORTS, with the
// kernel and the thread, and is the next wait's error.
struct Arena {
  static Arena& get();
  // Addresses without memory, which nobody had before; 0 where none are left.
  Address take(size_t bytes);
  void mark(Address at, size_t bytes, ByteState state);
  // What is copied is as written as its source is.
  void copy_states(Address to, Address from, size_t bytes);
  bool holds(Address at) const { return at - checked.begin < checked.bytes; }

  CheckedMemory checked;
  std::map<Address, size_t> blocks;  // given away by the allocator

 private:
  Arena();
  Address next_ = 0;
};

class Memory {
 public:
  Result allocate(Address* out, size_t bytes);
  Result free(Address at);
  Result reserve(Address* out, size_t bytes);
  Result unreserve(Address at, size_t bytes);
  // Physical memory, which only counts until it is shared.
  Result create(uint64_t* out, size_t bytes);
  Result release(uint64_t handle);
  Result map(Address at, size_t bytes, uint64_t handle);
  Result unmap(Address at, size_t bytes);
  // Note [Shared memory]: a descriptor of a handle's memory, and what another
  // process gave one of; the same for allocate().
  Result share(int* out, uint64_t handle);
  Result import(uint64_t* out, int file);
  Result share_block(taeda::cuda::IpcHandle* out, Address at);
  Result open_block(Address* out, const taeda::cuda::IpcHandle& handle);
  // Whether all of it is mapped.
  bool holds(Address at, size_t bytes) const;
  // Fills it with the pattern.
  void poison(Address at, size_t bytes);
  void open();
  void close();

  size_t total = 0;
  bool reset = false;
  // Bytes that are taken, by all processes where they share a device
  // (TAEDA_EMULATOR_SHARED names a file that counts them).
  size_t used() const { return shared_used ? shared_used->load() : own_used; }
  void count(ptrdiff_t bytes);
  std::atomic<size_t>* shared_used = nullptr;
  size_t own_used = 0;

 private:
  // Of a handle or a block; `file` is -1 until it is shared, `counted` what it
  // takes of the device's memory.
  struct Range {
    size_t bytes = 0, counted = 0;
    Address at = 0;  // of handles: where it is mapped
    int file = -1;
  };
  void move_to_file(Range& range);
  static void lay_over(Address at, const Range& range);

  // Takes the memory behind addresses away.
  void give_up(Address at, size_t bytes);
  void add_range(Address at, size_t bytes);
  void remove_range(Address at, size_t bytes);

  std::map<Address, Range> blocks_;    // of allocate()
  std::map<Address, size_t> ranges_;   // mapped, neighbours joined
  std::map<uint64_t, Range> handles_;  // of create()
  uint64_t next_handle_ = 1;
  int open_ = 0;
};

// How often a mark was recorded, and how many of those are passed.
struct Counts {
  std::atomic<uint64_t> recorded{0}, passed{0};
};

// A mark. That of another process has its counts there: nothing that is done
// here moves it on.
struct Event {
  Counts own;
  Counts* counts = &own;
  double milliseconds = 0;
  int file = -1;  // of the counts, where they are shared
  bool foreign = false;
  uint64_t capture = 0;        // the recording that it was last put in
  std::vector<size_t> behind;  // and the pieces of work that it stands behind

  bool is_passed() const { return counts->passed == counts->recorded; }
};

struct Work {
  const char* what;
  std::function<Result()> run;  // empty for a wait
  Event* event = nullptr;       // waits until it has passed `count`
  uint64_t count = 0;
  bool instant = false;  // takes no time: done as soon as it comes to the front
};

// Note [Emulated graphs]
// Work of a stream that records is a node behind the stream's last one; a wait
// for a recorded mark puts the stream behind the nodes before the mark. A graph
// that is launched is one piece of work, which runs the nodes in a drawn order
// that the edges allow.
struct Graph {
  struct Node {
    Work work;
    std::vector<size_t> behind;
  };
  std::vector<Node> nodes;
};
struct Stream;
struct Capture {
  uint64_t number = 0;
  int mode = 0;  // 0: no thread may call what is unsafe, 1: this one, 2: all
  int64_t thread = 0;
  Stream* origin = nullptr;
  bool spoilt = false;
  std::shared_ptr<Graph> graph;
};

struct Stream {
  int device = 0;
  int priority = 0;
  std::deque<Work> queue;
  Capture* capture = nullptr;
  std::vector<size_t> last;  // nodes that its next one stands behind
};

struct HostBlock {
  size_t bytes;
};

// Everything; each function of the driver holds the lock.
class Machine {
 public:
  static Machine& get();

  std::recursive_mutex mutex;
  std::vector<Memory> devices;
  std::vector<Stream*> streams;  // the default ones first, by device
  std::map<const char*, size_t> pinned;
  Result failed = 0;  // of work that ran late: all calls return it from then on
  std::string failure;
  // What the checker found since somebody last waited, of which one error is
  // made; and who runs.
  std::string found;
  std::string running;
  bool reported = false;  // of the kernel that runs

  Stream* stream(void* handle);
  Result enqueue(void* stream, Work work);
  // Runs work in a drawn order until the condition holds.
  Result run_until(const std::function<bool()>& done);
  Result finish(Stream* stream);
  Result finish_all(int device);
  bool is_pinned(const void* data, size_t bytes) const;
  Memory* memory_at(Address at, size_t bytes);
  void report(const BadAccess& access);
  // Results for who waits for a stream that records, or, with null, for the
  // device; and for who takes memory meanwhile. 0 where that is allowed.
  Result refuse_wait(Stream* stream);
  Result refuse_unsafe();
  // Nodes of a graph in an order that the edges allow.
  Result run_graph(const Graph& graph, std::vector<bool>& done);
  std::map<uint64_t, Capture*> captures;
  std::vector<Event*> shared_events;
  // Somebody else has to do something.
  bool waits_for_others() const;
  // Whether a kernel's threads run from the last to the first.
  bool drawn_order() { return draw_() % 2 == 1; }
  // Status of a wait that ended.
  Result waited(Result status);
  double now = 0;  // milliseconds of the devices' clock

 private:
  Machine();
  bool run_one();
  void run_instant(Stream* stream);
  std::mt19937 draw_;
};

// Memory of all devices may be touched while work runs, as with peer access.
struct Opened {
  Opened() {
    for (Memory& m : Machine::get().devices) m.open();
  }
  ~Opened() {
    for (Memory& m : Machine::get().devices) m.close();
  }
};

// What a library of NVIDIA's does with memory; false, and a report, where it
// may not.
bool touch(const void* p, size_t bytes, bool writes);

extern thread_local int current_device;

// A number of the environment.
uint64_t setting(const char* name, uint64_t otherwise);

// TAEDA_EMULATOR_TEXTS is a folder that gets the text of every kernel that is
// used, for tests that have NVRTC itself compile them.
void keep_text(const char* name, const char* text);

}  // namespace emulator
