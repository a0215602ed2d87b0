// How operators come to their kernels on the device.
#pragma once

#include <taeda/aten/core/dispatcher.h>

#include <vector>

namespace taeda::cuda {

// Note [Calls on the device]
// Pointwise operators, reductions, copies and fills have launchers; composites,
// views and kernels with the slot `any` run as on the CPU. All other calls come
// to the fallback:
// - in-place and out= forms run the functional form, and write its result as
//   the meta kernel tells that the form would;
// - functional forms run their meta kernel on tensors without memory, which
//   checks the call and plans the results. Those are allocated and computed by
//   a kernel written by hand (written.cpp), or by the record's formula;
// - others are made of operators: by a function here (Definition), or by what
//   the record `means`; a few factors of matrices are the CPU's (host.h);
// - factories make their tensor on the CPU and copy it;
// - what has none of these is refused by name.
void register_fallback();
// Puts cuBLASLt's products into their operators' slots, after that.
void register_products();

// A kernel written by hand, over the arguments and results of one operator.
struct Written;
const Written* written_kernel(const OperatorEntry& op);
void run_written(const OperatorEntry& op,
                 const Written& kernel,
                 const IValue* values,
                 const std::vector<TensorBase>& results);

// A function of an operator's type that computes it by other operators and by
// calls of kernels.
struct Definition {
  const char* op;  // "sort.stable"
  void* function;
};
using Definitions = ArrayRef<Definition>;
Definitions product_definitions();
Definitions indexing_definitions();
Definitions sorting_definitions();
Definitions choosing_definitions();
Definitions layer_definitions();
Definitions transform_definitions();
Definitions fourier_definitions();
Definitions system_definitions();
Definitions sampling_definitions();
Definitions sequence_definitions();
Definitions factor_definitions();
Definitions spectrum_definitions();
Definitions recurrent_definitions();
Definitions resize_definitions();
Definitions softmax_definitions();
Definitions row_norm_definitions();
Definitions cross_entropy_definitions();
Definitions channel_norm_definitions();
Definitions optimizer_definitions();
Definitions list_definitions();

// Values and places of rows that lie behind each other, sorted along the last
// dim; equal elements keep their order.
std::tuple<TensorBase, TensorBase> sort_rows(const TensorBase& rows,
                                             bool descending);

// The same of the first `wanted` of each row alone, in the order of the
// elements; whether that is quicker than a sort.
bool selects_rows(const TensorBase& rows, int64_t wanted);
std::tuple<TensorBase, TensorBase> select_rows(const TensorBase& rows,
                                               int64_t wanted,
                                               bool descending);

template <class R, class... A>
constexpr Definition defined_as(const char* op, R (*function)(A...)) {
  return {op, reinterpret_cast<void*>(function)};
}

}  // namespace taeda::cuda
