// Rules about sizes and strides, the same for integers and for symbols.
#pragma once

#include <taeda/c10/core/layout.h>
#include <taeda/c10/symbolic/sym_int.h>
#include <taeda/c10/util/small_vector.h>

namespace taeda {

template <class I>
using Dims = SmallVector<I, 5>;

// Each is made for int64_t and for SymInt, in strides.cpp.
namespace strides {
// a * b. Sizes of a tensor without elements may have a product beyond int64: it
// wraps, as its strides do; of other tensors the number of elements is refused.
inline SymInt product(const SymInt& a, const SymInt& b) { return a * b; }
inline int64_t product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
}
// Row-major strides of `sizes`.
template <class I>
TAEDA_API Dims<I> contiguous(ArrayRef<I> sizes);
// Strides of the given memory format; the rank must fit the format.
template <class I>
TAEDA_API Dims<I> of_format(ArrayRef<I> sizes, MemoryFormat format);
// Whether the strides read as channels-last. A tensor whose strides also read
// as row-major (C = 1, say) counts only when its strides say so themselves:
// PyTorch's rule, by which suggest_memory_format answers.
template <class I>
TAEDA_API bool channels_last_like(ArrayRef<I> sizes, ArrayRef<I> strides);
// Whether walking the dims in `order` (outermost first) finds the strides of a
// dense block; dims of size 1 may have any stride.
template <class I>
TAEDA_API bool dense_in_order(ArrayRef<I> sizes,
                              ArrayRef<I> strides,
                              ArrayRef<int> order);
// Dense in some order of the dims.
template <class I>
TAEDA_API bool dense(ArrayRef<I> sizes, ArrayRef<I> strides);
// Strides of a dense tensor of `sizes` whose dims follow each other in memory
// as those of `strides` do: what MemoryFormat::Preserve asks for.
template <class I>
TAEDA_API Dims<I> preserved(ArrayRef<I> sizes, ArrayRef<I> strides);
}  // namespace strides

// Dims outermost first.
inline constexpr int kChannelsLast[] = {0, 2, 3, 1};
inline constexpr int kChannelsLast3d[] = {0, 2, 3, 4, 1};

}  // namespace taeda
