// The plan of a pointwise call: see Note [Plan and launch].
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/iteration_space.h>
#include <taeda/aten/iter/launch.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise_forms.h>

#include <algorithm>

namespace taeda {

void operand_strides(const TensorBase& t, IntArrayRef sizes, DimVector& out) {
  size_t shift = sizes.size() - static_cast<size_t>(t.dim());
  int64_t itemsize = static_cast<int64_t>(t.itemsize());
  for (size_t d = 0; d < sizes.size(); ++d) {
    bool repeated = d < shift || t.sizes()[d - shift] == 1;
    out.push_back(repeated ? 0 : t.strides()[d - shift] * itemsize);
  }
}

namespace {

// Operands with the lazy conjugate or negative bit, made plain; rare.
bool any_lazy(Operands operands) {
  for (const Operand& o : operands) {
    if (o.tensor != nullptr && (o.tensor->is_conj() || o.tensor->is_neg())) {
      return true;
    }
  }
  return false;
}

DimVector output_shape(const PointwiseOp& op, Operands operands) {
  DimVector shape;
  bool first = true;
  for (const Operand& o : operands) {
    if (o.tensor == nullptr) continue;
    if (first) {
      shape = DimVector(o.tensor->sizes());
    } else if (!(o.tensor->sizes() == IntArrayRef(shape))) {
      shape = broadcast_shapes<int64_t>(op.name, shape, o.tensor->sizes());
    }
    first = false;
  }
  return shape;
}

const TensorBase& reference_tensor(const PointwiseOp& op, Operands operands) {
  const TensorBase* found = nullptr;
  for (const Operand& o : operands) {
    if (o.tensor == nullptr) continue;
    if (found == nullptr || (found->dim() == 0 && o.tensor->dim() > 0)) {
      found = o.tensor;
    }
  }
  TAEDA_INTERNAL_ASSERT(found != nullptr, op.name, ": no tensor operand");
  for (const Operand& o : operands) {
    // 0-d CPU tensors go with tensors of any device.
    if (o.tensor == nullptr || o.tensor->dim() == 0) continue;
    check_same_device(op.name, *found, *o.tensor);
  }
  return *found;
}

// Strides that keep the operands' common memory order, as TensorIterator does.
DimVector output_strides(IntArrayRef shape, Operands operands) {
  DimVector byte_strides[kMaxOperands];
  SmallVector<const int64_t*, kMaxOperands> strides;
  size_t k = 0;
  for (const Operand& o : operands) {
    if (o.tensor == nullptr) continue;
    operand_strides(*o.tensor, shape, byte_strides[k]);
    strides.push_back(byte_strides[k++].data());
  }
  IterationSpace space(shape, strides);
  DimVector out(shape.size());
  int64_t running = 1;
  for (int d : space.perm()) {
    out[d] = running;
    running *= std::max<int64_t>(shape[d], 1);
  }
  return out;
}

// The planned call, if there is anything to compute.
void run(const PointwiseOp& op,
         const DtypePlan& types,
         const TensorBase& out,
         Operands operands,
         ArrayRef<Scalar> scalars) {
  if (out.numel() == 0 || out.is_meta()) return;
  launchers_of(op.name, out.device())
      .pointwise(op, types, out, operands, scalars);
}

bool all_row_major(Operands operands) {
  return std::all_of(operands.begin(), operands.end(), [](const Operand& o) {
    return o.tensor == nullptr || o.tensor->dim() <= 1 ||
           o.tensor->is_contiguous();
  });
}

TensorBase new_output(const PointwiseOp& op,
                      ScalarType dtype,
                      Operands operands) {
  const TensorBase& like = reference_tensor(op, operands);
  DimVector shape = output_shape(op, operands);
  if (all_row_major(operands)) {
    return make_tensor(op.name, shape, dtype, like.device());
  }
  return make_tensor_strided(
      op.name, shape, output_strides(shape, operands), dtype, like.device());
}

struct PlainOperands {
  SmallVector<TensorBase, 4> kept;
  SmallVector<Operand, 4> list;
  explicit PlainOperands(Operands operands) {
    kept.reserve(operands.size());
    for (const Operand& o : operands) {
      if (o.tensor != nullptr) {
        kept.push_back(contiguous(*o.tensor));
        list.push_back(Operand(kept.back()));
      } else {
        list.push_back(o);
      }
    }
  }
};

void check_written(const PointwiseOp& op,
                   const TensorBase& out,
                   Operands operands,
                   Repeats repeats = Repeats::Refused) {
  takes_repeats(op.name, out, repeats);
  for (const Operand& o : operands) {
    if (o.tensor != nullptr) check_no_partial_overlap(op.name, out, *o.tensor);
  }
}

void write(const PointwiseOp& op,
           const DtypePlan& types,
           const TensorBase& out,
           Operands operands,
           ArrayRef<Scalar> scalars) {
  if (any_lazy(operands) || out.is_conj() || out.is_neg()) {
    PlainOperands plain(operands);
    TensorBase result = new_output(op, types.out, plain.list);
    run(op, types, result, plain.list, scalars);
    copy_into(out, result);
    return;
  }
  run(op, types, out, operands, scalars);
}

// The part of `t`, which is broadcast to `rank` dims, at `index` along one of
// these, without that dim.
TensorBase part_of(const TensorBase& t, int64_t rank, int64_t dim, int64_t i) {
  dim -= rank - t.dim();
  if (dim < 0) return t;
  DimVector sizes, strides;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d == dim) continue;
    sizes.push_back(t.sizes()[d]);
    strides.push_back(t.strides()[d]);
  }
  int64_t step = t.sizes()[dim] == 1 ? 0 : t.strides()[dim];
  return make_view(t, sizes, strides, t.storage_offset() + i * step);
}

// Part after part along dims whose elements share addresses, so that each part
// reads what the one before has written.
void write_in_turn(const PointwiseOp& op,
                   const DtypePlan& types,
                   const TensorBase& out,
                   Operands operands,
                   ArrayRef<Scalar> scalars) {
  const int64_t dim = repeated_dim(out);
  if (dim < 0) {
    write(op, types, out, operands, scalars);
    return;
  }
  for (int64_t i = 0; i < out.sizes()[dim]; ++i) {
    SmallVector<TensorBase, 4> kept;
    SmallVector<Operand, 4> parts;
    kept.reserve(operands.size());
    for (const Operand& o : operands) {
      if (o.tensor == nullptr) {
        parts.push_back(o);
      } else {
        kept.push_back(part_of(*o.tensor, out.dim(), dim, i));
        parts.push_back(Operand(kept.back()));
      }
    }
    TensorBase part = part_of(out, out.dim(), dim, i);
    write_in_turn(op, types, part, parts, scalars);
  }
}

// Of a complex operator with a real result, real tensors of any dtype serve.
void check_exact_out(const PointwiseOp& op,
                     const DtypePlan& types,
                     ScalarType out) {
  bool is_real = op.types.out == OutKind::Real && is_complex(types.common);
  if (is_real && !is_complex(out)) return;
  ScalarType wanted = is_real ? types.common : types.out;
  TAEDA_CHECK(
      out == wanted, op.name, ": Found dtype ", out, " but expected ", wanted);
}

}  // namespace

namespace {
TensorBase computed(const PointwiseOp& op,
                    const DtypePlan& types,
                    Operands operands,
                    ArrayRef<Scalar> scalars) {
  if (any_lazy(operands)) {
    PlainOperands plain(operands);
    TensorBase out = new_output(op, types.out, plain.list);
    run(op, types, out, plain.list, scalars);
    return out;
  }
  TensorBase out = new_output(op, types.out, operands);
  run(op, types, out, operands, scalars);
  return out;
}
}  // namespace

TensorBase pointwise(const PointwiseOp& op,
                     std::initializer_list<Operand> operands,
                     std::initializer_list<Scalar> scalars) {
  return computed(
      op, plan_dtypes(op.name, op.types, operands), operands, scalars);
}

TensorBase pointwise_row_major(const PointwiseOp& op,
                               std::initializer_list<Operand> list,
                               std::initializer_list<Scalar> scalars) {
  Operands operands(list);
  DtypePlan types = plan_dtypes(op.name, op.types, operands);
  const TensorBase& like = reference_tensor(op, operands);
  TensorBase out = make_tensor(
      op.name, output_shape(op, operands), types.out, like.device());
  write(op, types, out, operands, scalars);
  return out;
}

TensorBase pointwise_summand(const PointwiseOp& op,
                             std::initializer_list<Operand> list,
                             std::initializer_list<Scalar> scalars,
                             IntArrayRef sizes) {
  Operands operands(list);
  DtypePlan types = plan_dtypes(op.name, op.types, operands);
  ScalarType wide = result_of(op.types.out, type_of(types.compute));
  if (types.out != wide && output_shape(op, operands) != DimVector(sizes)) {
    types.out = wide;
  }
  return computed(op, types, operands, scalars);
}

namespace {
void write_inplace(const PointwiseOp& op,
                   Operands operands,
                   ArrayRef<Scalar> scalars,
                   const TensorBase& self,
                   Repeats repeats) {
  DtypePlan types = plan_dtypes(op.name, op.types, operands);
  TAEDA_CHECK(op.types.out != OutKind::Real || !is_complex(self.dtype()),
              "In-place ",
              op.name,
              " is not supported for complex tensors.");
  check_castable(op.name, types.out, self.dtype());
  reference_tensor(op, operands);
  DimVector shape = output_shape(op, operands);
  TAEDA_CHECK(self.sizes() == IntArrayRef(shape),
              op.name,
              ": output with shape ",
              self.sizes(),
              " doesn't match the broadcast shape ",
              IntArrayRef(shape));
  check_written(op, self, operands, repeats);
  write_in_turn(op, types, self, operands, scalars);
}
}  // namespace

void pointwise_inplace(const PointwiseOp& op,
                       std::initializer_list<Operand> operands,
                       std::initializer_list<Scalar> scalars,
                       const TensorBase& self) {
  write_inplace(op, operands, scalars, self, Repeats::Refused);
}

void pointwise_inplace_in_turn(const PointwiseOp& op,
                               std::initializer_list<Operand> operands,
                               std::initializer_list<Scalar> scalars,
                               const TensorBase& self,
                               Repeats repeats) {
  write_inplace(op, operands, scalars, self, repeats);
}

void pointwise_exact_out(const PointwiseOp& op,
                         std::initializer_list<Operand> list,
                         std::initializer_list<Scalar> scalars,
                         const TensorBase& out) {
  DtypePlan types = plan_dtypes(op.name, op.types, Operands(list));
  check_castable(op.name, types.out, out.dtype());
  check_exact_out(op, types, out.dtype());
  pointwise_out(op, list, scalars, out);
}

void pointwise_out(const PointwiseOp& op,
                   std::initializer_list<Operand> list,
                   std::initializer_list<Scalar> scalars,
                   const TensorBase& out) {
  Operands operands(list);
  DtypePlan types = plan_dtypes(op.name, op.types, operands);
  check_castable(op.name, types.out, out.dtype());
  const TensorBase& like = reference_tensor(op, operands);
  if (like.dim() > 0 || !out.is_cpu()) check_same_device(op.name, like, out);
  check_written(op, out, operands);
  DimVector shape = output_shape(op, operands);
  if (resize_output(out, shape) && !all_row_major(operands)) {
    resize_tensor_strided(out, shape, output_strides(shape, operands));
  }
  // A wider `out` gets values as they are in the operands' type.
  if (out.dtype() != types.out && type_of(types.compute) != types.common) {
    copy_into(out, computed(op, types, operands, scalars));
    return;
  }
  write(op, types, out, operands, scalars);
}

}  // namespace taeda
