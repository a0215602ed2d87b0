#include <taeda/aten/native/cuda/blocks.h>

#include <taeda/aten/native/cuda/call_text.h>
#include <taeda/aten/native/cuda/given.h>

namespace taeda::cuda {

namespace {

std::string text_of(const BlockKernel& kernel,
                    ArrayRef<TemplateArgument> arguments,
                    unsigned threads) {
  std::string list;
  for (const TemplateArgument& a : arguments) {
    if (!list.empty()) list += ", ";
    if (a.type) {
      list += device_type(*a.type);
    } else if (a.name != nullptr) {
      list += a.name;
    } else {
      list += str_cat(a.value);
    }
  }
  // The bound lets the compiler give each thread its share of the registers.
  return str_cat(header_text(kernel.header),
                 "namespace taeda {\nextern \"C\" __launch_bounds__(",
                 threads,
                 ") __global__ void kernel(const __grid_constant__ ",
                 kernel.call,
                 " call) {\n  ",
                 kernel.function,
                 "<",
                 list,
                 ">(call);\n}\n}  // namespace taeda\n");
}

}  // namespace

void run_blocks(const BlockKernel& kernel,
                ArrayRef<TemplateArgument> arguments,
                Grid grid,
                void* call) {
  ProgramKey key;
  key.formula = kernel.function;
  key.add(static_cast<int>(grid.threads / 32));
  for (const TemplateArgument& a : arguments) {
    if (a.type) {
      key.add(static_cast<int>(*a.type));
    } else if (a.name != nullptr) {
      auto place = reinterpret_cast<uintptr_t>(a.name);
      for (size_t i = 0; i < sizeof(place); ++i) {
        key.add(static_cast<int>(place >> (8 * i) & 0xff));
      }
    } else {
      key.add(a.value & 0xff);
      key.add(a.value >> 8);
    }
  }
  FunctionHandle function = program(
      kernel.op, key, [&] { return text_of(kernel, arguments, grid.threads); });
  launch(kernel.op, function, grid, call);
}

}  // namespace taeda::cuda
