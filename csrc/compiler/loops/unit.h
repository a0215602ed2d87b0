// Machine code of printed kernels: compiled beside the program, kept on disk.
#pragma once

#include <taeda/c10/util/intrusive_ptr.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace taeda::compiler::loops {

// Texts for who wants to read them: TAEDA_KERNEL_TEXTS names a folder that they
// are written to.
bool keeps_texts();
void keep_text(const std::string& text, const char* extension);

using Kernel = void (*)(void* const* buffers,
                        const int64_t* numbers,
                        int64_t begin,
                        int64_t end);

// Note [Units]
// A unit is one C++ text. request() hands it to the process's compiling thread
// and returns; who wants to run a kernel asks whether the code is there. That
// thread looks into the cache folder, else runs the compiler as a process of
// its own group, so that Ctrl-C does not reach it. What goes wrong (no
// compiler, a folder that cannot be written, a text that does not compile) is
// said in one line, and then the unit has failed: its calls run as they are.
// After a fork the child has no compiling thread; it starts one when it asks
// for a unit that is not there yet.
class Unit : public IntrusiveTarget {
 public:
  Unit(std::string text, std::vector<std::string> names);
  ~Unit() override;

  enum State : uint8_t { kNew, kWaiting, kReady, kFailed };
  // Whether the kernels may be called; asks for them where nobody has yet.
  bool ready() {
    State now = state_.load(std::memory_order_acquire);
    if (now == kReady) return true;
    return now != kFailed && request();
  }
  // Waits until the unit is ready or has failed.
  bool wait();
  bool has_failed() const { return state_ == kFailed; }
  Kernel kernel(size_t index) const { return kernels_[index]; }
  const std::string& text() const { return text_; }

  // Called by the compiling thread alone.
  void build();

 private:
  bool request();
  bool open(const std::string& path);

  std::string text_;
  std::vector<std::string> names_;
  std::vector<Kernel> kernels_;
  void* library_ = nullptr;
  std::atomic<State> state_{kNew};
  std::atomic<int64_t> process_{0};  // that the request was made in
};

// Files of the cache folder whose kernels this process has loaded.
std::vector<std::string> opened_kernels();

}  // namespace taeda::compiler::loops
