#include "emulator.h"

#include <sys/mman.h>

#include <cstring>

namespace emulator {

namespace {

constexpr size_t kPage = 4096;
constexpr unsigned char kPattern = 0xff;

size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Result map_nothing(Address* out, size_t bytes) {
  void* at = mmap(nullptr,
                  bytes,
                  PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1,
                  0);
  if (at == MAP_FAILED) return taeda::cuda::kOutOfMemory;
  *out = reinterpret_cast<Address>(at);
  return 0;
}

}  // namespace

void Memory::poison(Address at, size_t bytes) {
  open();
  std::memset(reinterpret_cast<void*>(at), kPattern, bytes);
  close();
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

// What lies behind the last byte of a block is a page that nobody may touch.
Result Memory::allocate(Address* out, size_t bytes) {
  if (bytes == 0) return kInvalid;
  if (used + bytes > total) return taeda::cuda::kOutOfMemory;
  if (Result r = map_nothing(out, pages(bytes) + kPage)) return r;
  used += bytes;
  blocks_.emplace(*out, bytes);
  add_range(*out, pages(bytes));
  poison(*out, bytes);
  return 0;
}

Result Memory::free(Address at) {
  auto found = blocks_.find(at);
  if (found == blocks_.end()) return kInvalid;
  used -= found->second;
  remove_range(at, pages(found->second));
  munmap(reinterpret_cast<void*>(at), pages(found->second) + kPage);
  blocks_.erase(found);
  return 0;
}

Result Memory::reserve(Address* out, size_t bytes) {
  return map_nothing(out, bytes);
}

Result Memory::unreserve(Address at, size_t bytes) {
  munmap(reinterpret_cast<void*>(at), bytes);
  return 0;
}

Result Memory::create(uint64_t* out, size_t bytes) {
  if (used + bytes > total) return taeda::cuda::kOutOfMemory;
  used += bytes;
  *out = next_handle_++;
  handles_.emplace(*out, bytes);
  return 0;
}

Result Memory::release(uint64_t handle) {
  auto found = handles_.find(handle);
  if (found == handles_.end()) return kInvalid;
  used -= found->second;
  handles_.erase(found);
  return 0;
}

Result Memory::map(Address at, size_t bytes, uint64_t handle) {
  auto found = handles_.find(handle);
  if (found == handles_.end() || found->second != bytes) return kInvalid;
  add_range(at, bytes);
  poison(at, bytes);
  return 0;
}

Result Memory::unmap(Address at, size_t bytes) {
  if (!holds(at, bytes)) return kInvalid;
  remove_range(at, bytes);
  void* start = reinterpret_cast<void*>(at);
  madvise(start, bytes, MADV_DONTNEED);
  mprotect(start, bytes, PROT_NONE);
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
