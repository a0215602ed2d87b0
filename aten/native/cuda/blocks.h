// Kernels whose blocks work together: function templates of a file here, over a
// parameter of their own type.
#pragma once

#include <taeda/aten/core/op_types.h>
#include <taeda/aten/native/cuda/program.h>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

// What a kernel is, apart from its template arguments.
struct BlockKernel {
  const char* op;        // named in errors, and the kernel itself
  const char* header;    // a file of this folder, without its ending
  const char* function;  // "softmax_columns"
  const char* call;      // the type of its parameter
};

// A template argument: what elements are stored as, a name, or a number.
struct TemplateArgument {
  TemplateArgument(ScalarType t) : type(t) {}   // NOLINT
  TemplateArgument(const char* n) : name(n) {}  // NOLINT
  TemplateArgument(int v) : value(v) {}         // NOLINT
  std::optional<ScalarType> type{};
  const char* name = nullptr;  // of which no other kernel of the header differs
  int value = 0;
};

// On the current device, whose it is to be that of `call`'s memory.
void run_blocks(const BlockKernel& kernel,
                ArrayRef<TemplateArgument> arguments,
                Grid grid,
                void* call);

}  // namespace taeda::cuda
