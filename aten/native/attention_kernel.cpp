// What attention over blocks takes and gives.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/gen/native/_scaled_dot_product_flash_attention_for_cpu.h>
#include <taeda/gen/native/_scaled_dot_product_flash_attention_for_cpu_backward.h>

namespace taeda::native {

namespace {

template <class I>
void check_heads(const Spec<I>& q,
                 const Spec<I>& k,
                 const Spec<I>& v,
                 const Spec<I>& mask) {
  constexpr std::string_view kName = "scaled_dot_product_attention";
  const auto bad = [&] {
    return q.dim() != 4 || k.dim() != 4 || v.dim() != 4 ||
           !(k.sizes()[3] == q.sizes()[3]) ||
           !(k.sizes().slice(0, 2) == q.sizes().slice(0, 2)) ||
           !(v.sizes().slice(0, 3) == k.sizes().slice(0, 3));
  };
  TAEDA_CHECK(!bad(),
              kName,
              ": expected query [b, h, t, d], key [b, h, s, d] and value "
              "[b, h, s, e], got ",
              q.sizes(),
              ", ",
              k.sizes(),
              " and ",
              v.sizes());
  if (!mask.defined()) return;
  const Dims<I> scores{q.sizes()[0], q.sizes()[1], q.sizes()[2], k.sizes()[2]};
  TAEDA_CHECK(broadcast_shapes<I>(kName, mask.sizes(), scores) == scores,
              kName,
              ": expected an attn_mask that broadcasts to ",
              ArrayRef<I>(scores),
              ", got ",
              mask.sizes());
}

// Laid out as [b, t, h, d], so that joining the heads again is a view.
// [b, h, t, d] in the memory order [b, t, h, d].
template <class I>
void plan_heads(size_t index,
                const Spec<I>& like,
                ScalarType dtype,
                Plan<I>& plan) {
  ArrayRef<I> n = like.sizes();
  Dims<I> strides{n[2] * n[1] * n[3], n[3], n[1] * n[3], 1};
  plan.set(index, n, strides, dtype);
}

// In the query's memory order: of heads split from [b, t, h, d] the results
// join by a view again. The kernel needs rows without gaps.
template <class I>
void plan_result(const Spec<I>& query, const I& width, Plan<I>& plan) {
  Dims<I> sizes(query.sizes());
  bool same = sizes[3] == width;
  sizes[3] = width;
  Dims<I> strides = same ? strides::preserved(query.sizes(), query.strides())
                         : strides::contiguous<I>(sizes);
  if (!(strides[3] == 1)) strides = strides::contiguous<I>(sizes);
  plan.set(0, sizes, strides, query.dtype());
}

}  // namespace

template <class I>
void _scaled_dot_product_flash_attention_for_cpu_shape(const Spec<I>& query,
                                                       const Spec<I>& key,
                                                       const Spec<I>& value,
                                                       double dropout_p,
                                                       bool,
                                                       const Spec<I>& attn_mask,
                                                       std::optional<double>,
                                                       Plan<I>& plan) {
  TAEDA_CHECK(dropout_p == 0,
              "scaled_dot_product_attention: the fused kernel has no dropout");
  check_heads(query, key, value, attn_mask);
  plan_result(query, value.sizes()[3], plan);
  plan.set(1, query.sizes().slice(0, 3), compute_type(query.dtype()));
}
TAEDA_SHAPE(_scaled_dot_product_flash_attention_for_cpu_shape);

template <class I>
void _scaled_dot_product_flash_attention_for_cpu_backward_shape(
    const Spec<I>& grad_out,
    const Spec<I>& query,
    const Spec<I>& key,
    const Spec<I>& value,
    const Spec<I>&,
    const Spec<I>&,
    double,
    bool,
    const Spec<I>& attn_mask,
    std::optional<double>,
    Plan<I>& plan) {
  check_heads(query, key, value, attn_mask);
  Dims<I> wanted(query.sizes());
  wanted[3] = value.sizes()[3];
  check_shape("scaled_dot_product_attention_backward",
              "grad_out",
              grad_out,
              ArrayRef<I>(wanted));
  plan_heads(0, query, query.dtype(), plan);
  plan_heads(1, key, query.dtype(), plan);
  plan_heads(2, value, query.dtype(), plan);
}
TAEDA_SHAPE(_scaled_dot_product_flash_attention_for_cpu_backward_shape);

}  // namespace taeda::native
