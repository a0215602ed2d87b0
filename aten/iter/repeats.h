// Writing in place to tensors of which several elements lie at one address.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda {

// A dim of more than one element, all of which lie at one address (that of an
// expanded tensor); -1 if there is none.
TAEDA_API int64_t repeated_dim(const TensorBase& t);

// What an in-place form does to a tensor with such a dim.
enum class Repeats : uint8_t { Refused, Warned, Taken };

// Whether `t` has such a dim and is written all the same, with PyTorch's
// warning if it is `Warned`. RuntimeError where it is `Refused`.
TAEDA_API bool takes_repeats(std::string_view op,
                             const TensorBase& t,
                             Repeats repeats);

}  // namespace taeda
