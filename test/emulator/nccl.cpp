// NCCL's functions, under their names: collectives between processes of one
// host, through a file in shared memory, as work of the emulated streams.
#include "emulator.h"

#include <taeda/c10/core/scalar_type.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

using namespace emulator;

namespace {

// ncclResult_t
enum Status { kOk = 0, kSystem = 2, kInvalid2 = 4, kRemote = 6 };
// ncclRedOp_t; what is created comes behind them.
enum Operation { kSum, kProduct, kMax, kMin, kAverage, kCreated };

constexpr int kRanks = 8;
constexpr size_t kSlot = 256 << 10, kMail = 64 << 10;

struct Id {
  char text[128];
};

// Note [Emulated NCCL]
// A collective is a number of steps that all ranks count alike. In a step each
// writes a part of its input to its slot, waits until all have, and takes what
// it needs; it writes again when all have taken. Work that must wait is asked
// again later, so that other streams, and other threads of the process, go on.
struct Shared {
  std::atomic<int> joined, split;
  std::array<std::atomic<int>, kRanks> pids;
  std::array<std::atomic<uint64_t>, kRanks> posted, taken;
  std::array<std::array<int, 2>, 2 * kRanks> colors;
  std::array<std::array<std::atomic<uint64_t>, kRanks>, kRanks> sent, received;
  char slots[kRanks][kSlot];
  char mail[kRanks][kRanks][kMail];
};

struct Comm {
  Id id;
  int rank, size;
  Shared* shared;
  uint64_t step = 0;  // begun by this rank
  int splits = 0;
  std::atomic<bool> aborted = false;
  std::vector<double> factors = {};
};

struct Call {
  enum Kind { AllReduce, Broadcast, Reduce, Gather, Scatter, Send, Receive };
  Kind kind;
  const char* in;
  char* out;
  size_t count;
  int type, op, root;
  Comm* comm;
  void* stream;
};

// Bytes of each ncclDataType_t.
size_t size_of(int type) {
  constexpr std::array<size_t, 12> sizes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return sizes[static_cast<size_t>(type)];
}

template <class T, class A>
void combine_typed(const std::vector<const char*>& parts,
                   char* out,
                   size_t n,
                   int op,
                   double factor) {
  for (size_t i = 0; i < n; ++i) {
    A sum{};
    for (size_t r = 0; r < parts.size(); ++r) {
      T stored;
      std::memcpy(&stored, parts[r] + i * sizeof(T), sizeof(T));
      A value = static_cast<A>(stored);
      if (op >= kCreated) value = static_cast<A>(value * factor);
      if (r == 0) {
        sum = value;
      } else if (op == kProduct) {
        sum = sum * value;
      } else if (op == kMax) {
        sum = std::max(sum, value);
      } else if (op == kMin) {
        sum = std::min(sum, value);
      } else {
        sum = sum + value;
      }
    }
    if (op == kAverage) sum = sum / static_cast<A>(parts.size());
    const T result = T(sum);
    std::memcpy(out + i * sizeof(T), &result, sizeof(T));
  }
}

using Combine =
    void (*)(const std::vector<const char*>&, char*, size_t, int, double);

Combine combine_of(int type) {
  constexpr std::array<Combine, 10> table{
      &combine_typed<int8_t, int64_t>,
      &combine_typed<uint8_t, uint64_t>,
      &combine_typed<int32_t, int64_t>,
      &combine_typed<uint32_t, uint64_t>,
      &combine_typed<int64_t, int64_t>,
      &combine_typed<uint64_t, uint64_t>,
      &combine_typed<taeda::Half, float>,
      &combine_typed<float, float>,
      &combine_typed<double, double>,
      &combine_typed<taeda::BFloat16, float>};
  return table[static_cast<size_t>(type)];
}

bool all_reached(const std::array<std::atomic<uint64_t>, kRanks>& counts,
                 int size,
                 uint64_t step) {
  return std::all_of(
      counts.begin(), counts.begin() + size, [&](const auto& count) {
        return count.load(std::memory_order_acquire) >= step;
      });
}

// One collective, which goes on where it stood when it is asked again.
class Collective {
 public:
  explicit Collective(const Call& call) : c_(call) {
    const size_t parts = c_.kind == Call::Scatter ? c_.comm->size : 1;
    bytes_ = c_.count * size_of(c_.type) * parts;
  }

  Result run() {
    Opened opened;
    Comm& comm = *c_.comm;
    Shared& s = *comm.shared;
    for (;;) {
      if (comm.aborted || at_ == bytes_) return 0;
      const size_t n = std::min(kSlot, bytes_ - at_);
      if (!posted_) {
        if (!all_reached(s.taken, comm.size, comm.step)) return again();
        const bool gives = c_.kind != Call::Broadcast || c_.root == comm.rank;
        if (gives) std::memcpy(s.slots[comm.rank], c_.in + at_, n);
        s.posted[comm.rank].store(++comm.step, std::memory_order_release);
        posted_ = true;
      }
      if (!all_reached(s.posted, comm.size, comm.step)) return again();
      take(n);
      s.taken[comm.rank].store(comm.step, std::memory_order_release);
      posted_ = false;
      at_ += n;
    }
  }

 private:
  static Result again() { return taeda::cuda::kNotReady; }

  void take(size_t n) {
    Shared& s = *c_.comm->shared;
    const int rank = c_.comm->rank;
    if (c_.kind == Call::Broadcast) {
      std::memcpy(c_.out + at_, s.slots[c_.root], n);
    } else if (c_.kind == Call::Gather) {
      for (int r = 0; r < c_.comm->size; ++r) {
        std::memcpy(c_.out + r * bytes_ + at_, s.slots[r], n);
      }
    } else if (c_.kind == Call::Scatter) {
      const size_t own = bytes_ / c_.comm->size, begin = own * rank;
      const size_t from = std::max(at_, begin),
                   to = std::min(at_ + n, begin + own);
      if (from < to) reduce(from - at_, to - from, c_.out + from - begin);
    } else if (c_.kind == Call::AllReduce || c_.root == rank) {
      reduce(0, n, c_.out + at_);
    }
  }

  void reduce(size_t offset, size_t n, char* out) {
    std::vector<const char*> parts;
    for (int r = 0; r < c_.comm->size; ++r) {
      parts.push_back(c_.comm->shared->slots[r] + offset);
    }
    double factor = 1;
    if (c_.op >= kCreated) factor = c_.comm->factors[c_.op - kCreated];
    combine_of(c_.type)(parts, out, n / size_of(c_.type), c_.op, factor);
  }

  Call c_;
  size_t bytes_, at_ = 0;
  bool posted_ = false;
};

// Messages of one group, which all move at once.
class Messages {
 public:
  explicit Messages(std::vector<Call> calls) : calls_(std::move(calls)) {
    done_.resize(calls_.size());
  }

  Result run() {
    Opened opened;
    bool moved = true, all = false;
    while (moved) {
      moved = false, all = true;
      for (size_t i = 0; i < calls_.size(); ++i) {
        if (calls_[i].comm->aborted) return 0;
        while (move(calls_[i], done_[i])) moved = true;
        all = all && done_[i] == bytes_of(calls_[i]);
      }
    }
    return all ? 0 : taeda::cuda::kNotReady;
  }

 private:
  static size_t bytes_of(const Call& c) { return c.count * size_of(c.type); }

  // A slot is full while its sent count is one more than the received one.
  static bool move(const Call& c, size_t& done) {
    const size_t n = std::min(kMail, bytes_of(c) - done);
    if (n == 0) return false;
    const bool sends = c.kind == Call::Send;
    const int from = sends ? c.comm->rank : c.root;
    const int to = sends ? c.root : c.comm->rank;
    auto& sent = c.comm->shared->sent[from][to];
    auto& received = c.comm->shared->received[from][to];
    if ((sent.load() == received.load()) != sends) return false;
    char* slot = c.comm->shared->mail[from][to];
    if (sends) {
      std::memcpy(slot, c.in + done, n);
      ++sent;
    } else {
      std::memcpy(c.out + done, slot, n);
      ++received;
    }
    done += n;
    return true;
  }

  std::vector<Call> calls_;
  std::vector<size_t> done_;
};

thread_local int depth = 0;
thread_local std::vector<Call> grouped;

template <class Job>
void enqueue(void* stream, const char* what, std::shared_ptr<Job> job) {
  std::lock_guard guard(Machine::get().mutex);
  Machine::get().enqueue(stream, {what, [job] { return job->run(); }});
}

bool is_message(const Call& c) {
  return c.kind == Call::Send || c.kind == Call::Receive;
}

int flush() {
  std::vector<Call> messages;
  for (const Call& c : grouped) {
    if (is_message(c)) {
      messages.push_back(c);
    } else {
      enqueue(c.stream, "nccl", std::make_shared<Collective>(c));
    }
  }
  grouped.clear();
  if (!messages.empty()) {
    void* stream = messages.front().stream;
    enqueue(stream, "nccl messages", std::make_shared<Messages>(messages));
  }
  return kOk;
}

int called(const Call& call) {
  if (call.comm->aborted) return kInvalid2;
  grouped.push_back(call);
  return depth == 0 ? flush() : kOk;
}

std::string path_of(const Id& id) {
  return std::string("/dev/shm/emulated-nccl-") + id.text;
}

template <class F>
bool wait_until(F&& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

int join(Comm** out, int size, const Id& id, int rank) {
  if (size > kRanks || rank < 0 || rank >= size) return kInvalid2;
  const std::string path = path_of(id);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(Shared)) != 0) return kSystem;
  const int rights = PROT_READ | PROT_WRITE;
  void* at = ::mmap(nullptr, sizeof(Shared), rights, MAP_SHARED, file, 0);
  ::close(file);
  if (at == MAP_FAILED) return kSystem;
  auto* comm = new Comm{id, rank, size, static_cast<Shared*>(at)};
  comm->shared->pids[rank] = ::getpid();
  comm->shared->joined += 1;
  if (!wait_until([&] { return comm->shared->joined == size; })) return kSystem;
  if (rank == 0) ::unlink(path.c_str());
  *out = comm;
  return kOk;
}

}  // namespace

#define NCCL extern "C" __attribute__((visibility("default"))) int

NCCL ncclGetVersion(int* version) {
  *version = 22807;
  return kOk;
}
extern "C" __attribute__((visibility("default"))) const char*
ncclGetErrorString(int status) {
  switch (status) {
    case kOk:
      return "no error";
    case kRemote:
      return "remote process exited or there was a network error";
    case kSystem:
      return "unhandled system error";
    default:
      return "invalid argument";
  }
}
extern "C" __attribute__((visibility("default"))) const char* ncclGetLastError(
    void*) {
  return "";
}

NCCL ncclGetUniqueId(Id* id) {
  std::memset(id, 0, sizeof(Id));
  uint64_t words[2];
  std::FILE* file = std::fopen("/dev/urandom", "rb");
  if (file == nullptr || std::fread(words, sizeof(words), 1, file) != 1) {
    return kSystem;
  }
  std::fclose(file);
  std::snprintf(id->text, sizeof(id->text), "%016lx%016lx", words[0], words[1]);
  return kOk;
}
NCCL ncclCommInitRankConfig(Comm** out, int size, Id id, int rank, void*) {
  return join(out, size, id, rank);
}
NCCL ncclCommSplit(Comm* comm, int color, int key, Comm** out, void*) {
  Shared& s = *comm->shared;
  // Neighbouring splits use two halves of the table.
  const int half = (comm->splits % 2) * kRanks;
  s.colors[half + comm->rank] = {color, key};
  s.split += 1;
  const int wanted = ++comm->splits * comm->size;
  if (!wait_until([&] { return s.split >= wanted; })) return kSystem;
  *out = nullptr;
  if (color < 0) return kOk;
  int size = 0, rank = 0;
  for (int r = 0; r < comm->size; ++r) {
    const auto [other, place] = s.colors[half + r];
    if (other != color) continue;
    size += 1;
    rank += place < key || (place == key && r < comm->rank);
  }
  Id id = comm->id;
  const size_t length = std::strlen(id.text);
  std::snprintf(id.text + length,
                sizeof(id.text) - length,
                "-%d-%d",
                comm->splits,
                color);
  return join(out, size, id, rank);
}
NCCL ncclCommFinalize(Comm*) { return kOk; }
// Work may still be queued: what it uses stays.
NCCL ncclCommDestroy(Comm*) { return kOk; }
NCCL ncclCommAbort(Comm* comm) {
  comm->aborted = true;
  return kOk;
}
NCCL ncclCommGetAsyncError(Comm* comm, int* status) {
  *status = kOk;
  for (int r = 0; r < comm->size; ++r) {
    const bool gone = ::kill(comm->shared->pids[r], 0) != 0 && errno == ESRCH;
    if (gone) *status = kRemote;
  }
  return kOk;
}
NCCL ncclRedOpCreatePreMulSum(
    int* op, const void* scalar, int type, int, Comm* comm) {
  double value = 0;
  switch (type) {
    case 6:
      value = *static_cast<const taeda::Half*>(scalar);
      break;
    case 7:
      value = *static_cast<const float*>(scalar);
      break;
    case 8:
      value = *static_cast<const double*>(scalar);
      break;
    case 9:
      value = *static_cast<const taeda::BFloat16*>(scalar);
      break;
    default:
      return kInvalid2;
  }
  comm->factors.push_back(value);
  *op = kCreated + static_cast<int>(comm->factors.size()) - 1;
  return kOk;
}
NCCL ncclRedOpDestroy(int, Comm*) { return kOk; }

NCCL ncclGroupStart() {
  depth += 1;
  return kOk;
}
NCCL ncclGroupEnd() { return --depth == 0 ? flush() : kOk; }

NCCL ncclAllReduce(const char* in,
                   char* out,
                   size_t n,
                   int type,
                   int op,
                   Comm* comm,
                   void* stream) {
  return called({Call::AllReduce, in, out, n, type, op, 0, comm, stream});
}
NCCL ncclBroadcast(const char* in,
                   char* out,
                   size_t n,
                   int type,
                   int root,
                   Comm* comm,
                   void* stream) {
  return called({Call::Broadcast, in, out, n, type, 0, root, comm, stream});
}
NCCL ncclReduce(const char* in,
                char* out,
                size_t n,
                int type,
                int op,
                int root,
                Comm* comm,
                void* stream) {
  return called({Call::Reduce, in, out, n, type, op, root, comm, stream});
}
NCCL ncclAllGather(
    const char* in, char* out, size_t n, int type, Comm* comm, void* stream) {
  return called({Call::Gather, in, out, n, type, 0, 0, comm, stream});
}
NCCL ncclReduceScatter(const char* in,
                       char* out,
                       size_t n,
                       int type,
                       int op,
                       Comm* comm,
                       void* stream) {
  return called({Call::Scatter, in, out, n, type, op, 0, comm, stream});
}
NCCL ncclSend(
    const char* in, size_t n, int type, int peer, Comm* comm, void* stream) {
  return called({Call::Send, in, nullptr, n, type, 0, peer, comm, stream});
}
NCCL ncclRecv(
    char* out, size_t n, int type, int peer, Comm* comm, void* stream) {
  return called({Call::Receive, nullptr, out, n, type, 0, peer, comm, stream});
}
