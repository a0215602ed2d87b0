// Which way scaled_dot_product_attention is computed.
#pragma once

#include <taeda/aten/iter/spec.h>
#include <taeda/aten/settings.h>

namespace taeda::native {

struct AttentionCase {
  const Tensor &query, &key, &value;
  const Tensor& mask;  // or undefined
  double dropout_p;
  bool is_causal;
  bool shares;  // heads of key and value may be fewer
};

// Note [Ways of attention]
// MATH is products and softmax, everywhere. The CPU has one fused kernel, named
// FLASH_ATTENTION. A GPU has one too, whose cases are those of PyTorch's two:
// FLASH_ATTENTION is 16 bits without a mask, EFFICIENT_ATTENTION float32 and
// masks besides; that one takes shared heads too. CUDNN_ATTENTION is not there.

// Why the way does not have the case; null where it does.
TAEDA_API const char* attention_refusal(settings::Attention way,
                                        const AttentionCase& a);
// The first enabled way, in the order of preference, that has the case.
settings::Attention choose_attention(const AttentionCase& a);

}  // namespace taeda::native
