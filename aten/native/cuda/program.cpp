#include <taeda/aten/native/cuda/program.h>
#include <taeda/aten/native/cuda/program_files.h>
#include <taeda/aten/native/cuda/texts.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace taeda::cuda {

namespace {

struct KeyHash {
  size_t operator()(const ProgramKey& key) const {
    auto hash = reinterpret_cast<uint64_t>(key.formula);
    for (size_t i = 0; i < key.used; ++i) {
      hash = (hash ^ key.bytes[i]) * 0x9e3779b97f4a7c15ull;
    }
    return hash ^ hash >> 32;
  }
};

constexpr size_t kMostDevices = 16;

// A program on each device that it ran on.
struct Program {
  std::array<std::once_flag, kMostDevices> once;
  std::array<FunctionHandle, kMostDevices> functions{};
};

struct Programs {
  std::shared_mutex mutex;
  std::unordered_map<ProgramKey, std::unique_ptr<Program>, KeyHash> known;
};
Programs& programs() {
  static auto& all = *new Programs;
  return all;
}

Program& find(const ProgramKey& key) {
  Programs& all = programs();
  {
    std::shared_lock guard(all.mutex);
    auto found = all.known.find(key);
    if (found != all.known.end()) return *found->second;
  }
  std::unique_lock guard(all.mutex);
  auto& made = all.known[key];
  if (made == nullptr) made = std::make_unique<Program>();
  return *made;
}

// "sm_90a": from 9.0 on, code for one architecture alone may use all of it.
std::string architecture_of(int device) {
  const GpuProperties& p = properties_of(device);
  return str_cat("sm_", p.major, p.minor, p.major >= 9 ? "a" : "");
}

// The kernel of a text gets its operator's name, which profilers and memory
// checkers show.
std::string kernel_name(std::string_view op) {
  std::string name(op.starts_with("k_") ? op.substr(2) : op);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name + "_kernel";
}
std::string named(std::string text, const std::string& name) {
  constexpr std::string_view kBefore = "__global__ void ";
  size_t at = text.find(str_cat(kBefore, "kernel("));
  TAEDA_INTERNAL_ASSERT(at != text.npos, name, ": a text without a kernel");
  return text.replace(at + kBefore.size(), std::strlen("kernel"), name);
}

std::string compiled(const std::string& text, const std::string& architecture) {
  Headers included = headers();
  return compile(text, architecture, included.list, included.count);
}

// From the wheel, else from disk, else compiled. What the driver refuses is
// damaged, or of another driver.
ModuleHandle load_module(const std::string& text,
                         const std::string& architecture) {
  ModuleHandle module = nullptr;
  std::string code = packed_program(text, architecture);
  if (!code.empty() && driver().module_load(&module, code.data()) == kSuccess) {
    return module;
  }
  ProgramFile file(text, architecture);
  code = file.read();
  if (!code.empty() && driver().module_load(&module, code.data()) == kSuccess) {
    return module;
  }
  code = compiled(text, architecture);
  check(driver().module_load(&module, code.data()), "cuModuleLoadData");
  file.write(code);
  return module;
}

FunctionHandle load(const char* op, std::string text, int device) {
  const std::string name = kernel_name(op);
  text = named(std::move(text), name);
  ModuleHandle module = load_module(text, architecture_of(device));
  FunctionHandle function = nullptr;
  check(driver().function_get(&function, module, name.c_str()),
        "cuModuleGetFunction");
  return function;
}

// CUDA_LAUNCH_BLOCKING=1: each launch waits, so that what a kernel finds wrong
// is raised by the call that started it.
bool launches_wait() {
  static const bool wait = [] {
    const char* text = std::getenv("CUDA_LAUNCH_BLOCKING");
    return text != nullptr && std::string_view(text) == "1";
  }();
  return wait;
}

}  // namespace

FunctionHandle program(const char* op,
                       const ProgramKey& key,
                       const std::function<std::string()>& text) {
  int device = current_device();
  auto at = static_cast<size_t>(device);
  TAEDA_CHECK(at < kMostDevices, "CUDA: more than ", kMostDevices, " devices");
  Program& found = find(key);
  std::call_once(found.once[at], [&] {
    use_context(device);
    RecordingPause pause;  // loading is no work of a stream
    found.functions[at] = load(op, text(), device);
  });
  return found.functions[at];
}

void launch(const char* op, FunctionHandle function, Grid grid, void* call) {
  use_context();
  StreamHandle stream = handle_of(current_stream());
  void* parameters[] = {call};
  Result status = driver().launch(function,
                                  grid.x,
                                  grid.y,
                                  1,
                                  grid.threads,
                                  1,
                                  1,
                                  0,
                                  stream,
                                  parameters,
                                  nullptr);
  if (TAEDA_UNLIKELY(status != kSuccess)) {
    throw_status(status, str_cat(op, ": cuLaunchKernel").c_str());
  }
  finish_launch();
}

void finish_launch() {
  if (TAEDA_UNLIKELY(launches_wait())) wait_for(current_stream());
}

}  // namespace taeda::cuda
