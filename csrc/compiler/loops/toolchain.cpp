#include <taeda/aten/cpu_capability.h>
#include <taeda/c10/util/format.h>
#include <taeda/csrc/compiler/loops/toolchain.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

extern char** environ;

namespace taeda::compiler::loops {

namespace fs = std::filesystem;

namespace {

// The include folder beside lib/, in a build tree as in an installed package.
fs::path include_folder() {
  Dl_info info;
  const void* inside = reinterpret_cast<const void*>(&cpu_capability);
  if (dladdr(inside, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  fs::path library = fs::canonical(info.dli_fname, error);
  return library.parent_path().parent_path() / "include";
}

std::string found_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::stringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = str_cat(folder, "/", name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

std::string find_compiler() {
  if (const char* named = std::getenv("TAEDA_CXX")) {
    std::string name = named;
    return name.find('/') == name.npos ? found_in_path(name) : name;
  }
  for (const char* name : {"g++", "c++"}) {
    std::string found = found_in_path(name);
    if (!found.empty()) return found;
  }
  return "";
}

std::vector<std::string> flags_of(CpuCapability level) {
  std::vector<std::string> flags = {
      "-std=c++20",
      "-O3",
      "-fno-math-errno",
      "-fno-trapping-math",
      // Chains of maxima lose their vectors by it.
      "-fno-thread-jumps",
      "-fwrapv",
      "-fPIC",
      "-shared",
      "-w",
      "-x",
      "c++",
      "-I" + include_folder().string()};
  if (level >= CpuCapability::kAvx2) {
    for (const char* f : {"-mfma", "-mf16c"}) flags.push_back(f);
    if (level == CpuCapability::kAvx2) flags.push_back("-mavx2");
  }
  if (level == CpuCapability::kAvx512) {
    for (const char* f : {"-mavx512f",
                          "-mavx512vl",
                          "-mavx512bw",
                          "-mavx512dq",
                          "-mprefer-vector-width=512"}) {
      flags.push_back(f);
    }
  }
  return flags;
}

// Size and time of the compiler's file, and all the headers' text.
std::string identity_of(const Toolchain& tools) {
  std::error_code error;
  fs::path compiler = fs::canonical(tools.compiler, error);
  std::string text = str_cat("taeda ", TAEDA_VERSION, " ", compiler.string());
  if (!error) {
    auto time = fs::last_write_time(compiler, error).time_since_epoch();
    text += str_cat(" ", fs::file_size(compiler, error), " ", time.count());
  }
  // The include folder's place does not matter, what lies there does.
  for (const std::string& flag : tools.flags) {
    if (flag.rfind("-I", 0) != 0) text += " " + flag;
  }
  fs::path headers = include_folder() / "taeda" / "aten" / "math";
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(headers, error)) {
    if (entry.path().extension() == ".h") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(in), {});
  }
  return text;
}

// The compiler that runs now, or 0; and whether the process ends.
std::atomic<pid_t> running{0};
std::atomic<bool> stopping{false};

std::string said_in(int fd) {
  std::string said(4096, '\0');
  lseek(fd, 0, SEEK_SET);
  ssize_t count = read(fd, said.data(), said.size());
  said.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return said;
}

// 0, or an errno. The child has default signals: this thread blocks them.
int spawn(pid_t& child, std::vector<std::string>& arguments, int out) {
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, out, 2);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  int error =
      posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

const Toolchain& toolchain() {
  // Found once, by the first thread that asks; the compiling thread may ask
  // while the process ends, so that nothing destroys it.
  static const Toolchain* const found = [] {
    auto* tools = new Toolchain;
    tools->compiler = find_compiler();
    tools->flags = flags_of(cpu_capability());
    tools->identity = identity_of(*tools);
    return tools;
  }();
  return *found;
}

std::optional<std::string> run_compiler(const std::string& source,
                                        const std::string& library) {
  const Toolchain& tools = toolchain();
  if (tools.compiler.empty()) return "no C++ compiler (g++, c++, TAEDA_CXX)";
  std::vector<std::string> arguments = {tools.compiler};
  arguments.insert(arguments.end(), tools.flags.begin(), tools.flags.end());
  arguments.insert(arguments.end(), {source, "-o", library});
  int out = memfd_create("compiler", MFD_CLOEXEC);
  pid_t child = 0;
  if (int error = spawn(child, arguments, out); error != 0) {
    close(out);
    return str_cat(tools.compiler, ": ", std::strerror(error));
  }
  running = child;
  if (stopping) kill(-child, SIGKILL);
  int status = 0;
  pid_t ended;
  do {
    ended = waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  running = 0;
  std::string said = said_in(out);
  close(out);
  // A program that waits for all its children may have taken this one.
  bool unknown = ended < 0 && errno == ECHILD;
  bool fine = unknown || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  if (fine && access(library.c_str(), R_OK) == 0) return std::nullopt;
  if (WIFSIGNALED(status) && !unknown) {
    return str_cat("the compiler was ended by signal ", WTERMSIG(status));
  }
  return said.empty() ? "the compiler failed" : said;
}

bool is_stopping() { return stopping; }

void stop_compiler() {
  stopping = true;
  pid_t child = running.load();
  if (child > 0) kill(-child, SIGKILL);
}

}  // namespace taeda::compiler::loops
