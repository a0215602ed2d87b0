// Memory that other processes can map, as the bytes of a storage.
#pragma once

#include <taeda/c10/core/storage.h>

#include <optional>
#include <string>

namespace taeda {

// How another process finds the bytes.
enum class SharedKind : uint8_t {
  Descriptor,  // by a descriptor of a file without a name, passed on
  Name,        // by the name of a shared memory object
  File,        // not at all, or by the path of an ordinary file
};

struct SharedMemory {
  SharedKind kind = SharedKind::Descriptor;
  int descriptor = -1;  // Descriptor: open as long as the storage lives
  std::string name;     // Name, and File where writes reach the file
};

// Note [Names of shared memory]
// An object with a name is there until it is unlinked. The 64 bytes before its
// data count its users: processes that have it as a storage, and messages that
// are on their way. The last one unlinks it. A forked process inherits mappings
// without being counted, and is counted once it passes one on. An object whose
// user was killed stays; nothing here watches for that.

// Moves the bytes of a CPU storage. Where they are shared already, whichever
// way, they stay.
TAEDA_API void share_memory(StorageImpl& storage, SharedKind kind);
TAEDA_API Storage new_shared_storage(size_t nbytes, SharedKind kind);
// Empty for storages whose memory is not a mapping of a file.
TAEDA_API std::optional<SharedMemory> shared_memory_of(
    const StorageImpl& storage);

// The storage of this process over the same object where there is one. The
// descriptor is taken over.
TAEDA_API Storage open_shared_descriptor(int descriptor, size_t nbytes);
TAEDA_API Storage open_shared_name(const std::string& name, size_t nbytes);
// A message's use of a named object, see the note.
TAEDA_API void retain_shared_name(const StorageImpl& storage);
TAEDA_API void release_shared_name(const StorageImpl& storage);

// The first bytes of a file. With `shared`, writes reach the file, which is
// made where it is missing and longer where it is too short.
TAEDA_API Storage map_file(const std::string& path, bool shared, size_t nbytes);

// The first bytes of an open file that has no name: writes reach whoever maps
// it too. The storage keeps no descriptor, so no other process can be shown it.
TAEDA_API Storage map_descriptor(int descriptor, size_t nbytes);

}  // namespace taeda
