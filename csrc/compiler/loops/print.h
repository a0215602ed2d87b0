// Loop programs as C++.
#pragma once

#include <taeda/csrc/compiler/loops/schedule.h>

namespace taeda::compiler::loops {

// The text that all kernels of a unit stand on; includes no system header but
// <cstdint>.
std::string unit_prelude(const std::string& text);
// A function without its name, `(void* const* buffers, const int64_t* numbers,
// int64_t begin, int64_t end) {...}`: the program at the outer points [begin,
// end); all kept values of one call. Expressions are names in the text, so that
// it is the same for all symbols; their values are `numbers`.
struct KernelText {
  std::string text;
  std::vector<SymInt> numbers;
};
KernelText kernel_text(const Program& program, const Schedule& schedule);

}  // namespace taeda::compiler::loops
