// Pooling geometry and its checks.
#include <taeda/aten/native/pooling.h>

#include <algorithm>
#include <limits>

namespace taeda::native {

int64_t pool_grain(const Pool& p) {
  int64_t work = p.out_size() * p.kernel[0] * p.kernel[1] * p.kernel[2];
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1));
}

namespace {

int64_t entry(std::string_view op,
              const char* name,
              IntArrayRef values,
              int64_t dims,
              int64_t d) {
  TAEDA_CHECK(values.size() == 1 || static_cast<int64_t>(values.size()) == dims,
              op,
              ": ",
              name,
              " must either be a single int, or a tuple of ",
              dims,
              " ints, got ",
              values);
  return values.size() == 1 ? values[0] : values[static_cast<size_t>(d)];
}

// PyTorch's rule: with ceil_mode the last window starts inside of the input or
// its left padding.
template <class I>
I output_size(const I& in,
              int64_t kernel,
              int64_t pad,
              int64_t stride,
              int64_t dilation,
              bool ceil_mode) {
  I room = in + (2 * pad - dilation * (kernel - 1) - 1);
  I top = room + (ceil_mode ? stride - 1 : 0);
  I steps = top >= 0 ? top / stride : -((-top + (stride - 1)) / stride);
  I out = steps + 1;
  if (ceil_mode && (out - 1) * stride >= in + pad) out -= 1;
  return out;
}

template <class I>
void check_input(std::string_view op, const Spec<I>& input, int64_t dims) {
  int64_t rank = input.dim();
  bool ranked = rank == dims + 1 || rank == dims + 2;
  // Only the batch may be empty.
  bool full = ranked;
  for (int64_t d = rank - dims - 1; full && d < rank; ++d) {
    full = input.sizes()[d] != 0;
  }
  if (full) return;
  TAEDA_CHECK(dims != 3 || !ranked,
              op,
              "(): Expected input's non-batch dimensions to have positive "
              "length, but input has a shape of ",
              input.sizes());
  TAEDA_CHECK(dims != 3,
              op,
              ": non-empty 4D or 5D (batch mode) tensor expected for input, "
              "but got ",
              input.sizes());
  TAEDA_CHECK(false,
              op,
              ": Expected ",
              dims + 1,
              "D or ",
              dims + 2,
              "D (batch mode) tensor with optional 0 dim batch size for input, "
              "but got:",
              input.sizes());
}

template <class I>
void check_window(std::string_view op, const PoolOver<I>& p, size_t at) {
  // Beyond, a window's reach would wrap around.
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (int64_t n :
       {p.kernel[at], p.stride[at], p.padding[at], p.dilation[at]}) {
    TAEDA_CHECK(n <= kMost && n >= -kMost,
                op,
                ": value cannot be converted to type int without overflow: ",
                n);
  }
  TAEDA_CHECK(p.kernel[at] > 0,
              op,
              ": kernel size should be greater than zero, but got ",
              p.kernel[at]);
  TAEDA_CHECK(p.stride[at] != 0, op, ": stride should not be zero");
  TAEDA_CHECK(p.stride[at] > 0,
              op,
              ": stride should be greater than zero, but got ",
              p.stride[at]);
  TAEDA_CHECK(p.dilation[at] > 0,
              op,
              ": dilation should be greater than zero, but got ",
              p.dilation[at]);
  TAEDA_CHECK(p.padding[at] >= 0,
              op,
              ": pad must be non-negative, but got pad: ",
              p.padding[at]);
  int64_t reach = (p.kernel[at] - 1) * p.dilation[at] + 1;
  TAEDA_CHECK(p.padding[at] <= reach / 2,
              op,
              ": pad should be at most half of effective kernel size, but got "
              "pad=",
              p.padding[at],
              ", kernel_size=",
              p.kernel[at],
              " and dilation=",
              p.dilation[at]);
}

// x86-64 addresses 2^47 bytes: fails before the windows of each output are
// listed.
constexpr int64_t kMostElements = int64_t{1} << 47;

template <class I>
void check_fits(std::string_view op, ArrayRef<I> sizes) {
  if constexpr (std::is_same_v<I, int64_t>) {
    TAEDA_CHECK(checked_numel(op, sizes) < kMostElements,
                op,
                ": an output of size ",
                sizes,
                " does not fit into memory");
  }
}

template <class I>
void set_planes(PoolOver<I>& p, const Spec<I>& input, int64_t dims) {
  for (int64_t d = 0; d < input.dim() - dims; ++d) {
    p.planes *= input.sizes()[d];
  }
  for (int64_t d = 0; d < dims; ++d) {
    p.in[static_cast<size_t>(3 - dims + d)] =
        input.sizes()[input.dim() - dims + d];
  }
}

}  // namespace

template <class I>
PoolOver<I> make_pool(std::string_view op,
                      const Spec<I>& input,
                      int64_t dims,
                      IntArrayRef kernel,
                      IntArrayRef stride,
                      IntArrayRef padding,
                      IntArrayRef dilation,
                      bool ceil_mode) {
  PoolOver<I> p;
  for (int64_t d = 0; d < dims; ++d) {
    size_t at = static_cast<size_t>(3 - dims + d);
    p.kernel[at] = entry(op, "kernel_size", kernel, dims, d);
    p.stride[at] =
        stride.empty() ? p.kernel[at] : entry(op, "stride", stride, dims, d);
    p.padding[at] = entry(op, "padding", padding, dims, d);
    p.dilation[at] = entry(op, "dilation", dilation, dims, d);
    if (stride.empty() && p.stride[at] == 0) {
      TAEDA_CHECK(false, op, ": stride should not be zero");
    }
    check_window(op, p, at);
  }
  check_input(op, input, dims);
  set_planes(p, input, dims);
  for (size_t at = static_cast<size_t>(3 - dims); at < 3; ++at) {
    p.out[at] = output_size(p.in[at],
                            p.kernel[at],
                            p.padding[at],
                            p.stride[at],
                            p.dilation[at],
                            ceil_mode);
    TAEDA_CHECK(p.out[at] >= 1,
                op,
                ": Given input size: ",
                input.sizes(),
                ". Calculated output size: ",
                p.out[at],
                ". Output size is too small");
  }
  return p;
}

template <class I>
void check_not_empty(std::string_view op,
                     const char* what,
                     ArrayRef<I> sizes,
                     int64_t from) {
  for (size_t d = static_cast<size_t>(from); d < sizes.size(); ++d) {
    TAEDA_CHECK(sizes[d] != 0,
                op,
                "(): Expected ",
                what,
                " to have non-zero size for non-batch dimensions, but ",
                what,
                " has sizes ",
                sizes,
                " with dimension ",
                d,
                " being empty");
  }
}

template <class I>
PoolOver<I> make_adaptive_pool(std::string_view op,
                               const Spec<I>& input,
                               int64_t dims,
                               ArrayRef<I> output_size) {
  TAEDA_CHECK(static_cast<int64_t>(output_size.size()) == dims,
              op,
              ": output_size must be ",
              dims,
              " numbers, got ",
              output_size);
  int64_t rank = input.dim();
  TAEDA_CHECK(rank == dims + 1 || rank == dims + 2,
              op,
              "(): Expected ",
              dims + 1,
              "D or ",
              dims + 2,
              "D tensor, but got ",
              input.sizes());
  for (const I& v : output_size) {
    TAEDA_CHECK(v >= 0,
                op,
                ": elements of output_size must be greater than or equal to 0 "
                "but received ",
                output_size,
                ": Trying to create tensor with negative dimension ",
                v);
  }
  check_not_empty(op, "input", input.sizes(), rank - dims);
  Dims<I> sizes(input.sizes());
  for (int64_t d = 0; d < dims; ++d) {
    sizes[static_cast<size_t>(rank - dims + d)] =
        output_size[static_cast<size_t>(d)];
  }
  check_fits<I>(op, sizes);
  PoolOver<I> p;
  set_planes(p, input, dims);
  for (int64_t d = 0; d < dims; ++d) {
    p.out[static_cast<size_t>(3 - dims + d)] =
        output_size[static_cast<size_t>(d)];
  }
  return p;
}

void check_one_size(std::string_view op, IntArrayRef output_size) {
  TAEDA_CHECK(output_size.size() == 1,
              op,
              "() argument 'output_size' should contain one int (got ",
              output_size.size(),
              ")");
}

template <class I>
Dims<I> pooled_sizes(const Spec<I>& input, const PoolOver<I>& p, int64_t dims) {
  Dims<I> sizes(input.sizes());
  for (int64_t d = 0; d < dims; ++d) {
    sizes[static_cast<size_t>(input.dim() - dims + d)] =
        p.out[static_cast<size_t>(3 - dims + d)];
  }
  return sizes;
}

#define TAEDA_POOL(I)                                                         \
  template PoolOver<I> make_pool(std::string_view,                            \
                                 const Spec<I>&,                              \
                                 int64_t,                                     \
                                 IntArrayRef,                                 \
                                 IntArrayRef,                                 \
                                 IntArrayRef,                                 \
                                 IntArrayRef,                                 \
                                 bool);                                       \
  template PoolOver<I> make_adaptive_pool(                                    \
      std::string_view, const Spec<I>&, int64_t, ArrayRef<I>);                \
  template Dims<I> pooled_sizes(const Spec<I>&, const PoolOver<I>&, int64_t); \
  template void check_not_empty(                                              \
      std::string_view, const char*, ArrayRef<I>, int64_t);
TAEDA_POOL(int64_t)
TAEDA_POOL(SymInt)
#undef TAEDA_POOL

}  // namespace taeda::native
