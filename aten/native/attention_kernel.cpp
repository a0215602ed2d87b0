// What attention over blocks takes and gives.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/gen/native/_flash_attention_backward.h>
#include <taeda/gen/native/_flash_attention_forward.h>
#include <taeda/gen/native/_scaled_dot_product_efficient_attention.h>
#include <taeda/gen/native/_scaled_dot_product_efficient_attention_backward.h>
#include <taeda/gen/native/_scaled_dot_product_flash_attention_for_cpu.h>
#include <taeda/gen/native/_scaled_dot_product_flash_attention_for_cpu_backward.h>

namespace taeda::native {

namespace {

// `shares`: several heads of the query may have one of key and value.
template <class I>
void check_heads(const Spec<I>& q,
                 const Spec<I>& k,
                 const Spec<I>& v,
                 const Spec<I>& mask,
                 bool shares = false) {
  constexpr std::string_view kName = "scaled_dot_product_attention";
  const auto bad = [&] {
    if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4) return true;
    bool heads =
        k.sizes()[1] == q.sizes()[1] ||
        (shares && !(k.sizes()[1] == 0) && q.sizes()[1] % k.sizes()[1] == 0);
    return !heads || !(k.sizes()[3] == q.sizes()[3]) ||
           !(k.sizes()[0] == q.sizes()[0]) ||
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
void plan_heads(size_t index, ArrayRef<I> n, ScalarType dtype, Plan<I>& plan) {
  Dims<I> strides{n[2] * n[1] * n[3], n[3], n[1] * n[3], 1};
  plan.set(index, n, strides, dtype);
}

void check_dropout(double p) {
  TAEDA_CHECK(p >= 0 && p <= 1,
              "scaled_dot_product_attention: dropout probability has to be "
              "between 0 and 1, but got ",
              p);
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
  plan_heads(0, query.sizes(), query.dtype(), plan);
  plan_heads(1, key.sizes(), query.dtype(), plan);
  plan_heads(2, value.sizes(), query.dtype(), plan);
}
TAEDA_SHAPE(_scaled_dot_product_flash_attention_for_cpu_backward_shape);

template <class I>
void _scaled_dot_product_efficient_attention_shape(const Spec<I>& query,
                                                   const Spec<I>& key,
                                                   const Spec<I>& value,
                                                   const Spec<I>& attn_bias,
                                                   bool compute_log_sumexp,
                                                   double dropout_p,
                                                   bool,
                                                   std::optional<double>,
                                                   Plan<I>& plan) {
  check_dropout(dropout_p);
  check_heads(query, key, value, attn_bias, /*shares=*/true);
  Dims<I> sizes(query.sizes());
  sizes[3] = value.sizes()[3];
  plan_heads<I>(0, sizes, query.dtype(), plan);
  Dims<I> sums(query.sizes().slice(0, 3));
  if (!compute_log_sumexp) sums[2] = I(0);
  plan.set(1, sums, compute_type(query.dtype()));
  plan.set(2, Dims<I>{}, kLong);
  plan.set(3, Dims<I>{}, kLong);
}
TAEDA_SHAPE(_scaled_dot_product_efficient_attention_shape);

template <class I>
void _scaled_dot_product_efficient_attention_backward_shape(
    const Spec<I>& grad_out,
    const Spec<I>& query,
    const Spec<I>& key,
    const Spec<I>& value,
    const Spec<I>& attn_bias,
    const Spec<I>& out,
    const Spec<I>& logsumexp,
    const Spec<I>&,
    const Spec<I>&,
    double dropout_p,
    ArrayRef<bool> grad_input_mask,
    bool,
    std::optional<double>,
    Plan<I>& plan) {
  constexpr std::string_view kName = "scaled_dot_product_attention_backward";
  check_dropout(dropout_p);
  check_heads(query, key, value, attn_bias, /*shares=*/true);
  check_mask(kName, grad_input_mask, 4);
  Dims<I> wanted(query.sizes());
  wanted[3] = value.sizes()[3];
  check_shape(kName, "grad_out", grad_out, ArrayRef<I>(wanted));
  check_shape(kName, "out", out, ArrayRef<I>(wanted));
  check_shape(kName, "logsumexp", logsumexp, query.sizes().slice(0, 3));
  if (grad_input_mask[0]) plan_heads(0, query.sizes(), query.dtype(), plan);
  if (grad_input_mask[1]) plan_heads(1, key.sizes(), query.dtype(), plan);
  if (grad_input_mask[2]) plan_heads(2, value.sizes(), query.dtype(), plan);
  if (!grad_input_mask[3] || !attn_bias.defined()) return;
  wanted[3] = key.sizes()[2];
  check_shape(kName, "attn_bias", attn_bias, ArrayRef<I>(wanted));
  plan.set(3, wanted, attn_bias.dtype());
}
TAEDA_SHAPE(_scaled_dot_product_efficient_attention_backward_shape);

namespace {

// Of sequences of one length, or of rows that some sequence has.
template <class I>
void check_rows(const Spec<I>& q,
                const Spec<I>& k,
                const Spec<I>& v,
                bool behind,
                bool paged) {
  const auto bad = [&] {
    int64_t dims = behind ? 3 : 4, of_keys = paged ? 4 : dims;
    if (q.dim() != dims || k.dim() != of_keys || v.dim() != of_keys) {
      return true;
    }
    auto at = [](const Spec<I>& t, int64_t d) {
      return t.sizes()[static_cast<size_t>(t.dim() + d)];
    };
    size_t lead = k.sizes().size() - 1;
    return at(k, -2) == 0 || !(at(q, -2) % at(k, -2) == 0) ||
           !(at(k, -1) == at(q, -1)) ||
           !(v.sizes().slice(0, lead) == k.sizes().slice(0, lead)) ||
           (!behind && !paged && !(q.sizes()[0] == k.sizes()[0]));
  };
  TAEDA_CHECK(!bad(),
              "_flash_attention: expected query, key and value of [rows, "
              "heads, width] with cum_seq_q, else of [batch, rows, heads, "
              "width], got ",
              q.sizes(),
              ", ",
              k.sizes(),
              " and ",
              v.sizes());
}

template <class I>
Dims<I> wide_as(const Spec<I>& query, const Spec<I>& value) {
  Dims<I> sizes(query.sizes());
  sizes.back() = value.sizes().back();
  return sizes;
}

// Log sums, [heads, rows] or [batch, heads, rows].
template <class I>
Dims<I> sums_of(const Spec<I>& query) {
  const ArrayRef<I> n = query.sizes();
  if (n.size() == 3) return {n[1], n[0]};
  return {n[0], n[2], n[1]};
}

}  // namespace

template <class I>
void _flash_attention_forward_shape(const Spec<I>& query,
                                    const Spec<I>& key,
                                    const Spec<I>& value,
                                    const Spec<I>& cum_seq_q,
                                    const Spec<I>& cum_seq_k,
                                    I,
                                    I,
                                    double dropout_p,
                                    bool,
                                    bool,
                                    std::optional<double>,
                                    std::optional<I>,
                                    std::optional<I>,
                                    const Spec<I>&,
                                    const Spec<I>&,
                                    const Spec<I>& block_table,
                                    std::optional<int64_t>,
                                    Plan<I>& plan) {
  check_dropout(dropout_p);
  bool behind = cum_seq_q.defined(), paged = block_table.defined();
  TAEDA_CHECK(paged || behind == cum_seq_k.defined(),
              "_flash_attention_forward: expected cum_seq_q and cum_seq_k, or "
              "neither");
  check_rows(query, key, value, behind, paged);
  plan.set(0, wide_as(query, value), query.dtype());
  plan.set(1, sums_of(query), kFloat);
  plan.set(2, Dims<I>{I(2)}, kUInt64);
  plan.set(3, Dims<I>{}, kUInt64);
  plan.set(4, Dims<I>{I(0)}, query.dtype());
}
TAEDA_SHAPE(_flash_attention_forward_shape);

template <class I>
void _flash_attention_backward_shape(const Spec<I>& grad_out,
                                     const Spec<I>& query,
                                     const Spec<I>& key,
                                     const Spec<I>& value,
                                     const Spec<I>& out,
                                     const Spec<I>& logsumexp,
                                     const Spec<I>&,
                                     const Spec<I>&,
                                     I,
                                     I,
                                     double dropout_p,
                                     bool,
                                     const Spec<I>&,
                                     const Spec<I>&,
                                     std::optional<double>,
                                     std::optional<I>,
                                     std::optional<I>,
                                     Plan<I>& plan) {
  constexpr std::string_view kName = "_flash_attention_backward";
  check_dropout(dropout_p);
  check_rows(query, key, value, query.dim() == 3, false);
  const Dims<I> wanted = wide_as(query, value), sums = sums_of(query);
  check_shape(kName, "grad_out", grad_out, ArrayRef<I>(wanted));
  check_shape(kName, "out", out, ArrayRef<I>(wanted));
  check_shape(kName, "logsumexp", logsumexp, ArrayRef<I>(sums));
  plan.set(0, query.sizes(), query.dtype());
  plan.set(1, key.sizes(), query.dtype());
  plan.set(2, value.sizes(), query.dtype());
}
TAEDA_SHAPE(_flash_attention_backward_shape);

}  // namespace taeda::native
