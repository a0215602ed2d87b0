#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/launch.h>
#include <taeda/aten/native/cpu/copy.h>

namespace taeda {

namespace {

bool may_share(const TensorBase& a, const TensorBase& b) {
  return a.storage().get() == b.storage().get() && a.numel() > 0;
}

}  // namespace

namespace native {

void launch_copy(const TensorBase& dst,
                 const TensorBase& src,
                 const CopyOptions& options) {
  if (!options.conj && !options.neg) {
    copy_elements(dst, src);
    return;
  }
  bool same = dst.dtype() == src.dtype() && dst.is_contiguous();
  if (same && src.is_contiguous() && dst.sizes() == src.sizes() &&
      has_sign_bits(dst.dtype())) {
    copy_changing_signs(dst, src, options.conj, options.neg);
    return;
  }
  if (same) {
    copy_elements(dst, src);
    apply_lazy_bits(dst, options.conj, options.neg);
    return;
  }
  TensorBase temporary = make_tensor("copy_", src.sizes(), src.dtype());
  copy_elements(temporary, src);
  apply_lazy_bits(temporary, options.conj, options.neg);
  copy_elements(dst, temporary);
}

}  // namespace native

void copy_into(const TensorBase& dst,
               const TensorBase& src,
               bool non_blocking) {
  if (dst.is_same(src) || dst.is_meta()) return;
  TAEDA_CHECK_AS(NotImplemented,
                 !src.is_meta(),
                 "Cannot copy out of meta tensor ",
                 src,
                 "; no data!");
  bool conj = dst.is_conj() != src.is_conj();
  bool neg = dst.is_neg() != src.is_neg();
  bool lazy = (conj && src.is_complex()) || neg;
  Device where = dst.is_cpu() ? src.device() : dst.device();
  if (TAEDA_LIKELY(where.is_cpu()) && !lazy && !may_share(dst, src)) {
    copy_elements(dst, src);
    return;
  }
  CopyOptions options{conj && src.is_complex(), neg, non_blocking};
  const Launchers& device = launchers_of("copy_", where);
  if (!may_share(dst, src)) {
    device.copy(dst, src, options);
    return;
  }
  bool plain = !lazy && dst.sizes() == src.sizes() &&
               dst.strides() == src.strides() &&
               dst.storage_offset() == src.storage_offset();
  if (plain && dst.dtype() == src.dtype()) return;
  TensorBase temporary =
      make_tensor("copy_", src.sizes(), src.dtype(), src.device());
  device.copy(temporary, src, options);
  device.copy(dst, temporary, CopyOptions());
}

void fill_with(const TensorBase& dst, const Scalar& value) {
  if (dst.numel() == 0 || dst.is_meta()) return;
  launchers_of("fill_", dst.device()).fill(dst, value);
}

TensorBase on_cpu(const TensorBase& t) {
  if (t.is_cpu()) return t;
  TensorBase here = make_tensor("to", t.sizes(), t.dtype());
  copy_into(here, t);
  return here;
}

TensorBase contiguous(const TensorBase& t) {
  return contiguous_as(t, t.dtype());
}

TensorBase contiguous_as(const TensorBase& t, ScalarType dtype) {
  bool lazy = t.is_conj() || t.is_neg();
  if (t.dtype() == dtype && t.is_contiguous() && !lazy) return t;
  TensorBase out = make_tensor("contiguous", t.sizes(), dtype, t.device());
  copy_into(out, t);
  return out;
}

TensorBase cast(const TensorBase& t, ScalarType dtype) {
  if (t.dtype() == dtype) return t;
  bool keep = t.is_non_overlapping_and_dense();
  TensorBase out = keep ? make_tensor_strided(
                              "to", t.sizes(), t.strides(), dtype, t.device())
                        : make_tensor("to", t.sizes(), dtype, t.device());
  copy_into(out, t);
  return out;
}

}  // namespace taeda
