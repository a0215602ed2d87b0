// Pointwise operators: Note [Plan and launch].
#include <taeda/aten/native/cuda/elementwise.h>
#include <taeda/aten/native/cuda/launchers.h>
#include <taeda/aten/native/cuda/texts.h>
#include <taeda/c10/cuda/device.h>

namespace taeda::cuda {

namespace {

// A tensor of the CPU with one element takes part as a number.
Scalar number_of(const TensorBase& t) {
  return Scalar::load(t.dtype(), t.const_raw_data());
}

}  // namespace

void launch_pointwise(const PointwiseOp& op,
                      const DtypePlan& types,
                      const TensorBase& out,
                      Operands operands,
                      ArrayRef<Scalar> scalars) {
  DeviceGuard guard(out.device().index);
  ScalarType compute = type_of(types.compute);
  Elementwise what{op.name,
                   op.tables[0],
                   text_of(op.kernel),
                   op.kernel,
                   kind_of(types.compute),
                   compute,
                   result_of(op.types.out, compute)};
  SmallVector<DeviceOperand, 8> given;
  Numbers numbers;
  for (const Operand& o : operands) {
    ScalarType seen = given.size() < op.types.conditions ? kBool : compute;
    bool there = o.tensor != nullptr && !o.tensor->is_cpu();
    given.push_back({there ? o.tensor : nullptr, seen});
    if (!there) numbers.add(o.number ? *o.number : number_of(*o.tensor), seen);
  }
  for (const Scalar& s : scalars) numbers.add(s, compute);
  run_elementwise(what, out, given, numbers, static_cast<int>(scalars.size()));
}

}  // namespace taeda::cuda
