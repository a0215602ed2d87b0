#include <taeda/c10/util/format.h>
#include <taeda/csrc/compiler/loops/toolchain.h>
#include <taeda/csrc/compiler/loops/unit.h>

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

namespace taeda::compiler::loops {

namespace {

// The compiling thread and what it has to do. `mutex` guards all of it; it is
// held across a fork, after which the child forgets the thread, which it does
// not have, and the requests, which are made again by who asks for them.
class Workshop {
 public:
  static Workshop& get() {
    static Workshop* shop = new Workshop;  // outlives the exit of the process
    return *shop;
  }

  void add(IntrusivePtr<Unit> unit) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (stopped_) return;
    queue_.push_back(std::move(unit));
    if (!thread_.joinable()) start();
    lock.unlock();
    changed_.notify_all();
  }
  template <class Done>
  void wait(Done&& done) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || done(); });
  }

 private:
  Workshop() {
    pthread_atfork([] { get().mutex_.lock(); },
                   [] { get().mutex_.unlock(); },
                   [] { get().forget(); });
    std::atexit([] { get().stop(); });
  }

  // A thread without signals: they are the program's.
  void start() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { work(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopped_ || !queue_.empty(); });
      if (stopped_) return;
      IntrusivePtr<Unit> unit = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      unit->build();
      unit.reset();
      lock.lock();
      changed_.notify_all();
    }
  }

  // In the child of a fork, which has one thread and the lock.
  void forget() {
    new (&thread_) std::thread();  // there is nothing to join
    new (&changed_) std::condition_variable();
    new (&queue_) std::deque<IntrusivePtr<Unit>>();
    mutex_.unlock();
  }

  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    stop_compiler();
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<IntrusivePtr<Unit>> queue_;
  std::thread thread_;
  bool stopped_ = false;
};

// One line a process: more would say the same again.
void say_once(const std::string& what) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::string line =
        str_cat("taeda: compile: runs without compiled kernels: ",
                what.substr(0, what.find('\n')),
                "\n");
    std::fputs(line.c_str(), stderr);
  });
}

// Files of the cache that this process runs.
struct Opened {
  std::mutex mutex;
  std::set<std::string> paths;
};
Opened& opened() {
  static auto* known = new Opened;  // units may outlive the exit
  return *known;
}
void note_opened(const std::string& path) {
  std::lock_guard<std::mutex> lock(opened().mutex);
  opened().paths.insert(path);
}

// A folder for files that come and go.
struct Scratch {
  std::string path;
  Scratch() {
    const char* base = std::getenv("TMPDIR");
    path = str_cat(base == nullptr ? "/tmp" : base, "/taeda-XXXXXX");
    if (mkdtemp(path.data()) == nullptr) path.clear();
  }
  ~Scratch() {
    std::error_code error;
    if (!path.empty()) std::filesystem::remove_all(path, error);
  }
};

}  // namespace

bool keeps_texts() { return std::getenv("TAEDA_KERNEL_TEXTS") != nullptr; }

void keep_text(const std::string& text, const char* extension) {
  const char* folder = std::getenv("TAEDA_KERNEL_TEXTS");
  if (folder == nullptr) return;
  static std::atomic<int> count{0};
  std::ofstream out(
      str_cat(folder, "/", int64_t{getpid()}, "_", count++, extension));
  out << text;
}

std::vector<std::string> opened_kernels() {
  std::lock_guard<std::mutex> lock(opened().mutex);
  return {opened().paths.begin(), opened().paths.end()};
}

Unit::Unit(std::string text, std::vector<std::string> names)
    : text_(std::move(text)), names_(std::move(names)) {}

Unit::~Unit() {
  if (library_ != nullptr) dlclose(library_);
}

bool Unit::request() {
  int64_t process = getpid();
  if (process_.exchange(process) != process) {
    State made = state_.load();
    if (made != kReady && made != kFailed) {
      state_ = kWaiting;
      Workshop::get().add(IntrusivePtr<Unit>::share(this));
    }
  }
  return state_.load(std::memory_order_acquire) == kReady;
}

bool Unit::wait() {
  if (ready() || has_failed()) return !has_failed();
  Workshop::get().wait([&] { return state_ == kReady || state_ == kFailed; });
  return state_ == kReady;
}

bool Unit::open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  std::vector<Kernel> kernels;
  for (const std::string& name : names_) {
    kernels.push_back(reinterpret_cast<Kernel>(dlsym(library, name.c_str())));
    if (kernels.back() == nullptr) {
      dlclose(library);
      return false;
    }
  }
  library_ = library;
  kernels_ = std::move(kernels);
  state_.store(kReady, std::memory_order_release);
  return true;
}

void Unit::build() {
  try {
    keep_text(text_, ".cpp");
    std::optional<std::string> folder = cache_folder();
    std::string cached = folder ? cache_path(*folder, text_) : "";
    if (folder && check_cached(cached) && open(cached)) {
      return note_opened(cached);
    }
    Scratch scratch;
    std::string source = scratch.path + "/kernels.cpp";
    std::string made = scratch.path + "/kernels.so";
    std::ofstream out(source);
    out << text_;
    out.close();
    std::optional<std::string> fault =
        out ? run_compiler(source, made)
            : str_cat("cannot write to ", scratch.path);
    if (!fault && folder) {
      // Beside its place, since a rename does not leave a file system.
      std::string near = str_cat(cached, ".", int64_t{getpid()});
      std::error_code error;
      std::filesystem::copy_file(made, near, error);
      if (!error && put_in_cache(near, cached)) {
        bound_cache(*folder);
        if (open(cached)) return note_opened(cached);
      }
      std::filesystem::remove(near, error);
    }
    if (!fault && open(made)) return;
    if (!is_stopping())
      say_once(fault ? *fault : "the compiled code cannot be loaded");
  } catch (const std::exception& error) {
    say_once(error.what());
  }
  state_ = kFailed;
}

}  // namespace taeda::compiler::loops
