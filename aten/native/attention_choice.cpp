#include <taeda/aten/native/attention_choice.h>

#include <taeda/aten/native/symbolic_sizes.h>

#include <string>

namespace taeda::native {

namespace {

using settings::Attention;

bool same_batch(const Tensor& a, const Tensor& b, size_t inner) {
  size_t lead = static_cast<size_t>(a.dim()) - inner;
  return a.dim() == b.dim() && same_sizes(symbolic_sizes(a).slice(0, lead),
                                          symbolic_sizes(b).slice(0, lead));
}

// Whether a fused kernel takes the mask: one size per dim, or 1.
bool mask_fits(const Tensor& q, const Tensor& k, const Tensor& mask) {
  if (!mask.defined()) return true;
  int64_t own = mask.dim();
  if (own > q.dim() || own < 2) return false;
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

constexpr const char* kShapes = "query, key and value do not have its shapes";
constexpr const char* kMask = "attn_mask does not have its shape";

// Whether heads of keys are as many as the query's, or shared by them.
bool heads_fit(const Tensor& q, const Tensor& k, bool shared) {
  if (q.dim() < 3 || same_size(q, q.dim() - 3, k, k.dim() - 3)) return true;
  int64_t own = k.size(-3);
  return shared && own > 0 && q.size(-3) % own == 0;
}

bool shapes_fit(const AttentionCase& a, bool shared) {
  const Tensor &q = a.query, &k = a.key, &v = a.value;
  return q.dim() <= 4 && q.dim() == k.dim() && same_batch(k, v, 2) &&
         (q.dim() < 3 || same_batch(q, k, 3)) && heads_fit(q, k, shared) &&
         same_size(q, q.dim() - 1, k, k.dim() - 1) &&
         same_size(k, k.dim() - 2, v, v.dim() - 2) && q.size(-1) > 0;
}

const char* refusal_of_cpu(const AttentionCase& a) {
  if (a.dropout_p != 0) return "it has no dropout";
  if (!a.query.is_floating_point() || is_float8(a.query.dtype())) {
    return "it computes in floating-point types of 16 bits and more";
  }
  if (!shapes_fit(a, false)) return kShapes;
  if (a.mask.defined() && a.mask.requires_grad()) {
    return "attn_mask does not have its shape, or requires grad";
  }
  return mask_fits(a.query, a.key, a.mask) ? nullptr
                                           : "attn_mask does not have its "
                                             "shape, or requires grad";
}

// Heads of more columns do not fit into a block's registers and memory.
constexpr int64_t kMostWidth = 256;

const char* refusal_of_cuda(const AttentionCase& a) {
  if (!shapes_fit(a, a.shares)) return kShapes;
  if (a.query.size(-1) > kMostWidth || a.value.size(-1) > kMostWidth) {
    return "it has heads of at most 256 columns";
  }
  return mask_fits(a.query, a.key, a.mask) ? nullptr : kMask;
}

const char* refusal_of_flash(const AttentionCase& a) {
  const Tensor &q = a.query, &k = a.key;
  if (!is_reduced_floating(q.dtype())) {
    return "it computes in float16 and bfloat16";
  }
  if (a.mask.defined()) return "it has no attn_mask";
  if (!same_size(q, q.dim() - 1, a.value, a.value.dim() - 1)) return kShapes;
  if (a.is_causal && !same_size(q, q.dim() - 2, k, k.dim() - 2)) {
    return "it is causal for as many queries as keys";
  }
  return refusal_of_cuda(a);
}

const char* refusal_of_efficient(const AttentionCase& a) {
  ScalarType t = a.query.dtype();
  if (t != kFloat && !is_reduced_floating(t)) {
    return "it computes in float32, float16 and bfloat16";
  }
  return refusal_of_cuda(a);
}

const char* name_of(Attention way) {
  switch (way) {
    case Attention::Math:
      return "MATH";
    case Attention::Flash:
      return "FLASH_ATTENTION";
    case Attention::MemoryEfficient:
      return "EFFICIENT_ATTENTION";
    case Attention::Cudnn:
      return "CUDNN_ATTENTION";
    default:
      return "OVERRIDEABLE";
  }
}

}  // namespace

const char* attention_refusal(Attention way, const AttentionCase& a) {
  if (way == Attention::Math) return nullptr;
  bool cuda = a.query.device().is_cuda();
  if (way == Attention::Flash && cuda) return refusal_of_flash(a);
  if (way == Attention::MemoryEfficient && cuda) return refusal_of_efficient(a);
  bool fused = a.query.is_cpu() || a.query.is_meta();
  if (way == Attention::Flash && fused) return refusal_of_cpu(a);
  return "it is not there on this device";
}

Attention choose_attention(const AttentionCase& a) {
  bool any = false;
  std::string reasons;
  for (Attention way : settings::attention_order()) {
    if (!settings::attention_enabled(way)) continue;
    const char* reason = attention_refusal(way, a);
    if (reason == nullptr) return way;
    bool there =
        way == Attention::Flash ||
        (way == Attention::MemoryEfficient && a.query.device().is_cuda());
    any = any || there;
    if (there) reasons += str_cat(" ", name_of(way), ": ", reason, ".");
  }
  TAEDA_CHECK(any,
              "No viable backend for scaled_dot_product_attention was found: "
              "of the ways that the device has, none is enabled");
  throw_error(ErrorKind::Runtime,
              str_cat("scaled_dot_product_attention: No available kernel.  "
                      "Aborting execution. MATH is disabled, and others do "
                      "not apply.",
                      reasons));
}

}  // namespace taeda::native
