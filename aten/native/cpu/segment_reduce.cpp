// segment_reduce and its gradient.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/segment_reduce.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_segment_reduce_backward.h>
#include <taeda/gen/native/segment_reduce.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace taeda::native {

Segments segments_of(const OptionalTensor& lengths,
                     const OptionalTensor& offsets,
                     int64_t size,
                     bool must_cover) {
  TAEDA_CHECK(lengths || offsets,
              "segment_reduce(): Either lengths or offsets must be defined.");
  Tensor given = contiguous_as(offsets ? *offsets : *lengths, kLong);
  const int64_t* from = given.const_data<int64_t>();
  int64_t row = given.size(-1);
  Segments s;
  s.per_row = offsets ? row - 1 : row;
  for (int64_t r = 0; row > 0 && r < given.numel() / row; ++r, from += row) {
    TAEDA_CHECK(
        offsets ||
            std::all_of(from, from + row, [](int64_t n) { return n >= 0; }),
        "lengths contains negative value!");
    int64_t end = 0;
    for (int64_t i = 0; i < s.per_row; ++i) {
      int64_t begin = offsets ? from[i] : end;
      end = offsets ? from[i + 1] : end + from[i];
      TAEDA_CHECK(begin >= 0 && (begin >= end || end <= size),
                  "segment_reduce(): a segment from ",
                  begin,
                  " to ",
                  end,
                  " is not within data, whose size is ",
                  size);
      s.begin.push_back(begin), s.end.push_back(std::max(begin, end));
    }
    TAEDA_CHECK(!must_cover || end == size,
                "segment_reduce(): Expected all rows of lengths along axis to "
                "sum to data.size(lengths.dim()-1) when !unsafe.");
  }
  return s;
}

namespace {

constexpr int64_t kSegmentGrain = 4096;

template <class F>
void visit_segment_type(ScalarType t, F&& f) {
  if (t == kFloat) return f(float{});
  return f(double{});
}

double start_of(Reduce how, const std::optional<Scalar>& initial) {
  if (initial) return initial->to_double();
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (how == Reduce::Max) return -inf;
  if (how == Reduce::Min) return inf;
  return how == Reduce::Prod ? 1 : 0;
}

template <class T>
T combined(Reduce how, T a, T b) {
  switch (how) {
    case Reduce::Max:
      return std::isnan(a) || a > b ? a : b;
    case Reduce::Min:
      return std::isnan(a) || a < b ? a : b;
    case Reduce::Prod:
      return a * b;
    default:
      return a + b;
  }
}

// f(row, its first and last place, position in a row) for each segment and
// each of the numbers that lie side by side behind the axis.
template <class F>
void each_segment(const Segments& s, const AlongDim& f, F&& visit) {
  int64_t all = static_cast<int64_t>(s.begin.size());
  int64_t grain =
      std::max<int64_t>(1, kSegmentGrain / std::max<int64_t>(1, f.inner));
  parallel_for(0, all, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      size_t k = static_cast<size_t>(i);
      int64_t row = i / s.per_row * f.n * f.inner;
      for (int64_t j = 0; j < f.inner; ++j) {
        visit(i * f.inner + j,
              row + s.begin[k] * f.inner + j,
              row + s.end[k] * f.inner + j);
      }
    }
  });
}

// The product of the elements but the one at `left_out`.
template <class T>
T product_without(
    const T* x, int64_t first, int64_t last, int64_t step, int64_t left_out) {
  T product = T(1);
  for (int64_t k = first; k < last; k += step) {
    if (k != left_out) product *= x[k];
  }
  return product;
}

// The gradient of one segment, whose elements are x[first], x[first + step]...
template <class T>
void segment_slopes(Reduce how,
                    T grad,
                    T output,
                    T initial,
                    const T* x,
                    T* y,
                    int64_t first,
                    int64_t last,
                    int64_t step) {
  auto chosen = [&](int64_t k) { return std::isnan(x[k]) || x[k] == output; };
  T share = grad;
  if (how == Reduce::Mean) share /= static_cast<T>((last - first) / step);
  if (how == Reduce::Max || how == Reduce::Min) {
    int64_t count = 0;
    for (int64_t k = first; k < last; k += step) count += chosen(k);
    share /= static_cast<T>(count);
  }
  for (int64_t k = first; k < last; k += step) {
    switch (how) {
      case Reduce::Prod:
        y[k] = x[k] == 0 || !std::isfinite(x[k])
                   ? grad * initial * product_without(x, first, last, step, k)
                   : grad * output / x[k];
        break;
      case Reduce::Max:
      case Reduce::Min:
        y[k] = chosen(k) ? share : T(0);
        break;
      default:
        y[k] = share;
    }
  }
}

}  // namespace

void segment_reduce_cpu(const Tensor& data,
                        std::string_view reduce,
                        const OptionalTensor& lengths,
                        const OptionalTensor&,
                        const OptionalTensor& offsets,
                        int64_t axis,
                        bool unsafe,
                        const std::optional<Scalar>& initial,
                        const Tensor& out) {
  int64_t dim = wrap_dim(axis, data.dim());
  Segments s =
      segments_of(lengths, offsets, data.sizes()[dim], !offsets && !unsafe);
  if (out.numel() == 0) return;
  Reduce how = segment_reduce_of(reduce);
  ScalarType type = wide_type(data.dtype());
  AlongDim f = along_dim(data, dim, type);
  bool direct = out.dtype() == type && out.is_contiguous();
  Tensor work = direct ? out : make_tensor("segment_reduce", out.sizes(), type);
  visit_segment_type(type, [&](auto tag) {
    using T = decltype(tag);
    const T* x = f.in<T>();
    T* y = work.mutable_data<T>();
    T start = static_cast<T>(start_of(how, initial));
    each_segment(s, f, [&](int64_t to, int64_t first, int64_t last) {
      T value = start;
      for (int64_t k = first; k < last; k += f.inner) {
        value = combined(how, value, x[k]);
      }
      bool divided = how == Reduce::Mean && (first < last || !initial);
      y[to] =
          divided ? value / static_cast<T>((last - first) / f.inner) : value;
    });
  });
  if (!direct) copy_into(out, work);
}

void segment_reduce_backward_cpu(const Tensor& grad,
                                 const Tensor& output,
                                 const Tensor& data,
                                 std::string_view reduce,
                                 const OptionalTensor& lengths,
                                 const OptionalTensor& offsets,
                                 int64_t axis,
                                 const std::optional<Scalar>& initial,
                                 const Tensor& out) {
  int64_t dim = wrap_dim(axis, data.dim());
  Segments s =
      segments_of(lengths, offsets, data.sizes()[dim], /*must_cover=*/false);
  Reduce how = segment_reduce_of(reduce);
  ScalarType type = wide_type(data.dtype());
  // What no segment has stays 0.
  Tensor work = make_tensor("segment_reduce", data.sizes(), type);
  fill_with(work, int64_t{0});
  if (data.numel() > 0) {
    AlongDim f = along_dim(data, dim, type);
    Tensor grads = contiguous_as(grad, type);
    Tensor results = contiguous_as(output, type);
    visit_segment_type(type, [&](auto tag) {
      using T = decltype(tag);
      T start = static_cast<T>(start_of(how, initial));
      each_segment(s, f, [&](int64_t to, int64_t first, int64_t last) {
        segment_slopes(how,
                       grads.const_data<T>()[to],
                       results.const_data<T>()[to],
                       start,
                       f.in<T>(),
                       work.mutable_data<T>(),
                       first,
                       last,
                       f.inner);
      });
    });
  }
  copy_into(out, work);
}

}  // namespace taeda::native
