// Positions and weights of resized lines, by PyTorch's rules. Which element is
// nearest hangs on the last bit, so that rounds as PyTorch's; all other places
// are computed in double, since far from 0 float ones lose the digits behind
// the point.
#include <taeda/aten/native/upsample_taps.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace taeda::native {

namespace {

constexpr double kPi = 3.14159265358979323846;

// Input elements per output element.
template <class W>
W step_of(const LineResize& how, int64_t in, int64_t out) {
  if (how.factor > 0) return static_cast<W>(1.0 / how.factor);
  return static_cast<W>(in) / static_cast<W>(out);
}

double aligned_step(const LineResize& how, int64_t in, int64_t out) {
  if (!how.align_corners) return step_of<double>(how, in, out);
  return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1)
                 : 0.0;
}

// The element that a position is in; a tiny factor leads far beyond the line.
int64_t element_at(double position, int64_t in) {
  if (position >= static_cast<double>(in)) return in - 1;
  return position > 0 ? static_cast<int64_t>(position) : 0;
}

void nearest_taps(const LineResize& how, Taps<double>& t) {
  // In float whatever the dtype is.
  float step = step_of<float>(how, t.in, t.out);
  bool exact = how.filter == Filter::NearestExact;
  for (int64_t i = 0; i < t.out; ++i) {
    int64_t at = i;
    if (exact) {
      at = element_at((static_cast<float>(i) + 0.5f) * step, t.in);
    } else if (t.out == 2 * t.in) {
      at = i >> 1;
    } else if (t.out != t.in) {
      at = element_at(static_cast<float>(i) * step, t.in);
    }
    t.at.push_back(std::min(at, t.in - 1));
    t.weight.push_back(1.0);
    t.count.push_back(1);
  }
}

// Where output i lies on the input's line.
double source_of(const LineResize& how, double step, int64_t i, bool cubic) {
  if (how.align_corners) return step * static_cast<double>(i);
  double at = step * (static_cast<double>(i) + 0.5) - 0.5;
  return !cubic && at < 0 ? 0.0 : at;
}

void linear_taps(const LineResize& how, Taps<double>& t) {
  double step = aligned_step(how, t.in, t.out);
  for (int64_t i = 0; i < t.out; ++i) {
    int64_t low = i;
    double part = 0;
    if (t.in != t.out) {
      double source = source_of(how, step, i, false);
      low = element_at(source, t.in);
      part = std::clamp(source - static_cast<double>(low), 0.0, 1.0);
    }
    t.at.push_back(low);
    t.at.push_back(low + (low < t.in - 1));
    t.weight.push_back(1.0 - part);
    t.weight.push_back(part);
    t.count.push_back(2);
  }
}

// Keys, "Cubic convolution interpolation", 1981: within one element, and
// between one and two.
double cubic_near(double x, double a) {
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
double cubic_far(double x, double a) {
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

void cubic_taps(const LineResize& how, Taps<double>& t) {
  constexpr double kA = -0.75;
  double step = aligned_step(how, t.in, t.out);
  for (int64_t i = 0; i < t.out; ++i) {
    double source = source_of(how, step, i, true);
    int64_t low = source < 0 ? -1 : element_at(source, t.in);
    double x = std::clamp(source - static_cast<double>(low), 0.0, 1.0);
    for (int64_t k = -1; k <= 2; ++k) {
      t.at.push_back(std::clamp<int64_t>(low + k, 0, t.in - 1));
    }
    for (double w : {cubic_far(x + 1, kA),
                     cubic_near(x, kA),
                     cubic_near(1 - x, kA),
                     cubic_far(2 - x, kA)}) {
      t.weight.push_back(w);
    }
    t.count.push_back(4);
  }
}

double filter_at(Filter filter, double x) {
  x = std::abs(x);
  if (filter == Filter::LinearAntialias) return x < 1 ? 1 - x : 0.0;
  if (filter == Filter::CubicAntialias) {
    constexpr double kA = -0.5;
    return x < 1 ? cubic_near(x, kA) : x < 2 ? cubic_far(x, kA) : 0.0;
  }
  if (x >= 3) return 0.0;
  if (x == 0) return 1.0;
  double angle = static_cast<double>(kPi) * x;
  return std::sin(angle) / angle * (std::sin(angle / 3) / (angle / 3));
}

void antialias_taps(const LineResize& how, Taps<double>& t) {
  double step = aligned_step(how, t.in, t.out);
  double reach = how.filter == Filter::LinearAntialias  ? 1.0
                 : how.filter == Filter::CubicAntialias ? 2.0
                                                        : 3.0;
  double support = step >= 1 ? reach * step : reach;
  double shrink = step >= 1 ? 1 / step : 1.0;
  double width = std::ceil(support) * 2 + 1;
  t.width =
      width < static_cast<double>(t.in) ? static_cast<int64_t>(width) : t.in;
  for (int64_t i = 0; i < t.out; ++i) {
    double center = step * (static_cast<double>(i) + 0.5);
    int64_t from =
        std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    int64_t end = std::min(static_cast<int64_t>(center + support + 0.5), t.in);
    int64_t count = std::clamp<int64_t>(end - from, 0, t.width);
    size_t first = t.weight.size();
    double total = 0;
    for (int64_t k = 0; k < t.width; ++k) {
      double w =
          k < count ? filter_at(how.filter,
                                (static_cast<double>(k + from) - center + 0.5) *
                                    shrink)
                    : 0.0;
      t.at.push_back(from + k);
      t.weight.push_back(w);
      total += w;
    }
    for (size_t k = first; total != 0 && k < t.weight.size(); ++k) {
      t.weight[k] /= total;
    }
    t.count.push_back(count);
  }
}

}  // namespace

namespace {
Taps<double> exact_taps(const LineResize& how, int64_t in, int64_t out) {
  Taps<double> t;
  t.in = in, t.out = out;
  switch (how.filter) {
    case Filter::Nearest:
    case Filter::NearestExact:
      t.width = 1;
      nearest_taps(how, t);
      break;
    case Filter::Linear:
      t.width = 2;
      linear_taps(how, t);
      break;
    case Filter::Cubic:
      t.width = 4;
      cubic_taps(how, t);
      break;
    default:
      antialias_taps(how, t);
  }
  return t;
}
}  // namespace

template <class W>
Taps<W> make_taps(const LineResize& how, int64_t in, int64_t out) {
  Taps<double> exact = exact_taps(how, in, out);
  Taps<W> t;
  t.in = in, t.out = out, t.width = exact.width;
  t.count = std::move(exact.count), t.at = std::move(exact.at);
  t.weight.assign(exact.weight.begin(), exact.weight.end());
  return t;
}
template Taps<float> make_taps(const LineResize&, int64_t, int64_t);
template Taps<double> make_taps(const LineResize&, int64_t, int64_t);

namespace {

// Taps cut off at an edge repeat it: their weights are added up.
Taps<double> merged(const Taps<double>& taps) {
  Taps<double> t = taps;
  for (int64_t i = 0; i < t.out; ++i) {
    int64_t* at = t.at.data() + i * t.width;
    double* w = t.weight.data() + i * t.width;
    int64_t& count = t.count[static_cast<size_t>(i)];
    int64_t kept = 0;
    for (int64_t k = 1; k < count; ++k) {
      if (at[k] == at[kept]) {
        w[kept] += w[k];
      } else {
        ++kept;
        at[kept] = at[k], w[kept] = w[k];
      }
    }
    if (count > 0) count = kept + 1;
    std::fill(w + count, w + t.width, 0.0);
  }
  return t;
}

}  // namespace

Taps<int32_t> integer_taps(const Taps<double>& exact) {
  Taps<double> taps = merged(exact);
  Taps<int32_t> t;
  t.in = taps.in, t.out = taps.out, t.width = taps.width;
  t.count = taps.count, t.at = taps.at;
  double most = 0;
  for (double w : taps.weight) most = std::max(most, w);
  while (t.shift < 22 && 0.5 + most * (1 << (t.shift + 1)) < (1 << 15)) {
    ++t.shift;
  }
  for (double w : taps.weight) {
    double scaled = w * (1 << t.shift);
    t.weight.push_back(
        static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
  }
  return t;
}

}  // namespace taeda::native
