// The folder of compiled kernels: Note [Cache of kernels].
#include <taeda/csrc/compiler/loops/toolchain.h>

#include <taeda/c10/util/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <utility>

namespace taeda::compiler::loops {

namespace fs = std::filesystem;

namespace {

constexpr char kMagic[9] = "TAEDAKRN";
constexpr size_t kTail = 8 + 16;  // magic, checksum

// FNV-1a in two lanes with different starts: it tells damage, not malice.
struct Hash {
  uint64_t one = 0xcbf29ce484222325u;
  uint64_t two = 0x9ae16a3b2f90404fu;
  void add(std::string_view text) {
    for (char c : text) {
      one = (one ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
      two = (two ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
      two ^= two >> 29;
    }
  }
};

std::string hex(uint64_t v) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; v >>= 4) text[i] = digits[v & 15];
  return text;
}

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

fs::path wanted_folder() {
  if (const char* named = std::getenv("TAEDA_CACHE_DIR")) return named;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME")) {
    if (*xdg != '\0') return fs::path(xdg) / "taeda";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return fs::path(home) / ".cache" / "taeda";
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::strcmp(value, "1") == 0;
}

struct Settings {
  std::mutex mutex;  // guards the others
  bool used = !is_set("TORCH_COMPILE_FORCE_DISABLE_CACHES") &&
              !is_set("TORCHINDUCTOR_FORCE_DISABLE_CACHES");
  std::string tag;

  Settings() {
    const char* given = std::getenv("TORCH_COMPILE_CACHE_KEY_TAG");
    if (given != nullptr) tag = given;
  }
};

Settings& settings() {
  static Settings made;
  return made;
}

}  // namespace

void configure_cache(bool used, std::string tag) {
  std::lock_guard lock(settings().mutex);
  settings().used = used;
  settings().tag = std::move(tag);
}

std::optional<std::string> cache_folder() {
  {
    std::lock_guard lock(settings().mutex);
    if (!settings().used) return std::nullopt;
  }
  fs::path folder = wanted_folder();
  if (folder.empty()) return std::nullopt;
  folder /= "kernels";
  std::error_code error;
  fs::create_directories(folder, error);
  if (access(folder.c_str(), R_OK | W_OK | X_OK) != 0) return std::nullopt;
  return folder.string();
}

std::string cache_path(const std::string& folder, const std::string& text) {
  Hash hash;
  hash.add(toolchain().identity);
  {
    std::lock_guard lock(settings().mutex);
    hash.add(settings().tag);
  }
  hash.add(text);
  return str_cat(folder, "/", hex(hash.one), hex(hash.two), ".so");
}

bool check_cached(const std::string& path) {
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0) return false;
  if (facts.st_uid != geteuid() || (facts.st_mode & S_IWOTH) != 0) return false;
  std::string all = read_all(path);
  if (all.size() < kTail) return false;
  std::string_view body(all.data(), all.size() - kTail);
  const char* tail = all.data() + body.size();
  Hash hash;
  hash.add(body);
  uint64_t sums[2];
  std::memcpy(sums, tail + 8, sizeof(sums));
  bool whole = std::memcmp(tail, kMagic, 8) == 0 && sums[0] == hash.one &&
               sums[1] == hash.two;
  // Its time tells when it was last used.
  if (whole) utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return whole;
}

bool put_in_cache(const std::string& made, const std::string& path) {
  Hash hash;
  hash.add(read_all(made));
  std::ofstream out(made, std::ios::binary | std::ios::app);
  out.write(kMagic, 8);
  out.write(reinterpret_cast<const char*>(&hash.one), 8);
  out.write(reinterpret_cast<const char*>(&hash.two), 8);
  out.close();
  if (!out) return false;
  return std::rename(made.c_str(), path.c_str()) == 0;
}

void bound_cache(const std::string& folder, int64_t limit) {
  struct File {
    fs::file_time_type time;
    int64_t size;
    fs::path path;
  };
  std::vector<File> files;
  int64_t total = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".so") continue;
    auto size = static_cast<int64_t>(entry.file_size(error));
    files.push_back({entry.last_write_time(error), size, entry.path()});
    total += size;
  }
  if (total <= limit) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return a.time < b.time;
  });
  // Down to three quarters, so that not every new file pays for this.
  for (const File& file : files) {
    if (total <= limit / 4 * 3) break;
    fs::remove(file.path, error);
    total -= file.size;
  }
}

}  // namespace taeda::compiler::loops
