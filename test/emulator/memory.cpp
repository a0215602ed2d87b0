#include "emulator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulator {

namespace {

constexpr size_t kPage = 4096;
constexpr unsigned char kPattern = 0xff;

size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

constexpr size_t kArena = size_t{1} << 38;

void* map_lazily(size_t bytes, int rights) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* at = mmap(nullptr, bytes, rights, flags, -1, 0);
  if (at == MAP_FAILED) {
    std::perror("emulator: mmap");
    std::abort();
  }
  return at;
}

}  // namespace

Arena& Arena::get() {
  static auto& arena = *new Arena;
  return arena;
}

Arena::Arena() {
  checked.begin = reinterpret_cast<Address>(map_lazily(kArena, PROT_NONE));
  checked.bytes = kArena;
  checked.states =
      static_cast<unsigned char*>(map_lazily(kArena, PROT_READ | PROT_WRITE));
  checked.machine = nullptr;
  checked.report = [](void*, const BadAccess& access) {
    Machine::get().report(access);
  };
  next_ = checked.begin;
}

// Behind what was taken is a page that nobody may touch.
Address Arena::take(size_t bytes) {
  size_t taken = pages(bytes) + kPage;
  if (next_ + taken > checked.begin + checked.bytes) return 0;
  Address at = next_;
  next_ += taken;
  return at;
}

void Arena::mark(Address at, size_t bytes, ByteState state) {
  if (!holds(at)) return;
  std::memset(checked.states + (at - checked.begin), state, bytes);
}

void Arena::copy_states(Address to, Address from, size_t bytes) {
  if (!holds(from)) return mark(to, bytes, kWritten);
  if (!holds(to)) return;
  std::memmove(checked.states + (to - checked.begin),
               checked.states + (from - checked.begin),
               bytes);
}

void Memory::poison(Address at, size_t bytes) {
  open();
  std::memset(reinterpret_cast<void*>(at), kPattern, bytes);
  close();
}

void Memory::give_up(Address at, size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, flags, -1, 0);
  Arena::get().mark(at, bytes, kNobodys);
}

void Memory::add_range(Address at, size_t bytes) {
  auto next = ranges_.lower_bound(at);
  if (next != ranges_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == at) {
      before->second += bytes;
      return;
    }
  }
  ranges_.emplace(at, bytes);
}

// The end of a range, or its middle.
void Memory::remove_range(Address at, size_t bytes) {
  auto range = std::prev(ranges_.upper_bound(at));
  Address begin = range->first, end = begin + range->second;
  range->second = at - begin;
  if (range->second == 0) ranges_.erase(range);
  if (at + bytes < end) ranges_.emplace(at + bytes, end - at - bytes);
}

void Memory::count(ptrdiff_t bytes) {
  own_used += static_cast<size_t>(bytes);
  if (shared_used != nullptr) *shared_used += static_cast<size_t>(bytes);
}

Result Memory::allocate(Address* out, size_t bytes) {
  if (reset) return kReset;
  if (bytes == 0) return kInvalid;
  if (used() + bytes > total) return taeda::cuda::kOutOfMemory;
  *out = Arena::get().take(bytes);
  if (*out == 0) return taeda::cuda::kOutOfMemory;
  count(static_cast<ptrdiff_t>(bytes));
  blocks_.emplace(*out, Range{bytes, bytes, *out});
  add_range(*out, pages(bytes));
  poison(*out, bytes);
  return 0;
}

Result Memory::free(Address at) {
  auto found = blocks_.find(at);
  if (found == blocks_.end()) return kInvalid;
  Range& range = found->second;
  count(-static_cast<ptrdiff_t>(range.counted));
  remove_range(at, pages(range.bytes));
  give_up(at, pages(range.bytes));
  if (range.file >= 0) ::close(range.file);
  blocks_.erase(found);
  return 0;
}

Result Memory::reserve(Address* out, size_t bytes) {
  *out = Arena::get().take(bytes);
  return *out == 0 ? taeda::cuda::kOutOfMemory : 0;
}

Result Memory::unreserve(Address, size_t) { return 0; }

Result Memory::create(uint64_t* out, size_t bytes) {
  if (reset) return kReset;
  if (used() + bytes > total) return taeda::cuda::kOutOfMemory;
  count(static_cast<ptrdiff_t>(bytes));
  *out = next_handle_++;
  handles_.emplace(*out, Range{bytes, bytes});
  return 0;
}

Result Memory::release(uint64_t handle) {
  auto found = handles_.find(handle);
  if (found == handles_.end()) return kInvalid;
  count(-static_cast<ptrdiff_t>(found->second.counted));
  if (found->second.file >= 0) ::close(found->second.file);
  handles_.erase(found);
  return 0;
}

Result Memory::map(Address at, size_t bytes, uint64_t handle) {
  auto found = handles_.find(handle);
  if (found == handles_.end() || found->second.bytes != bytes) return kInvalid;
  found->second.at = at;
  add_range(at, bytes);
  if (found->second.file >= 0) {
    lay_over(at, found->second);
  } else {
    poison(at, bytes);
  }
  return 0;
}

Result Memory::unmap(Address at, size_t bytes) {
  if (!holds(at, bytes)) return kInvalid;
  remove_range(at, bytes);
  give_up(at, bytes);
  return 0;
}

bool Memory::holds(Address at, size_t bytes) const {
  auto next = ranges_.upper_bound(at);
  if (next == ranges_.begin()) return false;
  auto range = std::prev(next);
  return at + bytes <= range->first + range->second;
}

void Memory::open() {
  if (open_++ > 0) return;
  for (auto [at, bytes] : ranges_) {
    mprotect(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE);
  }
}

void Memory::close() {
  if (--open_ > 0) return;
  for (auto [at, bytes] : ranges_) {
    mprotect(reinterpret_cast<void*>(at), bytes, PROT_NONE);
  }
}

}  // namespace emulator
