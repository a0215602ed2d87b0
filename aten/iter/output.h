// What in-place and out= forms check, the same for every operator.
#pragma once

#include <taeda/aten/iter/spec.h>

namespace taeda {

// The planned output as a new tensor; none where nothing was planned.
TAEDA_API TensorBase allocate(const Plan<int64_t>& plan,
                              size_t index,
                              Device device);

// Gives `out` the size, with PyTorch's warning when a non-empty tensor changes
// its shape. True when it was resized.
TAEDA_API bool resize_output(const TensorBase& out, IntArrayRef sizes);
// The same without the warning: the `resize_` operator itself.
TAEDA_API void resize_tensor(const TensorBase& t, IntArrayRef sizes);
TAEDA_API void resize_tensor_strided(const TensorBase& t,
                                     IntArrayRef sizes,
                                     IntArrayRef strides);
TAEDA_API void check_castable(std::string_view op,
                              ScalarType computed,
                              ScalarType wanted);
TAEDA_API void check_same_device(std::string_view op,
                                 const TensorBase& expected,
                                 const TensorBase& got);
// The first dim along which elements of `t` lie at one address; -1 where none
// is known to.
TAEDA_API int64_t repeated_dim(const TensorBase& t);
// RuntimeError where two elements of `t`, which is to be written, lie at one
// address.
TAEDA_API void check_no_internal_overlap(std::string_view op,
                                         const TensorBase& t);

enum class Overlap : uint8_t { None, Full, Partial, Unknown };
TAEDA_API Overlap overlap_of(const TensorBase& a, const TensorBase& b);
TAEDA_API void check_no_partial_overlap(std::string_view op,
                                        const TensorBase& out,
                                        const TensorBase& in);
// Neither partial nor full.
TAEDA_API void check_no_overlap(std::string_view op,
                                const TensorBase& out,
                                const TensorBase& in);

// How the derived forms end: the computed result into the caller's tensor.
// `computed` must not share memory with `out`.
TAEDA_API void write_out(std::string_view op,
                         const TensorBase& computed,
                         const TensorBase& out);
TAEDA_API void write_inplace(std::string_view op,
                             const TensorBase& computed,
                             const TensorBase& self);

// Where a structured kernel writes for out= and in-place forms: the caller's
// tensor itself when it has the planned geometry and type and shares nothing
// with an input, else a temporary that finish() copies. An input that is to be
// written and resized keeps its shape until finish().
class TAEDA_API OutputTarget {
 public:
  // For out=: resizes. `inputs` are the tensors that the kernel reads.
  static OutputTarget for_out(const Plan<int64_t>& plan,
                              size_t index,
                              const TensorBase& out,
                              TensorBaseList inputs);
  static OutputTarget for_inplace(const Plan<int64_t>& plan,
                                  const TensorBase& self);
  // For kernels that change a part of `self`: itself where it can be.
  static OutputTarget for_inplace(const Plan<int64_t>& plan,
                                  const TensorBase& self,
                                  TensorBaseList others);
  // Gives the target the values of `source`, unless it has them.
  void begin_with(const TensorBase& source) const;
  const TensorBase& tensor() const { return work_; }
  void finish() const;

 private:
  void resize_wanted(const PlannedOutput<int64_t>& planned) const;

  TensorBase wanted_;
  TensorBase work_;
  // What finish() resizes to, if anything; of the plan, which stays.
  std::optional<PlannedOutput<int64_t>> resize_last_;
};

// A message for Python's warnings; the bindings install the handler.
TAEDA_API void warn(const std::string& message);
extern TAEDA_API void (*warning_handler)(const std::string& message);

}  // namespace taeda
