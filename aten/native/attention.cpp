// scaled_dot_product_attention: checks, masks, and which way it is computed.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/attention_choice.h>
#include <taeda/aten/native/attention_scale.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/_fused_sdp_choice.h>
#include <taeda/gen/native/_scaled_dot_product_attention_math.h>
#include <taeda/gen/native/scaled_dot_product_attention.h>
#include <taeda/gen/ops/_safe_softmax.h>
#include <taeda/gen/ops/_scaled_dot_product_efficient_attention.h>
#include <taeda/gen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/dropout.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/softmax.h>
#include <taeda/gen/ops/transpose.h>

#include <cmath>
#include <limits>

namespace taeda::native {

namespace {

void check_attention(const Tensor& q,
                     const Tensor& k,
                     const Tensor& v,
                     const Tensor& mask,
                     bool causal) {
  TAEDA_CHECK(q.dtype() == k.dtype() && q.dtype() == v.dtype(),
              "scaled_dot_product_attention: Expected query, key, and value to "
              "have the same dtype, but got query.dtype: ",
              q.dtype(),
              " key.dtype: ",
              k.dtype(),
              " and value.dtype: ",
              v.dtype(),
              " instead.");
  TAEDA_CHECK(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2,
              "scaled_dot_product_attention: Expected query, key, and value to "
              "all be  at least 2 dimensional, but got query.dim: ",
              q.dim(),
              " key.dim: ",
              k.dim(),
              " and value.dim: ",
              v.dim(),
              " instead.");
  TAEDA_CHECK(!(mask.defined() && causal),
              "scaled_dot_product_attention: Explicit attn_mask should not be "
              "set when is_causal=True");
  bool typed = !mask.defined() || mask.dtype() == kBool ||
               mask.dtype() == q.dtype() ||
               (mask.dtype() == kFloat && is_reduced_floating(q.dtype()));
  TAEDA_CHECK(
      typed,
      "scaled_dot_product_attention: Expected attn_mask dtype to be "
      "bool or float or to match query dtype, but got attn_mask.dtype: ",
      mask.dtype(),
      " and  query.dtype: ",
      q.dtype(),
      " instead.");
}

// A bool mask becomes 0 where it allows and -inf elsewhere.
Tensor additive(const Tensor& mask, ScalarType type) {
  if (!mask.defined() || mask.dtype() != kBool) return mask;
  Tensor zero = make_tensor("attn_mask", mask.sizes(), type, mask.device());
  if (!mask.is_meta()) fill_with(zero, 0.0);
  Tensor off = ops::eq(mask, Scalar(false));
  return ops::masked_fill(
      zero, off, Scalar(-std::numeric_limits<double>::infinity()));
}

// Key or value heads repeated until there are as many as query heads.
Tensor repeated_heads(const Tensor& t, int64_t heads) {
  int64_t own = t.size(-3);
  if (own == heads) return t;
  TAEDA_CHECK(own > 0 && heads % own == 0,
              "scaled_dot_product_attention: Number of heads in key and value "
              "must divide the number of heads in query, got ",
              own,
              " and ",
              heads);
  Dims<SymInt> split(symbolic_sizes(t));
  split.insert(split.end() - 2, SymInt(1));
  Dims<SymInt> wide = split, joined(symbolic_sizes(t));
  wide[wide.size() - 3] = heads / own;
  joined[joined.size() - 3] = heads;
  return reshape_sized(expand_sized(reshape_sized(t, split), wide), joined);
}

// The dims before the last three as one.
Tensor four_dims(const Tensor& t) {
  if (t.dim() == 4) return t;
  ArrayRef<SymInt> own = symbolic_sizes(t);
  Dims<SymInt> sizes{SymInt(1), SymInt(1), own[own.size() - 2], own.back()};
  if (t.dim() == 3) sizes[0] = own[0];
  return reshape_sized(t, sizes);
}

Tensor in_type(const Tensor& t, ScalarType type) {
  if (!t.defined() || t.dtype() == type || t.dtype() == kBool) return t;
  return ops::_to_copy(
      t, type, std::nullopt, std::nullopt, std::nullopt, false, std::nullopt);
}

using settings::Attention;

struct SharedHeads {
  Tensor key, value;
};
// Key and value with as many heads as the query.
SharedHeads share_heads(const Tensor& query,
                        const Tensor& key,
                        const Tensor& value,
                        bool enable_gqa) {
  if (!enable_gqa || query.dim() < 3) return {key, value};
  int64_t heads = query.size(-3);
  return {repeated_heads(key, heads), repeated_heads(value, heads)};
}

}  // namespace

std::tuple<Tensor, Tensor> _scaled_dot_product_attention_math(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const OptionalTensor& attn_mask,
    double dropout_p,
    bool is_causal,
    const OptionalTensor& dropout_mask,
    std::optional<double> scale,
    bool enable_gqa) {
  Tensor k = key, v = value;
  if (enable_gqa) {
    k = repeated_heads(key, query.size(-3));
    v = repeated_heads(value, query.size(-3));
  }
  double factor = attention_scale(scale, query.size(-1));
  Tensor scores =
      ops::mul(ops::matmul(query, ops::transpose(k, -2, -1)), Scalar(factor));
  Tensor mask = additive(or_undefined(attn_mask), query.dtype());
  if (is_causal) {
    int64_t rows = query.size(-2), columns = key.size(-2);
    mask = make_tensor(
        "attn_mask", {rows, columns}, query.dtype(), query.device());
    if (!mask.is_meta()) {
      Tensor plain = make_tensor("attn_mask", {rows, columns}, kFloat);
      float* p = plain.mutable_data<float>();
      for (int64_t i = 0; i < rows * columns; ++i) {
        p[i] = i % columns <= i / columns
                   ? 0.0F
                   : -std::numeric_limits<float>::infinity();
      }
      copy_into(mask, plain);
    }
  }
  if (mask.defined()) scores = ops::add(scores, mask);
  // Rows without any score are zeros, not NaN, and so are their gradients.
  Tensor probs = mask.defined()
                     ? ops::_safe_softmax(scores, int64_t{-1}, std::nullopt)
                     : ops::softmax(scores, int64_t{-1}, std::nullopt);
  Tensor weights = probs;
  if (dropout_p > 0 && dropout_mask) {
    weights = ops::masked_fill(
        probs, ops::eq(*dropout_mask, Scalar(false)), Scalar(0.0));
    weights = ops::mul(weights, Scalar(1 / (1 - dropout_p)));
  } else if (dropout_p > 0) {
    weights = ops::dropout(probs, dropout_p, true);
  }
  return {ops::matmul(weights, v), weights};
}

int64_t _fused_sdp_choice(const Tensor& query,
                          const Tensor& key,
                          const Tensor& value,
                          const OptionalTensor& attn_mask,
                          double dropout_p,
                          bool is_causal,
                          std::optional<double>,
                          bool enable_gqa) {
  Tensor mask = or_undefined(attn_mask);
  check_attention(query, key, value, mask, is_causal);
  bool shares = enable_gqa && query.dim() > 2 && query.device().is_cuda();
  auto [k, v] = share_heads(query, key, value, enable_gqa && !shares);
  return static_cast<int64_t>(
      choose_attention({query, k, v, mask, dropout_p, is_causal, shares}));
}

namespace {

// [batch, heads, length, width] as the query has it.
Tensor like_query(const Tensor& out, const Tensor& query, const Tensor& value) {
  if (query.dim() == 4) return out;
  Dims<SymInt> sizes(symbolic_sizes(query));
  sizes.back() = symbolic_sizes(value).back();
  return reshape_sized(out, sizes);
}

Tensor attend_on_cpu(const AttentionCase& a, std::optional<double> scale) {
  OptionalTensor added;
  if (a.mask.defined()) {
    Tensor m = additive(a.mask, a.query.dtype());
    if (a.query.dim() == 3 && m.dim() == 3) m = four_dims(m);
    added = m;
  }
  Tensor out = std::get<0>(
      ops::_scaled_dot_product_flash_attention_for_cpu(four_dims(a.query),
                                                       four_dims(a.key),
                                                       four_dims(a.value),
                                                       0.0,
                                                       a.is_causal,
                                                       added,
                                                       scale));
  return like_query(out, a.query, a.value);
}

Tensor attend_on_cuda(const AttentionCase& a, std::optional<double> scale) {
  Tensor q = four_dims(a.query), k = four_dims(a.key), m = a.mask;
  if (m.defined() && a.query.dim() == 3 && m.dim() == 3) m = four_dims(m);
  bool has_graph = grad_enabled() && (q.requires_grad() || k.requires_grad() ||
                                      a.value.requires_grad() ||
                                      (m.defined() && m.requires_grad()));
  // The kernel gives the gradient of each score; expand adds them up.
  if (has_graph && m.defined() && m.requires_grad()) {
    ArrayRef<SymInt> own = symbolic_sizes(q);
    m = expand_sized(m, {own[0], own[1], own[2], symbolic_sizes(k)[2]});
  }
  OptionalTensor added;
  if (m.defined()) added = m;
  Tensor out = std::get<0>(
      ops::_scaled_dot_product_efficient_attention(q,
                                                   k,
                                                   four_dims(a.value),
                                                   added,
                                                   has_graph,
                                                   a.dropout_p,
                                                   a.is_causal,
                                                   scale));
  return like_query(out, a.query, a.value);
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query,
                                    const Tensor& key,
                                    const Tensor& value,
                                    const OptionalTensor& attn_mask,
                                    double dropout_p,
                                    bool is_causal,
                                    std::optional<double> scale,
                                    bool enable_gqa) {
  Tensor mask = or_undefined(attn_mask);
  check_attention(query, key, value, mask, is_causal);
  bool shares = enable_gqa && query.dim() > 2 && query.device().is_cuda();
  auto [k, v] = share_heads(query, key, value, enable_gqa && !shares);
  const AttentionCase given{query, k, v, mask, dropout_p, is_causal, shares};
  if (choose_attention(given) != Attention::Math) {
    return query.device().is_cuda() ? attend_on_cuda(given, scale)
                                    : attend_on_cpu(given, scale);
  }
  // 16-bit floats are computed in float, as PyTorch does.
  ScalarType type =
      query.is_floating_point() ? compute_type(query.dtype()) : query.dtype();
  OptionalTensor wide;
  if (mask.defined()) wide = in_type(mask, type);
  Tensor out =
      std::get<0>(_scaled_dot_product_attention_math(in_type(query, type),
                                                     in_type(k, type),
                                                     in_type(v, type),
                                                     wide,
                                                     dropout_p,
                                                     is_causal,
                                                     std::nullopt,
                                                     scale,
                                                     shares));
  return in_type(out, query.dtype());
}

}  // namespace taeda::native
