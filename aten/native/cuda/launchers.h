// What aten/iter/launch.h asks of a device, for CUDA.
#pragma once

#include <taeda/aten/iter/launch.h>

namespace taeda::cuda {

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
void copy(const TensorBase& dst,
          const TensorBase& src,
          const CopyOptions& options);
void fill(const TensorBase& dst, const Scalar& value);
void list_of_calls(bool begins);

}  // namespace taeda::cuda
