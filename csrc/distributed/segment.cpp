#include <taeda/csrc/distributed/segment.h>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

namespace taeda::distributed {

namespace {

constexpr char kMagic[8] = {'T', 'A', 'E', 'D', 'A', 's', 'h', '1'};
constexpr const char* kFolder = "/dev/shm";
constexpr size_t kPage = 4096;

size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Equal for processes that see the same /dev/shm of the same machine.
std::string host_identity() {
  struct stat facts;
  if (::stat(kFolder, &facts) != 0) return "";
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) return "";
  return str_cat(boot,
                 ":",
                 static_cast<uint64_t>(facts.st_dev),
                 ":",
                 static_cast<uint64_t>(facts.st_ino));
}

bool is_switched_off() {
  const char* value = std::getenv("TAEDA_SHARED_MEMORY");
  return value != nullptr && std::string_view(value) == "0";
}

}  // namespace

size_t Segment::layout(int size, size_t& slot_size, size_t& ring_size) {
  const auto n = static_cast<size_t>(size);
  // Large slots need few steps, each of which waits for the other ranks; all
  // together take 8 MiB, until they get too small for that.
  const size_t share = (size_t{8} << 20) / (n * kDepth);
  slot_size =
      std::clamp(share / kPage * kPage, size_t{64} << 10, size_t{1} << 20);
  // All rings together take 16 MiB at most, and each at least a page.
  const size_t room = (size_t{16} << 20) / (n * n);
  ring_size = std::clamp(room / kPage * kPage, kPage, size_t{128} << 10);
  return pages(sizeof(SegmentHead)) + pages(n * sizeof(RankState)) +
         n * kDepth * slot_size + n * n * (sizeof(Ring) + ring_size);
}

Segment::Segment(const Place& place, int fd, size_t bytes)
    : place_(place), fd_(fd), bytes_(bytes) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    ::close(fd);
    fail(Fault::Backend,
         "init_process_group: cannot map ",
         bytes,
         " bytes of shared memory: ",
         std::strerror(errno));
  }
  memory_ = static_cast<char*>(memory);
  layout(place.size, slot_size_, ring_size_);
  const auto n = static_cast<size_t>(place.size);
  char* states = memory_ + pages(sizeof(SegmentHead));
  states_ = reinterpret_cast<RankState*>(states);
  slots_ = states + pages(n * sizeof(RankState));
  rings_ = slots_ + n * kDepth * slot_size_;
}

Segment::~Segment() {
  mine().left = 1;
  ring_bells();
  ::munmap(memory_, bytes_);
  ::close(fd_);
}

Ring& Segment::ring(int from, int to) const {
  const auto index = static_cast<size_t>(from) * size() + to;
  return *reinterpret_cast<Ring*>(rings_ + index * (sizeof(Ring) + ring_size_));
}

// An object without room (a small /dev/shm) is reported as none: writing into
// memory that the file system does not have would end the process.
std::unique_ptr<Segment> Segment::create(const Place& place,
                                         std::string& name) {
  std::random_device random;
  const uint64_t token = (uint64_t{random()} << 32) | random();
  name = str_cat(kFolder, "/taeda-", ::getpid(), "-", token);
  const int fd =
      ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  size_t slot_size = 0, ring_size = 0;
  const size_t bytes = layout(place.size, slot_size, ring_size);
  if (::posix_fallocate(fd, 0, static_cast<off_t>(bytes)) != 0) {
    ::close(fd);
    ::unlink(name.c_str());
    return nullptr;
  }
  std::unique_ptr<Segment> made(new Segment(place, fd, bytes));
  std::memcpy(made->head().magic, kMagic, sizeof(kMagic));
  made->head().token = token;
  return made;
}

std::unique_ptr<Segment> Segment::attach(const Place& place,
                                         const std::string& name) {
  const int fd = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  struct stat facts;
  size_t slot_size = 0, ring_size = 0;
  const size_t bytes = layout(place.size, slot_size, ring_size);
  if (fd < 0 || ::fstat(fd, &facts) != 0 ||
      static_cast<size_t>(facts.st_size) != bytes) {
    const int code = errno;
    if (fd >= 0) ::close(fd);
    fail(Fault::Backend,
         "init_process_group: rank ",
         place.rank,
         " cannot open the shared memory '",
         name,
         "' of rank 0: ",
         std::strerror(code));
  }
  return std::unique_ptr<Segment>(new Segment(place, fd, bytes));
}

// Each rank holds a lock of one byte of the file. The system releases it when
// the process ends, in whichever way, also before its parent has waited for it.
void Segment::meet(Millis limit) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank();
  lock.l_len = 1;
  token_ = head().token;
  mine().probe = reinterpret_cast<uint64_t>(&token_);
  mine().process = ::getpid();
  if (::fcntl(fd_, F_SETLK, &lock) != 0) {
    fail(Fault::Backend,
         "init_process_group: rank ",
         rank(),
         " is there twice, or /dev/shm has no locks: ",
         std::strerror(errno));
  }
  head().attached.fetch_add(1);
  ring_bells();
  const TimePoint end = after(limit);
  await_count(head().attached, end);
  test_reading(end);
}

void Segment::await_count(const std::atomic<int32_t>& count,
                          TimePoint end) const {
  await([&] { return count.load() >= size(); },
        [&] {
          if (Clock::now() < end) return;
          std::string missing;
          for (int r = 0; r < size(); ++r) {
            if (state(r).process.load() == 0) missing += str_cat(" ", r);
          }
          fail(Fault::Backend,
               "init_process_group: timed out at rank ",
               rank(),
               ": these ranks did not join:",
               missing);
        });
}

// Each rank reads the token out of each other's memory; all must get it, since
// a number of a process may mean another one elsewhere.
void Segment::test_reading(TimePoint end) {
  const char* value = std::getenv("TAEDA_DIRECT_READS");
  bool works = value == nullptr || std::string_view(value) != "0";
  for (int r = 0; r < size() && works; ++r) {
    uint64_t found = 0;
    works = read(r, &found, state(r).probe.load(), sizeof(found)) &&
            found == head().token;
  }
  if (works) head().readers.fetch_add(1);
  head().tested.fetch_add(1);
  ring_bells();
  await_count(head().tested, end);
  reads_directly_ = head().readers.load() == size();
}

bool Segment::read(int rank, void* to, uint64_t address, size_t bytes) const {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const iovec own{at, bytes};
    const iovec other{reinterpret_cast<void*>(address), bytes};
    const ssize_t got =
        ::process_vm_readv(state(rank).process.load(), &own, 1, &other, 1, 0);
    if (got <= 0) return false;
    at += got;
    address += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

std::unique_ptr<Segment> Segment::open(const Place& place,
                                       Store& store,
                                       Millis limit) {
  const std::string own = is_switched_off() ? "" : host_identity();
  Keys keys;
  for (int r = 0; r < place.size; ++r) keys.push_back(str_cat("host/", r));
  try {
    store.set(keys[place.rank],
              own.empty() ? str_cat("none", place.rank) : own);
    store.wait(keys, limit);
  } catch (const DistError& error) {
    if (error.fault() != Fault::Store) throw;
    std::string missing;
    try {
      for (int r = 0; r < place.size; ++r) {
        if (!store.check({keys[r]})) missing += str_cat(" ", r);
      }
    } catch (const DistError&) {
      // The server's rank had the same limit, and has left with the store.
      missing += " (the store has gone)";
    }
    fail(Fault::Store,
         "init_process_group: timed out after ",
         static_cast<int64_t>(limit.count()),
         " ms at rank ",
         place.rank,
         " of ",
         place.size,
         ": these ranks did not join:",
         missing);
  }
  const Keys hosts = store.multi_get(keys);
  const bool together = std::all_of(
      hosts.begin(), hosts.end(), [&](const auto& h) { return h == own; });
  if (!together || own.empty()) return nullptr;
  if (place.rank != 0) {
    const std::string name = store.get("segment");
    if (name.empty()) return nullptr;
    auto made = attach(place, name);
    made->meet(limit);
    return made;
  }
  std::string name;
  auto made = create(place, name);
  store.set("segment", made ? name : "");
  if (!made) return nullptr;
  struct Unlink {
    ~Unlink() { ::unlink(name.c_str()); }
    const std::string& name;
  } unlink{name};
  made->meet(limit);
  // The store may serve another group of this name later.
  store.delete_key("segment");
  return made;
}

void Segment::spin() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void Segment::sleep(uint32_t bell) const {
  const timespec limit{0, 20'000'000};
  ::syscall(SYS_futex,
            reinterpret_cast<uint32_t*>(&mine().bell),
            FUTEX_WAIT,
            bell,
            &limit,
            nullptr,
            0);
}

void Segment::ring_bells() const {
  // A sleeper has either seen the counter that was set before this, or is
  // counted as one.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int r = 0; r < size(); ++r) {
    RankState& other = state(r);
    if (other.sleepers.load() == 0) continue;
    other.bell.fetch_add(1);
    ::syscall(SYS_futex,
              reinterpret_cast<uint32_t*>(&other.bell),
              FUTEX_WAKE,
              INT32_MAX,
              nullptr,
              nullptr,
              0);
  }
}

bool Segment::is_alive(int rank) const {
  if (state(rank).left.load() != 0) return false;
  // Ranks may be threads of one process, which has all its locks itself.
  if (state(rank).process.load() == ::getpid()) return true;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  if (::fcntl(fd_, F_GETLK, &lock) != 0) return true;
  return lock.l_type != F_UNLCK;
}

int Segment::find_lost() const {
  int32_t first = head().lost.load();
  for (int r = 0; r < size() && first == 0; ++r) {
    if (r == rank() || is_alive(r)) continue;
    if (head().lost.compare_exchange_strong(first, r + 1)) first = r + 1;
  }
  return first - 1;
}

void Segment::set_aborted(const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    if (!aborted_) reason_ = reason;
  }
  aborted_ = true;
  ring_bells();
}

void Segment::raise_if_aborted() const {
  if (!aborted_) return;
  std::lock_guard lock(mutex_);
  fail(Fault::Backend, reason_);
}

std::string Segment::where_ranks_stand() const {
  std::string text;
  for (int r = 0; r < size(); ++r) {
    const uint64_t at = state(r).standing.load();
    text += str_cat(text.empty() ? "" : ", ", "rank ", r, " ");
    if (at == 0) {
      text += "has called no collective";
      continue;
    }
    const Head head{.sequence = at / 512,
                    .kind = static_cast<Kind>(at / 2 % 256)};
    text += str_cat(at % 2 != 0 ? "is in " : "has finished ",
                    name_of(head.kind),
                    " #",
                    head.sequence);
  }
  return text;
}

}  // namespace taeda::distributed
