// Writes what kernels were called with on the host, and what they gave, to the
// file that TAEDA_HOST_CALLS names: for a GPU to repeat (record_calls.py).
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

namespace host_run {

// An argument is memory with its size, or a value.
struct Argument {
  bool memory;
  const void* bytes;
  size_t size;
};

class CallsFile {
 public:
  static CallsFile& get() {
    static CallsFile file;
    return file;
  }
  explicit operator bool() const { return file_ != nullptr; }

  void begin(const char* kernel, unsigned blocks, unsigned threads) {
    number(std::strlen(kernel));
    raw(kernel, std::strlen(kernel));
    number(blocks);
    number(threads);
  }
  void arguments(const std::vector<Argument>& all) {
    number(all.size());
    for (const Argument& a : all) {
      number(a.memory);
      number(a.size);
      raw(a.bytes, a.size);
    }
  }
  // Results of the first argument's type, which stand at some of its elements.
  void results(char kind,
               size_t element_size,
               const std::vector<int>& places,
               const void* values) {
    number(static_cast<unsigned char>(kind));
    number(element_size);
    number(places.size());
    raw(places.data(), places.size() * sizeof(int));
    raw(values, places.size() * element_size);
  }

 private:
  CallsFile() {
    const char* name = std::getenv("TAEDA_HOST_CALLS");
    if (name != nullptr) file_ = std::fopen(name, "wb");
  }
  ~CallsFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  void number(size_t value) {
    auto narrow = static_cast<uint32_t>(value);
    raw(&narrow, sizeof(narrow));
  }
  void raw(const void* bytes, size_t size) {
    if (size > 0 && std::fwrite(bytes, 1, size, file_) != size) std::abort();
  }

  std::FILE* file_ = nullptr;
};

// As NumPy names the kinds of numbers.
template <class R>
constexpr char kind_of_number() {
  if constexpr (std::is_same_v<R, bool>) return 'b';
  if constexpr (std::is_floating_point_v<R>) return 'f';
  if constexpr (!std::is_integral_v<R>) return 'c';
  return std::is_signed_v<R> ? 'i' : 'u';
}

}  // namespace host_run
