// Names the first call or node that makes a NaN or an infinity.
#pragma once

#include <taeda/aten/core/tensor_base.h>

#include <string>

namespace taeda::profiler {

// Note [Guarded calls]
// The results of each call that a program makes, and of each node of a backward
// pass, are read once; what runs inside of those is not looked at. A bad value
// is the call's own making where all its arguments are finite, numbers among
// them (a mask of minus infinities is meant). Of calls that write into an
// argument that argument is not asked. Calls whose results have no values yet
// (`empty`), and views, are left out.
struct GuardOptions {
  bool infinities = true;
  // A text for messages: the place of the program that capture_stack numbered,
  // the module that exchange_module named. Called on any thread.
  std::string (*place)(uint32_t stack, int64_t module) = nullptr;
};
// RuntimeError where something is recorded or guarded already.
TAEDA_API void start_guard(const GuardOptions& options);
TAEDA_API void stop_guard();
// The module that this thread runs from now on, -1 for none; the one before.
TAEDA_API int64_t exchange_module(int64_t module);

struct BadValues {
  int64_t nans = 0, infinities = 0;
};
// Of a floating-point or complex tensor of the CPU; 0 of others.
TAEDA_API BadValues count_bad(const TensorBase& t);

}  // namespace taeda::profiler
