#include <taeda/aten/native/cuda/program_files.h>
#include <taeda/aten/native/cuda/texts.h>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace taeda::cuda {

namespace {

namespace fs = std::filesystem;

// FNV-1a (Fowler, Noll and Vo), 64 bits.
uint64_t hash_of(std::string_view bytes, uint64_t from) {
  for (char c : bytes) {
    from = (from ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  return from;
}
constexpr uint64_t kStart = 0xcbf29ce484222325ull;

std::string hex(uint64_t value) {
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) {
    out[i] = "0123456789abcdef"[value & 15];
  }
  return out;
}

fs::path folder() {
  if (const char* named = std::getenv("TAEDA_CACHE_DIR")) {
    return fs::path(named) / "cuda";
  }
  if (const char* xdg = std::getenv("XDG_CACHE_HOME")) {
    return fs::path(xdg) / "taeda" / "cuda";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr) return {};
  return fs::path(home) / ".cache" / "taeda" / "cuda";
}

// Of all headers that a text may include.
uint64_t headers_hash() {
  static const uint64_t hash = [] {
    uint64_t h = kStart;
    Headers all = headers();
    for (size_t i = 0; i < all.count; ++i) {
      h = hash_of(all.list[i].name, h);
      h = hash_of(all.list[i].text, h);
    }
    return h;
  }();
  return hash;
}

}  // namespace

ProgramFile::ProgramFile(const std::string& text,
                         const std::string& architecture) {
  uint64_t text_hash = hash_of(text, kStart);
  key_ = str_cat("taeda cuda 1 ",
                 architecture,
                 " nvrtc ",
                 compiler_version(),
                 " headers ",
                 hex(headers_hash()),
                 " text ",
                 text.size(),
                 " ",
                 hex(text_hash),
                 hex(hash_of(text, text_hash)));
  fs::path where = folder();
  if (where.empty()) return;
  std::string name = hex(hash_of(key_, kStart)) + hex(text_hash) + ".cubin";
  path_ = (where / name).string();
}

std::string ProgramFile::read() const {
  if (path_.empty()) return "";
  std::ifstream in(path_, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  // The key, a line end, the checksum of the rest.
  size_t head = key_.size() + 1 + 16 + 1;
  if (content.size() <= head || content.compare(0, key_.size(), key_) != 0) {
    return "";
  }
  std::string code = content.substr(head);
  std::string sum = content.substr(key_.size() + 1, 16);
  return sum == hex(hash_of(code, kStart)) ? code : "";
}

void ProgramFile::write(const std::string& code) const {
  if (path_.empty()) return;
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  std::string beside = str_cat(path_, ".", static_cast<int64_t>(getpid()));
  {
    std::ofstream out(beside, std::ios::binary);
    out << key_ << '\n' << hex(hash_of(code, kStart)) << '\n' << code;
    if (!out.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(beside, path_, error);
  if (error) fs::remove(beside, error);
}

}  // namespace taeda::cuda
