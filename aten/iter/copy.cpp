#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/copy.h>

namespace taeda {

namespace {

bool may_share(const TensorBase& a, const TensorBase& b) {
  return a.storage().get() == b.storage().get() && a.numel() > 0;
}

}  // namespace

void copy_into(const TensorBase& dst, const TensorBase& src) {
  if (dst.is_same(src) || dst.is_meta()) return;
  TAEDA_CHECK_AS(NotImplemented,
                 !src.is_meta(),
                 "Cannot copy out of meta tensor ",
                 src,
                 "; no data!");
  TAEDA_CHECK_AS(NotImplemented,
                 dst.is_cpu() && src.is_cpu(),
                 "copy_: no copy between ",
                 src.device(),
                 " and ",
                 dst.device());
  bool conj = dst.is_conj() != src.is_conj();
  bool neg = dst.is_neg() != src.is_neg();
  bool lazy = (conj && src.is_complex()) || neg;
  if (!lazy && !may_share(dst, src)) {
    copy_elements(dst, src);
    return;
  }
  bool plain = !lazy && dst.sizes() == src.sizes() &&
               dst.strides() == src.strides() &&
               dst.storage_offset() == src.storage_offset();
  if (plain && dst.dtype() == src.dtype()) return;
  TensorBase temporary = make_tensor("copy_", src.sizes(), src.dtype());
  copy_elements(temporary, src);
  apply_lazy_bits(temporary, conj && src.is_complex(), neg);
  copy_elements(dst, temporary);
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
