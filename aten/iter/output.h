// What in-place and out= forms check, the same for every operator.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda {

// One planned output: decided by a shape rule before memory is touched.
struct PlannedOutput {
  DimVector sizes;
  DimVector strides;  // empty: row-major
  // Not empty: an out= tensor takes these sizes first, and loses its strides if
  // it had others (PyTorch computes vector times matrix as a one-row product).
  DimVector made_as;
  ScalarType dtype = ScalarType::Undefined;
};

// Filled by the shape rule of a structured kernel.
class TAEDA_API OutputPlan {
 public:
  explicit OutputPlan(std::string_view op) : op_(op) {}
  std::string_view op() const { return op_; }
  void set(size_t index, IntArrayRef sizes, ScalarType dtype) {
    set(index, sizes, IntArrayRef(), dtype);
  }
  void set(size_t index,
           IntArrayRef sizes,
           IntArrayRef strides,
           ScalarType dtype);
  void set(size_t index,
           IntArrayRef sizes,
           MemoryFormat format,
           ScalarType dtype);
  void made_as(size_t index, IntArrayRef sizes) {
    outputs_[index].made_as = DimVector(sizes);
  }
  const PlannedOutput& operator[](size_t i) const { return outputs_[i]; }
  size_t size() const { return outputs_.size(); }
  // The planned output as a new tensor.
  TensorBase allocate(size_t i, Device device) const;

 private:
  std::string_view op_;
  SmallVector<PlannedOutput, 3> outputs_;
};

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
  static OutputTarget for_out(const OutputPlan& plan,
                              size_t index,
                              const TensorBase& out,
                              TensorBaseList inputs);
  static OutputTarget for_inplace(const OutputPlan& plan,
                                  const TensorBase& self);
  const TensorBase& tensor() const { return work_; }
  void finish() const;

 private:
  void resize_wanted(const PlannedOutput& planned) const;

  TensorBase wanted_;
  TensorBase work_;
  const PlannedOutput* resize_last_ = nullptr;  // of the plan, which stays
};

// A message for Python's warnings; the bindings install the handler.
TAEDA_API void warn(const std::string& message);
extern TAEDA_API void (*warning_handler)(const std::string& message);

}  // namespace taeda
