// A library that test programs load: where one crashes, it says which test
// files ran in the process, and its C stack, before the handler that was there
// before (that of `faulthandler`) shows the Python one.
#include <csignal>
#include <cstddef>
#include <cstring>

#include <execinfo.h>
#include <unistd.h>

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr int kMostFrames = 20;

int output = STDERR_FILENO;
struct sigaction before[NSIG];
char history[1 << 14];
size_t written = 0;
alignas(16) char alternate[1 << 16];  // for stacks that are used up

void say(const char* text, size_t length) {
  // What is lost here cannot be told anybody.
  [[maybe_unused]] ssize_t done = write(output, text, length);
}

void show(int signal) {
  constexpr char title[] = "\nC stack of a crash, after the tests:";
  say(title, sizeof(title) - 1);
  say(history, written);
  say("\n", 1);
  void* frames[kMostFrames];
  // The first two are this function and the signal's frame.
  int count = backtrace(frames, kMostFrames);
  backtrace_symbols_fd(frames + 2, count > 2 ? count - 2 : 0, output);
  // The instruction is run again, and ends with the handler before.
  sigaction(signal, &before[signal], nullptr);
  if (signal == SIGABRT) raise(signal);
}

}  // namespace

extern "C" {

void note_test_file(const char* name) {
  size_t length = strlen(name);
  if (written + length + 1 > sizeof(history)) return;
  history[written++] = ' ';
  memcpy(history + written, name, length);
  written += length;
}

void show_crashes(int file) {
  output = file;
  void* frame;
  backtrace(&frame, 1);  // loads what it needs now
  stack_t stack = {};
  stack.ss_sp = alternate;
  stack.ss_size = sizeof(alternate);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = show;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (int signal : kSignals) sigaction(signal, &action, &before[signal]);
}

}  // extern "C"
