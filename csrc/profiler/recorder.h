// What the profiler records, by thread. See docs/design/profiler.md.
#pragma once

#include <taeda/aten/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

namespace taeda::profiler {

enum class Kind : uint8_t {
  Operator,
  Evaluation,  // of a node of a backward pass, with its hooks
  Node,
  User,    // record_function
  Module,  // a call of a module
  Kernel,  // of a compiled program
  Memory,  // a moment: bytes taken, or given back (negative)
};

// A tensor or a number as it was when the call began.
struct Argument {
  enum Type : uint8_t { None, Tensor, Tensors, Value };
  Type type = None;
  std::vector<ScalarType> dtypes;  // of the tensors
  std::vector<std::vector<int64_t>> sizes, strides;
  IValue value;  // no tensor
};

struct Event {
  Kind kind = Kind::Operator;
  // Of the innermost event that was open, counted from 1; 0 for none.
  uint32_t parent = 0;
  uint32_t stack = 0;  // what capture_stack gave; 0 for none
  // Counted from 1 into the thread's lists; 0 for none.
  uint32_t arguments = 0;
  uint32_t results = 0;
  union {
    const OperatorEntry* op;
    const std::string* name;  // lives for ever
    const void* address;      // of memory
  };
  int64_t start = 0, end = 0;  // ns of the system clock; end is 0 while open
  int64_t sequence = -1;       // the node that was made, or that runs
  int64_t bytes = 0;           // of memory
  int64_t total = 0;           // bytes in use after it
  Event() : op(nullptr) {}
};

struct ThreadEvents {
  uint64_t thread = 0;  // the system's number
  std::vector<Event> events;
  std::vector<std::vector<Argument>> arguments;
};

struct Options {
  bool shapes = false;
  bool memory = false;
  bool stacks = false;
};

struct Recording {
  int64_t start = 0, end = 0;  // ns of the system clock
  std::vector<ThreadEvents> threads;
};

// RuntimeError where something is recorded or guarded already.
TAEDA_API void start_recording(const Options& options);
// Ends it; with what had been recorded. RuntimeError where nothing is recorded.
TAEDA_API Recording stop_recording();
TAEDA_API bool is_recording();

// An event of this thread around what follows; 0 where nothing is recorded.
TAEDA_API uint64_t begin_event(Kind kind, const std::string& name);
TAEDA_API void end_event(uint64_t token) noexcept;

// Names a kernel while it runs.
class TAEDA_API Mark {
 public:
  template <class Name>
  explicit Mark(Name&& name) {
    if (is_recording()) token_ = begin_event(Kind::Kernel, name());
  }
  ~Mark() {
    if (token_ != 0) end_event(token_);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  uint64_t token_ = 0;
};

// Set by the bindings: a number for where this thread's program is, 0 for
// nowhere. Numbers are valid until the recording or the guard has ended.
extern TAEDA_API uint32_t (*capture_stack)();

}  // namespace taeda::profiler
