#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/core/library.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/program_launch.h>

#include <vector>

namespace taeda {

namespace {

constexpr int kProgram = static_cast<int>(DispatchKey::PrivateUse1);
constexpr DispatchKeySet kProgramKey{DispatchKey::PrivateUse1};

void copy_from(const TensorBase& src, const TensorBase& dst, bool may_return) {
  const OperatorEntry& op = copy_from_operator();
  BoxedKernel* kernel = op.boxed[kProgram];
  Device device = src.is_cpu() ? dst.device() : src.device();
  TAEDA_CHECK_AS(NotImplemented,
                 kernel != nullptr,
                 "copy_: no kernel of aten::_copy_from for device ",
                 device);
  ExcludeKeysGuard below(DispatchKey::Autograd);
  Stack stack{IValue(src), IValue(dst), IValue(may_return)};
  kernel->call(op, kProgramKey, stack);
}

// The elements as they lie, with the sizes of what they are copied to.
TensorBase plain(const TensorBase& t, IntArrayRef sizes) {
  bool lazy = t.is_conj() || t.is_neg();
  if (!lazy && t.sizes() == sizes) return t;
  size_t more = sizes.size() - static_cast<size_t>(t.dim());
  DimVector strides(sizes.size(), 0);
  for (size_t d = 0; d < static_cast<size_t>(t.dim()); ++d) {
    strides[more + d] = t.sizes()[d] == 1 ? 0 : t.strides()[d];
  }
  return make_view(t, sizes, strides, t.storage_offset());
}

TensorBase plain_on_cpu(const TensorBase& t) {
  if (t.is_cpu()) return t;
  TensorBase here = make_tensor("copy_", t.sizes(), t.dtype());
  copy_from(plain(t, t.sizes()), here, false);
  return here;
}

void launch_copy(const TensorBase& dst,
                 const TensorBase& src,
                 const CopyOptions& options) {
  if (dst.numel() == 0) return;
  if (!options.conj && !options.neg) {
    copy_from(
        plain(src, dst.sizes()), plain(dst, dst.sizes()), options.non_blocking);
    return;
  }
  TensorBase changed = make_tensor("copy_", dst.sizes(), src.dtype());
  native::launch_copy(changed, plain_on_cpu(src), options);
  launch_copy(dst, changed, {});
}

void launch_fill(const TensorBase& dst, const Scalar& value) {
  const OperatorEntry* op = Dispatcher::get().find("fill_", "Scalar");
  if (BoxedKernel* kernel = op->boxed[kProgram]) {
    ExcludeKeysGuard below(DispatchKey::Autograd);
    Stack stack{IValue(plain(dst, dst.sizes())), IValue(value)};
    kernel->call(*op, kProgramKey, stack);
    return;
  }
  TensorBase one = make_tensor("fill_", {}, dst.dtype());
  native::launch_fill(one, value);
  copy_from(plain(one, dst.sizes()), plain(dst, dst.sizes()), false);
}

// `f` is called with operands on the CPU.
template <class F>
void with_operands(Operands operands, F&& f) {
  std::vector<TensorBase> here;
  here.reserve(operands.size());
  std::vector<Operand> moved(operands.begin(), operands.end());
  for (Operand& o : moved) {
    if (o.tensor == nullptr || o.tensor->is_cpu()) continue;
    o.tensor = &here.emplace_back(plain_on_cpu(*o.tensor));
  }
  f(Operands(moved.data(), moved.size()));
}

void launch_pointwise(const PointwiseOp& op,
                      const DtypePlan& types,
                      const TensorBase& out,
                      Operands operands,
                      ArrayRef<Scalar> scalars) {
  TensorBase here = make_tensor(op.name, out.sizes(), out.dtype());
  with_operands(operands, [&](Operands moved) {
    native::launch_pointwise(op, types, here, moved, scalars);
  });
  launch_copy(out, here, {});
}

void launch_reduce(const ReduceOp& op,
                   const ReducePlan& plan,
                   const TensorBase& self,
                   const TensorBase& out,
                   ArrayRef<Scalar> scalars) {
  TensorBase here = make_tensor(op.name, out.sizes(), out.dtype());
  native::launch_reduce(op, plan, plain_on_cpu(self), here, scalars);
  launch_copy(out, here, {});
}

constexpr Launchers kLaunchers{
    &launch_pointwise, &launch_reduce, &launch_copy, &launch_fill};

}  // namespace

const Launchers& program_launchers() { return kLaunchers; }

}  // namespace taeda
