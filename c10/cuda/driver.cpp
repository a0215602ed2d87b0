#include <taeda/c10/cuda/driver.h>

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

namespace taeda::cuda {

void* open_library(const char* variable,
                   std::initializer_list<std::string> names,
                   std::string* errors) {
  const char* given = std::getenv(variable);
  const std::string named = given == nullptr ? "" : given;
  const std::initializer_list<std::string> only = {named};
  for (const std::string& name : named.empty() ? names : only) {
    if (void* found = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    const char* reason = dlerror();
    if (!errors->empty()) errors->append("; ");
    errors->append(reason != nullptr ? reason : "unknown error");
  }
  return nullptr;
}

namespace {

struct Loaded {
  Driver functions{};
  std::string error;  // empty where the driver can be used
};

Loaded load() {
  Loaded made;
  std::string errors;
  void* library = open_library("TAEDA_CUDA_DRIVER", {"libcuda.so.1"}, &errors);
  if (library == nullptr) {
    made.error = "Found no NVIDIA driver on your system: " + errors;
    return made;
  }
  Driver& d = made.functions;
#define TAEDA_FIND(symbol, name, parameters) \
  d.name = reinterpret_cast<Result(*) parameters>(dlsym(library, #symbol));
  TAEDA_CUDA_FUNCTIONS(TAEDA_FIND)
  TAEDA_CUDA_LATER_FUNCTIONS(TAEDA_FIND)
  TAEDA_CUDA_CHECKER_FUNCTIONS(TAEDA_FIND)
#undef TAEDA_FIND
#define TAEDA_NEED(symbol, name, parameters)                               \
  if (d.name == nullptr) {                                                 \
    made.error =                                                           \
        "The NVIDIA driver on your system is too old: it has no " #symbol; \
  }
  TAEDA_CUDA_FUNCTIONS(TAEDA_NEED)
#undef TAEDA_NEED
  if (!made.error.empty()) return made;
  Result status = d.init(0);
  if (status == kSuccess) return made;
  const char* text = nullptr;
  d.error_text(status, &text);
  made.error = str_cat("CUDA driver initialization failed: ",
                       text == nullptr ? "unknown error" : text,
                       " (cuInit: ",
                       status,
                       ")");
  return made;
}

}  // namespace

const Driver& driver() {
  // Never destroyed: memory may be freed while the process ends.
  static const Loaded& loaded = *new Loaded(load());
  TAEDA_CHECK(loaded.error.empty(), loaded.error);
  return loaded.functions;
}

constexpr Result kContextIsGone = 709;  // CUDA_ERROR_CONTEXT_IS_DESTROYED

void throw_status(Result status, const char* call) {
  const char* text = nullptr;
  driver().error_text(status, &text);
  const char* advice = "";
  if (status >= kNotRecordable && status <= kLastOfRecording) {
    advice =
        ". While a CUDA graph is captured nothing may wait for the GPU or look "
        "at what is on it";
  } else if (status == kContextIsGone) {
    advice =
        ". The device was reset: its streams, events and tensors are gone for "
        "this process";
  }
  throw_error(
      status == kOutOfMemory ? ErrorKind::OutOfMemory : ErrorKind::Runtime,
      str_cat("CUDA error: ",
              text == nullptr ? "unknown error" : text,
              " (",
              call,
              ": ",
              status,
              ")",
              advice));
}

}  // namespace taeda::cuda
