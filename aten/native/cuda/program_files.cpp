#include <taeda/aten/native/cuda/program_files.h>
#include <taeda/aten/native/cuda/texts.h>

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unordered_map>

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

namespace {

// What tells a text apart, with the version of the compiler where that counts.
std::string key_of(const std::string& text,
                   const std::string& architecture,
                   const std::string& compiler) {
  uint64_t text_hash = hash_of(text, kStart);
  return str_cat("taeda cuda 1 ",
                 architecture,
                 compiler,
                 " headers ",
                 hex(headers_hash()),
                 " text ",
                 text.size(),
                 " ",
                 hex(text_hash),
                 hex(hash_of(text, text_hash)));
}

fs::path packed_file() {
  if (const char* named = std::getenv("TAEDA_CUDA_PROGRAMS")) return named;
  Dl_info info{};
  bool found = dladdr(reinterpret_cast<void*>(&packed_program), &info) != 0;
  if (!found || info.dli_fname == nullptr) return {};
  return fs::path(info.dli_fname).parent_path() / "taeda_cuda_programs.bin";
}

// Where each program lies in the file: a line for its key, one for its
// checksum and bytes, and these.
struct Packed {
  struct Part {
    std::streamoff at;
    size_t bytes;
    std::string sum;
  };
  fs::path path = packed_file();
  std::unordered_map<std::string, Part> parts;

  Packed() {
    std::ifstream in(path, std::ios::binary);
    std::string key, sum;
    size_t bytes = 0;
    while (std::getline(in, key) && in >> sum >> bytes && in.get() == '\n') {
      parts[key] = {in.tellg(), bytes, sum};
      in.seekg(static_cast<std::streamoff>(bytes), std::ios::cur);
    }
  }
};

}  // namespace

std::string packed_program(const std::string& text,
                           const std::string& architecture) {
  static const Packed& packed = *new Packed;
  if (packed.parts.empty()) return "";
  auto found = packed.parts.find(key_of(text, architecture, ""));
  if (found == packed.parts.end()) return "";
  const Packed::Part& part = found->second;
  std::ifstream in(packed.path, std::ios::binary);
  std::string code(part.bytes, '\0');
  in.seekg(part.at);
  in.read(code.data(), static_cast<std::streamsize>(part.bytes));
  return in.good() && part.sum == hex(hash_of(code, kStart)) ? code : "";
}

ProgramFile::ProgramFile(const std::string& text,
                         const std::string& architecture)
    : key_(key_of(text, architecture, str_cat(" nvrtc ", compiler_version()))) {
  fs::path where = folder();
  if (where.empty()) return;
  std::string name =
      hex(hash_of(key_, kStart)) + hex(hash_of(text, kStart)) + ".cubin";
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
