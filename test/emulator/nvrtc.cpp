// NVRTC's functions: g++ makes a shared library of the text.
#include "emulator.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#define EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

namespace fs = std::filesystem;

struct Program {
  std::string text;
  std::map<std::string, std::string> headers;
  std::string code, log;
};

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Where headers and sources of this process lie; removed when it ends.
const fs::path& folder() {
  static const fs::path& made = *new fs::path([] {
    std::string name = (fs::temp_directory_path() / "emulated-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    std::atexit([] {
      std::error_code ignored;
      fs::remove_all(folder(), ignored);
    });
    return name;
  }());
  return made;
}

void write_headers(const Program& program) {
  for (const auto& [name, text] : program.headers) {
    fs::path path = folder() / "include" / name;
    if (fs::exists(path)) continue;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
}

// Every access calls the checker (kernel_check.h), also where a sanitizer's
// library has functions of the same names. Shared memory is a static variable
// of an inline function, which all libraries with a function of that name would
// share without -fno-gnu-unique.
std::string command_for(const std::string& inputs) {
  const char* compiler = std::getenv("CXX");
  return std::string(compiler == nullptr ? "g++" : compiler) +
         " -std=c++20 -O1 -fPIC -fwrapv -fno-gnu-unique -w"
         " -fsanitize=kernel-address -Wl,-Bsymbolic"
         " --param asan-instrumentation-with-call-threshold=0"
         " --param asan-stack=0 --param asan-globals=0"
         " -I" EMULATOR_INCLUDE " -I" EMULATOR_SOURCES " -I" +
         (folder() / "include").string() + " " + inputs;
}

// What all texts include, read and understood once: a text then takes 0.05 s
// for 0.2 s. Without it they compile the same.
void precompile() {
  fs::path header = folder() / "include" / "all.h";
  if (fs::exists(header)) return;
  fs::create_directories(header.parent_path());
  {
    std::ofstream out(header);
    out << "#include <cstdint>\n#include \"host_device.h\"\n"
           "#include \"kernel_check.h\"\n";
    for (const char* name :
         {"pointwise", "reduce", "indexing", "layers", "random", "sorting"}) {
      std::string path = std::string("taeda/aten/native/cuda/") + name + ".cuh";
      if (fs::exists(folder() / "include" / path)) {
        out << "#include <" << path << ">\n";
      }
    }
  }
  std::string name = header.string();
  if (std::system(command_for("-x c++-header " + name + " -o " + name +
                              ".gch 2>/dev/null")
                      .c_str()) != 0) {
    std::error_code ignored;
    fs::remove(name + ".gch", ignored);
  }
}

// Only kernels whose threads wait for each other need a fiber for each.
bool waits(const std::string& text) {
  for (const char* word :
       {"loops.cuh", "reduce.cuh", "__syncthreads", "__launch_bounds__"}) {
    if (text.find(word) != text.npos) return true;
  }
  return false;
}

std::string name_of(const std::string& text) {
  return std::to_string(std::hash<std::string>()(text)) + ".cu";
}

std::string host_text(const std::string& text) {
  std::ostringstream out;
  out << "#include \"all.h\"\n"
      << text << "\n"
      << "extern \"C\" const char emulated_name[] = \"" << name_of(text)
      << "\";\nextern \"C\" const char emulated_text[] = R\"emulated(" << text
      << ")emulated\";\n";
  const std::regex kernel("__global__ void (\\w+)\\(");
  const char* launch = waits(text) ? "launch_values" : "launch_plain";
  for (std::sregex_iterator at(text.begin(), text.end(), kernel), end;
       at != end;
       ++at) {
    std::string name = (*at)[1];
    out << "extern \"C\" void emulated_" << name
        << "(unsigned x, unsigned y, unsigned threads, int backwards, void** "
           "p, emulator::CheckedMemory* memory) {\n"
           "  kernel_check::begin(memory);\n  host_device::"
        << launch << "(&taeda::" << name
        << ", {x, y}, threads, backwards != 0, p);\n}\n"
        << "extern \"C\" const size_t* emulated_" << name
        << "_sizes(size_t* count) {\n  return host_device::parameter_sizes(&"
        << "taeda::" << name << ", count);\n}\n";
  }
  return out.str();
}

}  // namespace

void emulator::keep_text(const char* name, const char* text) {
  const char* where = std::getenv("TAEDA_EMULATOR_TEXTS");
  if (where != nullptr) std::ofstream(fs::path(where) / name) << text;
}

EXPORT nvrtcVersion(int* major, int* minor) {
  *major = 0;  // no number of NVIDIA's
  *minor = EMULATOR_VERSION;
  return 0;
}
EXPORT nvrtcCreateProgram(Program** out,
                          const char* text,
                          const char*,
                          int count,
                          const char* const* headers,
                          const char* const* names) {
  auto* made = new Program{text, {}, {}, {}};
  for (int i = 0; i < count; ++i) made->headers[names[i]] = headers[i];
  *out = made;
  return 0;
}
EXPORT nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
EXPORT nvrtcCompileProgram(Program* program, int, const char* const*) {
  std::lock_guard guard(emulator::Machine::get().mutex);
  write_headers(*program);
  precompile();
  static int number = 0;
  fs::path base = folder() / ("kernel" + std::to_string(number++));
  fs::path source = base, library = base, log = base;
  source += ".cpp";
  library += ".so";
  log += ".log";
  std::ofstream(source) << host_text(program->text);
  std::string command = command_for("-shared -s " + source.string() + " -o " +
                                    library.string() + " 2>" + log.string());
  int status = std::system(command.c_str());
  program->log = read_all(log);
  if (status != 0) return 6;  // NVRTC_ERROR_COMPILATION
  std::string bytes = read_all(library);
  uint64_t size = bytes.size();
  program->code.assign(reinterpret_cast<char*>(&size), sizeof(size));
  program->code += bytes;
  std::error_code ignored;
  for (const fs::path& file : {source, library, log}) fs::remove(file, ignored);
  return 0;
}
EXPORT nvrtcGetCUBINSize(Program* program, size_t* size) {
  *size = program->code.size();
  return 0;
}
EXPORT nvrtcGetCUBIN(Program* program, char* out) {
  std::memcpy(out, program->code.data(), program->code.size());
  return 0;
}
EXPORT nvrtcGetProgramLogSize(Program* program, size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}
EXPORT nvrtcGetProgramLog(Program* program, char* out) {
  std::memcpy(out, program->log.c_str(), program->log.size() + 1);
  return 0;
}
