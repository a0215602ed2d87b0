#include <taeda/c10/core/kept_forms.h>
#include <taeda/c10/core/shared_memory.h>
#include <taeda/c10/util/check.h>
#include <taeda/c10/util/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

namespace taeda {

namespace {
// Before the data of a named object; as long as the allocator aligns.
struct alignas(64) Head {
  std::atomic<int32_t> users;
};

using FileId = std::pair<dev_t, ino_t>;

struct Block {
  SharedMemory memory;
  void* base = nullptr;
  size_t mapped = 0;
  StorageImpl* owner = nullptr;  // alive or in its destructor
  pid_t counted_in = -1;
  FileId id{};

  Head* head() const { return static_cast<Head*>(base); }
  bool is_named() const { return memory.kind == SharedKind::Name; }
  char* data() const {
    return static_cast<char*>(base) + (is_named() ? sizeof(Head) : 0);
  }
};

// The mappings of this process. The lock covers all that it holds; a storage
// leaves it in its destructor, before its own memory is gone.
struct Table {
  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Block>> by_address;
  std::map<FileId, Block*> by_file;

  Block* find(const StorageImpl& storage) {
    auto at = by_address.find(storage.data());
    bool is_it =
        at != by_address.end() && at->second->owner == std::addressof(storage);
    return is_it ? at->second.get() : nullptr;
  }
};

// Never destroyed: storages outlive static objects.
Table& table() {
  static auto& instance = *new Table;
  return instance;
}

std::string system_error() {
  int number = errno;
  return message("{} ({})", std::strerror(number), number);
}

// A descriptor that is closed unless it is taken.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int take() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

FileId id_of(int fd) {
  struct stat about {};
  TAEDA_CHECK(::fstat(fd, &about) == 0,
              message("shared memory: cannot stat: {}", system_error()));
  return {about.st_dev, about.st_ino};
}

void unlink_if_last(Block& block) {
  if (block.head()->users.fetch_sub(1) == 1) {
    ::shm_unlink(block.memory.name.c_str());
  }
}

void release_block(void* context, size_t) {
  auto* block = static_cast<Block*>(context);
  std::unique_ptr<Block> mine;
  {
    const std::lock_guard<std::mutex> lock(table().mutex);
    auto at = table().by_address.find(block->data());
    mine = std::move(at->second);
    table().by_address.erase(at);
    auto same = table().by_file.find(block->id);
    if (same != table().by_file.end() && same->second == block) {
      table().by_file.erase(same);
    }
  }
  if (mine->is_named() && mine->counted_in == ::getpid()) unlink_if_last(*mine);
  ::munmap(mine->base, mine->mapped);
  if (mine->memory.descriptor >= 0) ::close(mine->memory.descriptor);
}

void* map(int fd, size_t nbytes, int flags, const std::string& name) {
  void* base =
      ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, flags, fd, /*offset=*/0);
  TAEDA_CHECK(base != MAP_FAILED,
              message("unable to mmap {} bytes from file <{}>: {}",
                      nbytes,
                      name,
                      system_error()));
  return base;
}

// Makes a storage of the mapped block and enters both into the table.
Storage enter(std::unique_ptr<Block> block, size_t nbytes) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  Block* known = block.get();
  auto made = make_intrusive<StorageImpl>(
      DataPtr{known->data(), known, &release_block}, nbytes, Device());
  known->owner = made.get();
  table().by_address[known->data()] = std::move(block);
  if (known->memory.kind != SharedKind::File)
    table().by_file[known->id] = known;
  return made;
}

// A storage over this object that is alive, or null.
Storage find_open(const FileId& id, size_t nbytes) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  auto at = table().by_file.find(id);
  if (at == table().by_file.end()) return nullptr;
  StorageImpl* owner = at->second->owner;
  if (owner->nbytes() != nbytes || !owner->try_retain()) return nullptr;
  return Storage::adopt(owner);
}

// mmap refuses lengths of zero.
size_t mapped_bytes(SharedKind kind, size_t nbytes) {
  size_t head = kind == SharedKind::Name ? sizeof(Head) : 0;
  return head + std::max<size_t>(nbytes, 1);
}

Storage map_object(Descriptor fd,
                   SharedMemory memory,
                   size_t nbytes,
                   bool fresh) {
  auto block = std::make_unique<Block>();
  block->memory = std::move(memory);
  block->mapped = mapped_bytes(block->memory.kind, nbytes);
  block->id = id_of(fd.get());
  block->base = map(fd.get(), block->mapped, MAP_SHARED, block->memory.name);
  if (block->is_named()) {
    if (fresh) new (block->base) Head{0};
    block->head()->users.fetch_add(1);
    block->counted_in = ::getpid();
  } else {
    block->memory.descriptor = fd.take();
  }
  return enter(std::move(block), nbytes);
}

// Names -------------------------------------------------------------------

int open_new_name(std::string& name) {
  static std::atomic<uint64_t> count{0};
  for (;;) {
    name = message("/taeda_{}_{}", ::getpid(), count.fetch_add(1));
    int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

int open_nameless() {
#ifdef __linux__
  return ::memfd_create("taeda", MFD_CLOEXEC);
#else
  std::string name;
  int fd = open_new_name(name);
  if (fd >= 0) ::shm_unlink(name.c_str());
  return fd;
#endif
}

// Reserves the bytes where it can be done: writing to a page for which there
// is no room would end the process.
bool set_length(int fd, size_t nbytes, bool reserve) {
  if (::ftruncate(fd, static_cast<off_t>(nbytes)) != 0) return false;
#ifdef __linux__
  if (reserve) {
    errno = ::posix_fallocate(fd, /*offset=*/0, static_cast<off_t>(nbytes));
    return errno == 0;
  }
#endif
  return true;
}

void check_size(int fd, size_t nbytes, const std::string& name) {
  struct stat about {};
  TAEDA_CHECK(
      ::fstat(fd, &about) == 0,
      message("unable to stat the file <{}>: {}", name, system_error()));
  auto size = static_cast<size_t>(about.st_size);
  TAEDA_CHECK(
      size >= nbytes,
      message("file <{}> size <{}> is smaller than the required mapping "
              "size <{}>",
              name,
              size,
              nbytes));
}
}  // namespace

Storage new_shared_storage(size_t nbytes, SharedKind kind) {
  SharedMemory memory{kind, -1, {}};
  bool named = kind == SharedKind::Name;
  Descriptor fd(named ? open_new_name(memory.name) : open_nameless());
  TAEDA_CHECK(fd.get() >= 0,
              message("unable to open shared memory object <{}> in read-write "
                      "mode: {}",
                      memory.name,
                      system_error()));
  if (!set_length(fd.get(), mapped_bytes(kind, nbytes), /*reserve=*/named)) {
    std::string reason = system_error();
    if (named) ::shm_unlink(memory.name.c_str());
    throw_error(ErrorKind::Runtime,
                message("unable to resize shared memory object <{}> to {} "
                        "bytes: {}",
                        memory.name,
                        nbytes,
                        reason));
  }
  return map_object(Descriptor(fd.take()), memory, nbytes, /*fresh=*/true);
}

void share_memory(StorageImpl& storage, SharedKind kind) {
  TAEDA_CHECK(storage.device().is_cpu(), "_share_fd_: only available on CPU");
  if (shared_memory_of(storage)) return;
  Storage fresh = new_shared_storage(storage.nbytes(), kind);
  if (storage.nbytes() > 0) {
    std::memcpy(fresh->mutable_data(), storage.data(), storage.nbytes());
  }
  const std::lock_guard<std::mutex> lock(table().mutex);
  Block* block = table().find(*fresh);
  storage.swap(*fresh);
  block->owner = &storage;
}

std::optional<SharedMemory> shared_memory_of(const StorageImpl& storage) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  Block* block = table().find(storage);
  if (block == nullptr) return std::nullopt;
  return block->memory;
}

Storage open_shared_descriptor(int descriptor, size_t nbytes) {
  Descriptor fd(descriptor);
  if (Storage open = find_open(id_of(fd.get()), nbytes)) return open;
  check_size(fd.get(), nbytes, "shared memory");
  SharedMemory memory{SharedKind::Descriptor, -1, {}};
  return map_object(
      Descriptor(fd.take()), std::move(memory), nbytes, /*fresh=*/false);
}

Storage open_shared_name(const std::string& name, size_t nbytes) {
  Descriptor fd(::shm_open(name.c_str(), O_RDWR, 0600));
  TAEDA_CHECK(fd.get() >= 0,
              message("unable to open shared memory object <{}> in read-write "
                      "mode: {}",
                      name,
                      system_error()));
  if (Storage open = find_open(id_of(fd.get()), nbytes)) return open;
  check_size(fd.get(), mapped_bytes(SharedKind::Name, nbytes), name);
  SharedMemory memory{SharedKind::Name, -1, name};
  return map_object(
      Descriptor(fd.take()), std::move(memory), nbytes, /*fresh=*/false);
}

void retain_shared_name(const StorageImpl& storage) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  Block* block = table().find(storage);
  if (block == nullptr || !block->is_named()) return;
  bool inherited = std::exchange(block->counted_in, ::getpid()) != ::getpid();
  block->head()->users.fetch_add(inherited ? 2 : 1);
}

void release_shared_name(const StorageImpl& storage) {
  const std::lock_guard<std::mutex> lock(table().mutex);
  Block* block = table().find(storage);
  if (block != nullptr && block->is_named()) unlink_if_last(*block);
}

Storage map_file(const std::string& path, bool shared, size_t nbytes) {
  int flags = shared ? O_RDWR | O_CREAT : O_RDONLY;
  Descriptor fd(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  TAEDA_CHECK(fd.get() >= 0,
              message("unable to open file <{}> in {} mode: {}",
                      path,
                      shared ? "read-write" : "read-only",
                      system_error()));
  struct stat about {};
  bool known = ::fstat(fd.get(), &about) == 0;
  bool too_short = known && static_cast<size_t>(about.st_size) < nbytes;
  if (shared && too_short) {
    TAEDA_CHECK(set_length(fd.get(), nbytes, /*reserve=*/false),
                message("unable to stretch file <{}> to the right size: {}",
                        path,
                        system_error()));
  }
  check_size(fd.get(), nbytes, path);
  if (nbytes == 0) {
    return make_intrusive<StorageImpl>(size_t{0}, cpu_allocator(), Device());
  }
  auto block = std::make_unique<Block>();
  block->memory = {SharedKind::File, -1, shared ? path : std::string()};
  block->mapped = nbytes;
  block->base = map(fd.get(), nbytes, shared ? MAP_SHARED : MAP_PRIVATE, path);
  Storage made = enter(std::move(block), nbytes);
  if (shared) show_memory(*made);
  return made;
}

Storage map_descriptor(int descriptor, size_t nbytes) {
  check_size(descriptor, nbytes, "shared memory");
  void* base = map(descriptor, nbytes, MAP_SHARED, "shared memory");
  auto unmap = [](void* mapped, size_t size) { ::munmap(mapped, size); };
  return make_intrusive<StorageImpl>(
      DataPtr{base, base, unmap}, nbytes, Device());
}

}  // namespace taeda
