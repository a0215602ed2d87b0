// What each device does of a planned call.
#pragma once

#include <taeda/aten/iter/reduce.h>

namespace taeda {

// Note [Plan and launch]
// pointwise() and reduce() decide the types, the shape and the strides, check
// the operands and allocate the result. That is the plan: it looks at no memory
// and is the same for every device. Then they call the launcher of the result's
// device, which runs the record's loop. Meta tensors and results without
// elements are planned and not launched.
struct ReducePlan {
  DtypePlan types;
  uint64_t mask;  // the dims that are reduced, see dim_mask
};

// Of elements as they lie: what lazy bits ask for is said here.
struct CopyOptions {
  bool conj = false, neg = false;
  bool non_blocking = false;
};

struct Launchers {
  // `out` and the operands have any strides and dtypes, and broadcast; no
  // operand is lazily conjugate or negative.
  void (*pointwise)(const PointwiseOp& op,
                    const DtypePlan& types,
                    const TensorBase& out,
                    Operands operands,
                    ArrayRef<Scalar> scalars);
  // `out` is new and row-major, its dims are those of `self` that stay.
  void (*reduce)(const ReduceOp& op,
                 const ReducePlan& plan,
                 const TensorBase& self,
                 const TensorBase& out,
                 ArrayRef<Scalar> scalars);
  // At least one of both lies on the device. They do not share memory, `src`
  // broadcasts to `dst`; any strides and dtypes.
  void (*copy)(const TensorBase& dst,
               const TensorBase& src,
               const CopyOptions& options);
  void (*fill)(const TensorBase& dst, const Scalar& value);
  // Says that this thread begins, or ends, calls of one operator for each entry
  // of a list. Those between may be run together when the last one is there;
  // null where a device has no use for it.
  void (*list)(bool begins) = nullptr;
};

// NotImplementedError naming the operator where the device has none.
TAEDA_API const Launchers& launchers_of(const char* op, Device device);
// Null where there is no library of the device.
TAEDA_API const Launchers* launchers_or_null(DeviceType type);
// For the library of a device, when it is loaded. `launchers` lives on.
TAEDA_API void set_launchers(DeviceType type, const Launchers* launchers);

// Strides in bytes of an operand seen with the output's sizes, appended.
TAEDA_API void operand_strides(const TensorBase& t,
                               IntArrayRef sizes,
                               DimVector& out);

namespace native {

// The CPU's, in aten/native/cpu.
void launch_pointwise(const PointwiseOp& op,
                      const DtypePlan& types,
                      const TensorBase& out,
                      Operands operands,
                      ArrayRef<Scalar> scalars);
void launch_reduce(const ReduceOp& op,
                   const ReducePlan& plan,
                   const TensorBase& self,
                   const TensorBase& out,
                   ArrayRef<Scalar> scalars);
void launch_copy(const TensorBase& dst,
                 const TensorBase& src,
                 const CopyOptions& options);
void launch_fill(const TensorBase& dst, const Scalar& value);

}  // namespace native

}  // namespace taeda
