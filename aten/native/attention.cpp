// scaled_dot_product_attention: checks, masks, and which way it is computed.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/attention_scale.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/aten/settings.h>
#include <taeda/gen/native/_fused_sdp_choice.h>
#include <taeda/gen/native/_scaled_dot_product_attention_math.h>
#include <taeda/gen/native/scaled_dot_product_attention.h>
#include <taeda/gen/ops/_safe_softmax.h>
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

bool same_batch(const Tensor& a, const Tensor& b) {
  size_t lead = static_cast<size_t>(a.dim()) - 2;
  return a.dim() == b.dim() && same_sizes(symbolic_sizes(a).slice(0, lead),
                                          symbolic_sizes(b).slice(0, lead));
}

Tensor in_type(const Tensor& t, ScalarType type) {
  if (!t.defined() || t.dtype() == type || t.dtype() == kBool) return t;
  return ops::_to_copy(
      t, type, std::nullopt, std::nullopt, std::nullopt, false, std::nullopt);
}

// Whether the fused kernel takes the mask: one size per dim, or 1.
bool mask_fits(const Tensor& q, const Tensor& k, const Tensor& mask) {
  if (!mask.defined()) return true;
  int64_t own = mask.dim();
  if (mask.requires_grad() || own > q.dim() || own < 2) return false;
  for (int64_t d = 0; d < own; ++d) {
    int64_t at = q.dim() - own + d;
    bool fits = at == q.dim() - 1 ? same_size(mask, d, k, k.dim() - 2)
                                  : same_size(mask, d, q, at);
    if (!fits && symbolic_sizes(mask)[static_cast<size_t>(d)] != 1) {
      return false;
    }
  }
  return true;
}

// Why the fused kernel does not have the case; null where it does.
const char* not_fusable(const Tensor& q,
                        const Tensor& k,
                        const Tensor& v,
                        const Tensor& mask,
                        double dropout_p) {
  if (dropout_p != 0) return "it has no dropout";
  if (!q.is_cpu() && !q.is_meta()) return "it runs on the CPU";
  if (!q.is_floating_point() || is_float8(q.dtype())) {
    return "it computes in floating-point types of 16 bits and more";
  }
  bool shapes = q.dim() <= 4 && same_batch(q, k) && same_batch(q, v) &&
                same_size(q, q.dim() - 1, k, k.dim() - 1) &&
                same_size(k, k.dim() - 2, v, v.dim() - 2) && q.size(-1) > 0;
  if (!shapes) return "query, key and value do not have its shapes";
  return mask_fits(q, k, mask) ? nullptr
                               : "attn_mask does not have its shape, or "
                                 "requires grad";
}

using settings::Attention;

// The first enabled way, in the order of preference, that has the case.
Attention choose_attention(const Tensor& q,
                           const Tensor& k,
                           const Tensor& v,
                           const Tensor& mask,
                           double dropout_p) {
  bool math = settings::attention_enabled(Attention::Math);
  bool flash = settings::attention_enabled(Attention::Flash);
  TAEDA_CHECK(math || flash,
              "No viable backend for scaled_dot_product_attention was found: "
              "of MATH and FLASH_ATTENTION, which the CPU has, none is "
              "enabled");
  const char* reason = flash ? not_fusable(q, k, v, mask, dropout_p) : nullptr;
  for (Attention way : settings::attention_order()) {
    if (way == Attention::Math && math) return way;
    if (way == Attention::Flash && flash && reason == nullptr) return way;
  }
  throw_error(ErrorKind::Runtime,
              str_cat("scaled_dot_product_attention: No available kernel.  "
                      "Aborting execution. MATH is disabled, and "
                      "FLASH_ATTENTION does not apply: ",
                      reason));
}

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
  auto [k, v] = share_heads(query, key, value, enable_gqa);
  return static_cast<int64_t>(choose_attention(query, k, v, mask, dropout_p));
}

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
  auto [k, v] = share_heads(query, key, value, enable_gqa);
  if (choose_attention(query, k, v, mask, dropout_p) == Attention::Flash) {
    OptionalTensor added;
    if (mask.defined()) {
      Tensor m = additive(mask, query.dtype());
      if (query.dim() == 3 && m.dim() == 3) m = four_dims(m);
      added = m;
    }
    Tensor out = std::get<0>(
        ops::_scaled_dot_product_flash_attention_for_cpu(four_dims(query),
                                                         four_dims(k),
                                                         four_dims(v),
                                                         0.0,
                                                         is_causal,
                                                         added,
                                                         scale));
    if (query.dim() == 4) return out;
    Dims<SymInt> sizes(symbolic_sizes(query));
    sizes.back() = symbolic_sizes(v).back();
    return reshape_sized(out, sizes);
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
                                                     false));
  return in_type(out, query.dtype());
}

}  // namespace taeda::native
