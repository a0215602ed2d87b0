// The C++ compiler of the machine, and the folder of what it made.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace taeda::compiler::loops {

// What the compiler is called with, but for the files.
struct Toolchain {
  std::string compiler;  // TAEDA_CXX, or g++, or c++
  std::vector<std::string> flags;
  std::string identity;  // changes when equal texts may become other code
};
const Toolchain& toolchain();

// Runs the compiler; what it says if it fails. Its process has a group of its
// own and is gone when this returns.
std::optional<std::string> run_compiler(const std::string& source,
                                        const std::string& library);
// Ends a compiler that another thread of this process waits for, for good: the
// process ends.
void stop_compiler();
bool is_stopping();

// Note [Cache of kernels]
// A file is named by a hash of the text, of the compiler with its flags and of
// the headers, and ends in a checksum of what stands before it. It appears by
// a rename, so that readers see a whole file or none. A file of another user,
// or whose checksum is wrong, is not loaded but made again. The folder is
// TAEDA_CACHE_DIR, or taeda in the user's cache folder; when it has more than
// kCacheBytes, what was not used for longest is taken away.
inline constexpr int64_t kCacheBytes = int64_t{256} << 20;

// Whether kernels are kept there and taken from there, and text that is part of
// their names: who changes it finds none of those that are there.
void configure_cache(bool used, std::string tag);
// The folder, made if it must be; nothing where that cannot be, or where it is
// not used.
std::optional<std::string> cache_folder();
std::string cache_path(const std::string& folder, const std::string& text);
// Whether a file is there, whole and this user's.
bool check_cached(const std::string& path);
// Adds the checksum and moves the file into its place.
bool put_in_cache(const std::string& made, const std::string& path);
void bound_cache(const std::string& folder, int64_t limit = kCacheBytes);

}  // namespace taeda::compiler::loops
