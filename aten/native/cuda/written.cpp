// Kernels written by hand that take an operator's arguments as they are.
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace taeda::cuda {

// How often the body of a kernel runs.
enum class Work : uint8_t {
  Elements,  // of the first result
  Inputs,    // elements of the first argument
};

struct Written {
  const char* op;
  const char* header;
  const char* body;
  Work work = Work::Elements;
};

namespace {

constexpr const char* kProduct =
    "g.result.write(i, product_at(g.self, g.mat2, g.result, i));";

constexpr Written kWritten[] = {
    {"mm", "products", kProduct},
    {"bmm", "products", kProduct},
    {"mv",
     "products",
     "g.result.write(i, inner(g.self, g.vec, 0, i, 0));"},
    {"addmm",
     "products",
     "write_sum(g, i, product_at(g.mat1, g.mat2, g.result, i));"},
    {"baddbmm",
     "products",
     "write_sum(g, i, product_at(g.batch1, g.batch2, g.result, i));"},
    {"addmv", "products", "write_sum(g, i, inner(g.mat, g.vec, 0, i, 0));"},
    {"embedding_dense_backward", "indexing", "embedding_row(g, i);"},
};

std::string name_of(const OperatorEntry& op) {
  std::string name = op.name;
  if (*op.overload != '\0') name += str_cat(".", op.overload);
  return name;
}

}  // namespace

const Written* written_kernel(const OperatorEntry& op) {
  std::string name = name_of(op);
  auto found = std::find_if(std::begin(kWritten),
                            std::end(kWritten),
                            [&](const Written& w) { return name == w.op; });
  return found == std::end(kWritten) ? nullptr : found;
}

void run_written(const OperatorEntry& op,
                 const Written& kernel,
                 const IValue* values,
                 const std::vector<TensorBase>& results) {
  GivenCall call;
  call.op = op.name;
  call.formula = &kernel;
  call.slots = slots_of(op, values, results);
  call.header = header_text(kernel.header);
  call.body = kernel.body;
  const Given& first = call.slots.front();
  call.count = kernel.work == Work::Inputs ? first.tensor.numel()
                                           : results[0].numel();
  run_given(call);
}

}  // namespace taeda::cuda
