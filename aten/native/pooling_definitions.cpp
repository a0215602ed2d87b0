// Poolings over windows by other operators: an element of every window at a
// time, which a loop computes all at once.
#include <taeda/aten/native/pooling.h>
#include <taeda/gen/native/avg_pool2d.h>
#include <taeda/gen/native/max_pool2d_with_indices.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/bitwise_or.h>
#include <taeda/gen/ops/constant_pad_nd.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/ge.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/isnan.h>
#include <taeda/gen/ops/lt.h>
#include <taeda/gen/ops/maximum.h>
#include <taeda/gen/ops/ones.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/where.h>

#include <algorithm>
#include <limits>

namespace taeda::native {

namespace {

// The element (y, x) of each window of a plane that has its padding.
Tensor of_windows(const Tensor& padded, const Pool& p, int64_t y, int64_t x) {
  auto steps = [](const Tensor& t,
                  int64_t dim,
                  int64_t from,
                  int64_t out,
                  int64_t step) {
    return ops::slice(t, dim, from, from + (out - 1) * step + 1, step);
  };
  Tensor rows = steps(padded, -2, y * p.dilation[1], p.out[1], p.stride[1]);
  return steps(rows, -1, x * p.dilation[2], p.out[2], p.stride[2]);
}

// Elements behind the input that the last window along a dim reaches.
int64_t room_behind(const Pool& p, size_t d) {
  int64_t reach = (p.kernel[d] - 1) * p.dilation[d] + 1;
  int64_t end = (p.out[d] - 1) * p.stride[d] + reach;
  return std::max<int64_t>(0, end - p.padding[d] - p.in[d]);
}

Tensor padded(const Tensor& t, const DimVector& by, const Scalar& value) {
  bool none =
      std::all_of(by.begin(), by.end(), [](int64_t n) { return n == 0; });
  return none ? t : ops::constant_pad_nd(t, by, value);
}

Tensor pad_windows(const Tensor& self, const Pool& p, const Scalar& value) {
  return padded(
      self,
      {p.padding[2], room_behind(p, 2), p.padding[1], room_behind(p, 1)},
      value);
}

Tensor sum_of_windows(const Tensor& padded, const Pool& p) {
  Tensor sum;
  for (int64_t y = 0; y < p.kernel[1]; ++y) {
    for (int64_t x = 0; x < p.kernel[2]; ++x) {
      Tensor each = of_windows(padded, p, y, x);
      sum = sum.defined() ? ops::add(sum, each) : each;
    }
  }
  return sum;
}

// How many elements each window has: those of the input, and of the padding
// where it counts. What lies behind the padding never does.
Tensor counts_of_windows(const Tensor& self, const Pool& p, bool with_padding) {
  std::array<int64_t, 3> own{0, 0, 0}, behind{};
  for (size_t d : {1, 2}) {
    int64_t room = room_behind(p, d);
    own[d] = with_padding ? std::min(room, p.padding[d]) : 0;
    behind[d] = room - own[d];
  }
  int64_t top = p.padding[1], left = p.padding[2];
  DimVector sizes{p.in[1] + own[1], p.in[2] + own[2]};
  DimVector by{left, behind[2], top, behind[1]};
  if (with_padding) {
    sizes[0] += top;
    sizes[1] += left;
    by[0] = by[2] = 0;
  }
  Tensor ones = ops::ones(sizes, self.dtype(), std::nullopt, self.device());
  return sum_of_windows(padded(ones, by, 0), p);
}

bool windows_are_whole(const Pool& p, bool with_padding) {
  for (size_t d : {1, 2}) {
    if (room_behind(p, d) > (with_padding ? p.padding[d] : 0)) return false;
    if (!with_padding && p.padding[d] > 0) return false;
  }
  return true;
}

bool has_padding(const Pool& p) {
  return p.padding[1] + p.padding[2] + room_behind(p, 1) + room_behind(p, 2) >
         0;
}

// The position in the input's plane of the element (y, x) of each window; -1 in
// the padding.
Tensor positions(const Tensor& self, const Pool& p, int64_t y, int64_t x) {
  auto along = [&](size_t d, int64_t at) {
    int64_t from = at * p.dilation[d] - p.padding[d];
    int64_t step = p.stride[d];
    return ops::arange(
        from, from + p.out[d] * step, step, kLong, std::nullopt, self.device());
  };
  Tensor columns = along(2, x), rows = ops::unsqueeze(along(1, y), 1);
  Tensor place = ops::add(columns, rows, p.in[2]);
  if (!has_padding(p)) return place;
  auto outside = [](const Tensor& at, int64_t size) {
    return ops::bitwise_or(ops::lt(at, 0), ops::ge(at, size));
  };
  Tensor none =
      ops::bitwise_or(outside(columns, p.in[2]), outside(rows, p.in[1]));
  return ops::where(none, Scalar(-1), place);
}

Scalar lowest(ScalarType dtype) {
  if (is_floating(dtype)) {
    return Scalar(-std::numeric_limits<double>::infinity());
  }
  switch (dtype) {
    case kByte:
      return Scalar(int64_t{0});
    case kChar:
      return Scalar(int64_t{std::numeric_limits<int8_t>::min()});
    case kShort:
      return Scalar(int64_t{std::numeric_limits<int16_t>::min()});
    case kInt:
      return Scalar(int64_t{std::numeric_limits<int32_t>::min()});
    default:
      return Scalar(std::numeric_limits<int64_t>::min());
  }
}

}  // namespace

Tensor avg_pool2d_means(const Tensor& self,
                        IntArrayRef kernel,
                        IntArrayRef step,
                        IntArrayRef padding,
                        bool round_up,
                        bool padding_counts,
                        std::optional<int64_t> divisor) {
  constexpr int64_t kOne[] = {1};
  Pool p = make_pool<int64_t>(
      "avg_pool2d", self, 2, kernel, step, padding, kOne, round_up);
  Tensor sum = sum_of_windows(pad_windows(self, p, 0), p);
  bool plain = is_floating(self.dtype());
  if (!divisor && !windows_are_whole(p, padding_counts)) {
    Tensor counts = counts_of_windows(self, p, padding_counts);
    return plain ? ops::div(sum, counts) : ops::div(sum, counts, "trunc");
  }
  Scalar all = divisor.value_or(p.kernel[1] * p.kernel[2]);
  return plain ? ops::div(sum, all) : ops::div(sum, all, "trunc");
}

// Of equal elements the first one counts, of several NaN the last.
std::tuple<Tensor, Tensor> max_pool2d_means(const Tensor& self,
                                            IntArrayRef kernel,
                                            IntArrayRef step,
                                            IntArrayRef padding,
                                            IntArrayRef dilation,
                                            bool round_up) {
  Pool p = make_pool<int64_t>(
      "max_pool2d", self, 2, kernel, step, padding, dilation, round_up);
  Tensor planes = pad_windows(self, p, lowest(self.dtype()));
  Tensor best, at;
  for (int64_t y = 0; y < p.kernel[1]; ++y) {
    for (int64_t x = 0; x < p.kernel[2]; ++x) {
      Tensor each = of_windows(planes, p, y, x);
      Tensor place = ops::expand(positions(self, p, y, x), each.sizes());
      if (!best.defined()) {
        best = each;
        at = place;
        continue;
      }
      Tensor higher = ops::gt(each, best);
      if (is_floating(self.dtype())) {
        higher = ops::bitwise_or(higher, ops::isnan(each));
      }
      best = ops::maximum(best, each);
      // What equals the padding is as good, but has a place. Maxima do not
      // count on places, so that loops need none where nobody reads them.
      if (has_padding(p)) higher = ops::bitwise_or(higher, ops::lt(at, 0));
      at = ops::where(higher, place, at);
    }
  }
  return {best, at};
}

}  // namespace taeda::native
