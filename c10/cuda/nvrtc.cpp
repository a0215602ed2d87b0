#include <taeda/c10/cuda/nvrtc.h>

#include <taeda/c10/cuda/library.h>

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace taeda::cuda {

namespace {

namespace fs = std::filesystem;
using Status = int;                           // nvrtcResult
using ProgramHandle = struct ProgramObject*;  // nvrtcProgram

#define TAEDA_NVRTC_FUNCTIONS(X)                                \
  X(nvrtcVersion, version, (int* major, int* minor))            \
  X(nvrtcCreateProgram,                                         \
    create,                                                     \
    (ProgramHandle*,                                            \
     const char* text,                                          \
     const char* name,                                          \
     int header_count,                                          \
     const char* const* headers,                                \
     const char* const* names))                                 \
  X(nvrtcDestroyProgram, destroy, (ProgramHandle*))             \
  X(nvrtcCompileProgram,                                        \
    compile,                                                    \
    (ProgramHandle, int count, const char* const* options))     \
  X(nvrtcGetCUBINSize, code_size, (ProgramHandle, size_t*))     \
  X(nvrtcGetCUBIN, code, (ProgramHandle, char*))                \
  X(nvrtcGetProgramLogSize, log_size, (ProgramHandle, size_t*)) \
  X(nvrtcGetProgramLog, log, (ProgramHandle, char*))

struct Compiler {
#define TAEDA_MEMBER(symbol, name, parameters) Status(*name) parameters;
  TAEDA_NVRTC_FUNCTIONS(TAEDA_MEMBER)
#undef TAEDA_MEMBER
  std::string found_version;
  std::string error;
};

// The compiler needs a library of built-ins, which it finds by itself in the
// system's folders alone; elsewhere it is loaded first, by its full path.
void* open_beside(const fs::path& folder) {
  fs::path builtins, compiler;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    if (name.find(".alt.") != name.npos) continue;
    if (name.starts_with("libnvrtc-builtins.so")) builtins = entry.path();
    if (name.starts_with("libnvrtc.so")) compiler = entry.path();
  }
  if (builtins.empty() || compiler.empty()) return nullptr;
  if (dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return nullptr;
  }
  return dlopen(compiler.c_str(), RTLD_NOW | RTLD_LOCAL);
}

void* open_compiler(std::string* errors) {
  if (std::getenv("TAEDA_CUDA_NVRTC") == nullptr) {
    for (const std::string& folder : library_folders()) {
      if (void* found = open_beside(folder)) return found;
    }
  }
  return open_library("TAEDA_CUDA_NVRTC",
                      {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                      errors);
}

Compiler load() {
  Compiler made{};
  std::string errors;
  void* library = open_compiler(&errors);
  if (library == nullptr) {
    made.error =
        "CUDA kernels are compiled when they are first used, which needs "
        "NVRTC: install the package nvidia-cuda-nvrtc, or CUDA's toolkit (" +
        errors + ")";
    return made;
  }
  FunctionFinder finder{library, "NVRTC", &made.error};
#define TAEDA_FIND(symbol, name, parameters) finder.find(#symbol, &made.name);
  TAEDA_NVRTC_FUNCTIONS(TAEDA_FIND)
#undef TAEDA_FIND
  if (!made.error.empty()) return made;
  int major = 0, minor = 0;
  made.version(&major, &minor);
  made.found_version = str_cat(major, ".", minor);
  return made;
}

const Compiler& compiler() {
  static const Compiler& loaded = *new Compiler(load());
  TAEDA_CHECK(loaded.error.empty(), loaded.error);
  return loaded;
}

class Program {
 public:
  Program(const std::string& text, const Header* headers, size_t count) {
    std::vector<const char*> names, texts;
    for (size_t i = 0; i < count; ++i) {
      names.push_back(headers[i].name);
      texts.push_back(headers[i].text);
    }
    Status status = compiler().create(&handle_,
                                      text.c_str(),
                                      "taeda_kernel.cu",
                                      static_cast<int>(count),
                                      texts.data(),
                                      names.data());
    TAEDA_CHECK(status == 0, "nvrtcCreateProgram: ", status);
  }
  ~Program() { compiler().destroy(&handle_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void compile(const std::string& architecture) {
    std::string target = "--gpu-architecture=" + architecture;
    // Products and sums round each, as on the CPU, so that numbers agree.
    const char* options[] = {
        "--std=c++20", "-default-device", "--fmad=false", target.c_str()};
    Status status = compiler().compile(
        handle_, static_cast<int>(std::size(options)), options);
    if (status == 0) return;
    size_t size = 0;
    compiler().log_size(handle_, &size);
    std::string log(size, '\0');
    compiler().log(handle_, log.data());
    TAEDA_CHECK(false, "NVRTC refused a kernel (", status, "):\n", log);
  }

  std::string code() const {
    size_t size = 0;
    Status status = compiler().code_size(handle_, &size);
    TAEDA_CHECK(status == 0, "nvrtcGetCUBINSize: ", status);
    std::string made(size, '\0');
    status = compiler().code(handle_, made.data());
    TAEDA_CHECK(status == 0, "nvrtcGetCUBIN: ", status);
    return made;
  }

 private:
  ProgramHandle handle_ = nullptr;
};

}  // namespace

const std::string& compiler_version() { return compiler().found_version; }

std::string compile(const std::string& text,
                    const std::string& architecture,
                    const Header* headers,
                    size_t header_count) {
  Program program(text, headers, header_count);
  program.compile(architecture);
  return program.code();
}

}  // namespace taeda::cuda
