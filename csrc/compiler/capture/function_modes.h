// Modes that take calls of the library over, entered by a program.
//
// Note [Modes of functions]
// A thread's modes (`TorchFunctionMode`) call Python code for each call of the
// library. Those that are there when a part begins are outside objects like
// others, found by a fetch each; stand-ins of them lie above the recorder while
// the part is captured, so that calls go through their code, which is captured
// with the rest. A graph holds what came of that: the modes are set aside while
// it is compiled and while it runs. A part that ends under other modes than it
// began with, in the middle of a `with` block, puts these on the thread's
// stack.
#pragma once

#include <taeda/csrc/python/tensor_type.h>

#include <vector>

namespace taeda::capture {

// Those of this thread, outermost first; of modes that are switched off none.
std::vector<python::Ref> function_modes();
// What lies on the thread's stack, in place of what did.
std::vector<python::Ref> exchange_function_modes(
    const std::vector<python::Ref>& next);

// While it lives, calls are not taken over.
class FunctionModesAside {
 public:
  FunctionModesAside();
  FunctionModesAside(const FunctionModesAside&) = delete;
  FunctionModesAside& operator=(const FunctionModesAside&) = delete;
  ~FunctionModesAside();
  // What comes in their place at its end.
  void replace(std::vector<python::Ref> next);
  const std::vector<python::Ref>& modes() const { return modes_; }

 private:
  bool changes_;
  std::vector<python::Ref> modes_;
};

}  // namespace taeda::capture
