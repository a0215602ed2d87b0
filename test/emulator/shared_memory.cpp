#include "emulator.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace emulator {

using taeda::cuda::IpcHandle;

namespace {

// Note [Shared memory]
// Memory that another process opens moves to a file without a name, which is
// mapped at the same addresses. A handle says which process has it open, under
// which number.
struct Place {
  int64_t process;
  int64_t file;
  uint64_t bytes;
};

IpcHandle handle_for(int file, size_t bytes) {
  Place place{getpid(), file, bytes};
  IpcHandle out{};
  std::memcpy(out.bytes, &place, sizeof(place));
  return out;
}

int open_handle(const IpcHandle& handle, size_t* bytes) {
  Place place{};
  std::memcpy(&place, handle.bytes, sizeof(place));
  *bytes = place.bytes;
  std::string path = "/proc/" + std::to_string(place.process) + "/fd/" +
                     std::to_string(place.file);
  return ::open(path.c_str(), O_RDWR | O_CLOEXEC);
}

}  // namespace

// What other processes wrote there nobody here knows.
void Memory::lay_over(Address at, const Range& range) {
  mmap(reinterpret_cast<void*>(at),
       range.bytes,
       PROT_NONE,
       MAP_SHARED | MAP_FIXED,
       range.file,
       0);
  Arena::get().mark(at, range.bytes, kWritten);
}

void Memory::move_to_file(Range& range) {
  if (range.file >= 0) return;
  range.file = memfd_create("emulated_memory", MFD_CLOEXEC);
  if (ftruncate(range.file, static_cast<off_t>(range.bytes)) != 0) return;
  open();
  auto* from = reinterpret_cast<const char*>(range.at);
  for (size_t done = 0; done < range.bytes;) {
    ssize_t n = pwrite(
        range.file, from + done, range.bytes - done, static_cast<off_t>(done));
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  mmap(reinterpret_cast<void*>(range.at),
       range.bytes,
       PROT_READ | PROT_WRITE,
       MAP_SHARED | MAP_FIXED,
       range.file,
       0);
  close();
}

Result Memory::share(int* out, uint64_t handle) {
  auto found = handles_.find(handle);
  if (found == handles_.end()) return kInvalid;
  move_to_file(found->second);
  *out = fcntl(found->second.file, F_DUPFD_CLOEXEC, 0);
  return *out < 0 ? kInvalid : 0;
}

Result Memory::import(uint64_t* out, int file) {
  struct stat about {};
  if (fstat(file, &about) != 0) return kInvalid;
  Range range;
  range.bytes = static_cast<size_t>(about.st_size);
  range.file = fcntl(file, F_DUPFD_CLOEXEC, 0);
  *out = next_handle_++;
  handles_.emplace(*out, range);
  return 0;
}

Result Memory::share_block(IpcHandle* out, Address at) {
  auto found = blocks_.find(at);
  if (found == blocks_.end()) return kInvalid;
  move_to_file(found->second);
  *out = handle_for(found->second.file, found->second.bytes);
  return 0;
}

Result Memory::open_block(Address* out, const IpcHandle& handle) {
  Range range;
  range.file = open_handle(handle, &range.bytes);
  if (range.file < 0) return kInvalid;
  range.at = *out = Arena::get().take(range.bytes);
  blocks_.emplace(*out, range);
  size_t whole = (range.bytes + 4095) / 4096 * 4096;
  add_range(*out, whole);
  lay_over(*out, range);
  return 0;
}

}  // namespace emulator

using namespace emulator;

#define EXPORT extern "C" __attribute__((visibility("default"))) Result

namespace {

Counts* map_counts(int file) {
  void* at = mmap(
      nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<Counts*>(at);
}

}  // namespace

EXPORT cuIpcGetEventHandle(IpcHandle* out, Event* event) {
  std::lock_guard guard(Machine::get().mutex);
  if (event->file < 0) return kInvalid;  // not made for other processes
  *out = handle_for(event->file, sizeof(Counts));
  return 0;
}
EXPORT cuIpcOpenEventHandle(Event** out, IpcHandle handle) {
  std::lock_guard guard(Machine::get().mutex);
  size_t bytes = 0;
  int file = open_handle(handle, &bytes);
  if (file < 0) return kInvalid;
  auto* event = new Event;
  event->file = file;
  event->foreign = true;
  event->counts = map_counts(file);
  if (event->counts == nullptr) return kInvalid;
  Machine::get().shared_events.push_back(event);
  *out = event;
  return 0;
}

namespace emulator {

// The counts of an event that other processes may open.
bool share_counts(Event* event) {
  event->file = memfd_create("emulated_event", MFD_CLOEXEC);
  if (event->file < 0 || ftruncate(event->file, sizeof(Counts)) != 0) {
    return false;
  }
  event->counts = map_counts(event->file);
  if (event->counts == nullptr) return false;
  Machine::get().shared_events.push_back(event);
  return true;
}

void forget_counts(Event* event) {
  if (event->file < 0) return;
  std::erase(Machine::get().shared_events, event);
  munmap(event->counts, sizeof(Counts));
  close(event->file);
}

}  // namespace emulator
