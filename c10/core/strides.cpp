#include <taeda/c10/core/strides.h>
#include <taeda/c10/core/tensor_impl.h>
#include <taeda/c10/util/check.h>

#include <algorithm>

namespace taeda::strides {

namespace {

// The step behind a dim of this size.
template <class I>
I step_over(const I& size, const I& step) {
  return product(step, sym_max(size, I(1)));
}

}  // namespace

template <class I>
Dims<I> contiguous(ArrayRef<I> sizes) {
  Dims<I> strides(sizes.size());
  I running = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = running;
    running = step_over(sizes[i], running);
  }
  return strides;
}

template <class I>
Dims<I> of_format(ArrayRef<I> sizes, MemoryFormat format) {
  bool is_2d = format == MemoryFormat::ChannelsLast;
  if (!is_2d && format != MemoryFormat::ChannelsLast3d) {
    return contiguous(sizes);
  }
  size_t rank = is_2d ? 4 : 5;
  TAEDA_CHECK(sizes.size() == rank,
              "required rank ",
              rank,
              " tensor to use ",
              format,
              " format, got rank ",
              sizes.size());
  ArrayRef<int> order =
      is_2d ? ArrayRef<int>(kChannelsLast) : ArrayRef<int>(kChannelsLast3d);
  Dims<I> strides(rank);
  I running = 1;
  for (size_t i = rank; i-- > 0;) {
    strides[order[i]] = running;
    running = step_over(sizes[order[i]], running);
  }
  return strides;
}

template <class I>
bool channels_last_like(ArrayRef<I> sizes, ArrayRef<I> strides) {
  if (sizes.size() != 4 && sizes.size() != 5) return false;
  ArrayRef<int> order = sizes.size() == 4 ? ArrayRef<int>(kChannelsLast)
                                          : ArrayRef<int>(kChannelsLast3d);
  I least = 0;
  if (strides[1] == 0) return false;
  // Innermost first: C, W, H, (D,) N.
  for (size_t i = order.size(); i-- > 0;) {
    int d = order[i];
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d];
    if (sizes[d] > 1) least = product(least, sizes[d]);
  }
  return true;
}

template <class I>
bool dense_in_order(ArrayRef<I> sizes,
                    ArrayRef<I> strides,
                    ArrayRef<int> order) {
  I expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const I& size = sizes[order[i]];
    if (size == 1) continue;
    if (strides[order[i]] != expected) return false;
    expected = product(expected, size);
  }
  return true;
}

template <class I>
bool dense(ArrayRef<I> sizes, ArrayRef<I> strides) {
  SmallVector<int, 8> order;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1) order.push_back(static_cast<int>(i));
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return strides[a] > strides[b];
  });
  return dense_in_order(sizes, strides, order);
}

template <class I>
Dims<I> preserved(ArrayRef<I> sizes, ArrayRef<I> strides) {
  if (dense(sizes, strides)) return Dims<I>(strides);
  SmallVector<size_t, 8> order;
  for (size_t d = sizes.size(); d-- > 0;) order.push_back(d);
  // Innermost first: by stride, of equal ones the shorter dim. The comparison
  // is no order where strides are 0, so dims are inserted one by one.
  auto before = [&](size_t a, size_t b) {
    if (strides[a] == 0 || strides[b] == 0) return 0;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? 1 : -1;
    return sizes[a] < sizes[b] ? 1 : 0;
  };
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      int compared = before(order[at], order[j]);
      if (compared < 0) break;
      if (compared > 0) {
        std::swap(order[at], order[j]);
        at = j;
      }
    }
  }
  Dims<I> result(sizes.size());
  I running = 1;
  for (size_t d : order) {
    result[d] = running;
    running = step_over(sizes[d], running);
  }
  return result;
}

#define TAEDA_STRIDES(I)                                                 \
  template Dims<I> contiguous(ArrayRef<I>);                              \
  template Dims<I> of_format(ArrayRef<I>, MemoryFormat);                 \
  template bool channels_last_like(ArrayRef<I>, ArrayRef<I>);            \
  template bool dense_in_order(ArrayRef<I>, ArrayRef<I>, ArrayRef<int>); \
  template bool dense(ArrayRef<I>, ArrayRef<I>);                         \
  template Dims<I> preserved(ArrayRef<I>, ArrayRef<I>)
TAEDA_STRIDES(int64_t);
TAEDA_STRIDES(SymInt);
#undef TAEDA_STRIDES

}  // namespace taeda::strides

namespace taeda {
DimVector contiguous_strides(IntArrayRef sizes) {
  return strides::contiguous(sizes);
}
DimVector format_strides(IntArrayRef sizes, MemoryFormat format) {
  return strides::of_format(sizes, format);
}
}  // namespace taeda
