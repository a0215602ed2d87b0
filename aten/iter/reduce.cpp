// The plan of a reduction: see Note [Plan and launch].
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/launch.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/reduction_mask.h>

#include <algorithm>

namespace taeda {

uint64_t dim_mask(std::optional<IntArrayRef> dims, int64_t rank) {
  TAEDA_CHECK(rank <= 64, "only tensors with up to 64 dims are supported");
  if (!dims || dims->empty()) return ~uint64_t{0};
  uint64_t mask = 0;
  for (int64_t d : *dims) {
    uint64_t bit = uint64_t{1} << wrap_dim(d, rank);
    TAEDA_CHECK((mask & bit) == 0,
                "dim ",
                wrap_dim(d, rank),
                " appears multiple times in the list of dims");
    mask |= bit;
  }
  return mask;
}

DimVector reduced_shape(IntArrayRef sizes, uint64_t mask, bool keepdim) {
  DimVector out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    bool gone = ((mask >> d) & 1) != 0;
    if (!gone) {
      out.push_back(sizes[d]);
    } else if (keepdim) {
      out.push_back(1);
    }
  }
  return out;
}

TensorBase reduce(const ReduceOp& op,
                  const TensorBase& input,
                  const ReduceArgs& args,
                  std::initializer_list<Scalar> scalars) {
  ReducePlan plan{plan_reduction(op.name, op.types, input.dtype(), args.dtype),
                  reduction_mask(op.types, args.dims, input.dim())};
  DimVector shape = reduced_shape(input.sizes(), plan.mask, args.keepdim);
  if (!op.has_identity && input.numel() == 0) {
    for (int64_t d = 0; d < std::max<int64_t>(input.dim(), 1); ++d) {
      bool empty = ((plan.mask >> d) & 1) != 0 && input.sizes()[d] == 0;
      TAEDA_CHECK_AS(Index,
                     !empty,
                     op.name,
                     "(): Expected reduction dim ",
                     d,
                     " to have non-zero size.");
    }
  }
  TensorBase out = make_tensor(op.name, shape, plan.types.out, input.device());
  if (out.numel() == 0 || out.is_meta()) return out;
  bool lazy = input.is_conj() || input.is_neg();
  TensorBase self = lazy ? contiguous(input) : input;
  launchers_of(op.name, out.device()).reduce(op, plan, self, out, scalars);
  return out;
}

void write_truth(std::string_view op,
                 const TensorBase& computed,
                 const TensorBase& out) {
  TAEDA_CHECK(out.dtype() == kBool || out.dtype() == kByte,
              op,
              " only supports bool tensor for result, got: ",
              out.dtype());
  write_out(op, cast(computed, out.dtype()), out);
}

}  // namespace taeda
