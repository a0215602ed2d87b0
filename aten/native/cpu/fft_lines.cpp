#include <taeda/aten/native/cpu/fft_lines.h>
#include <taeda/aten/native/cpu/isa_table.h>

#include <cmath>
#include <numbers>
#include <utility>

namespace taeda::native {

namespace {

template <class C>
FftStageFunction<C> stage_function() {
  const FftTable& table = TAEDA_ISA_TABLE(kFftTable);
  if constexpr (sizeof(C) == 4) {
    return table.f32;
  } else {
    return table.f64;
  }
}

// The radices of n, the first stage's first; what is left of n is in `rest`.
std::vector<int64_t> radices_of(int64_t n, int64_t& rest) {
  std::vector<int64_t> found;
  auto take = [&](int64_t r) {
    for (; n % r == 0; n /= r) found.push_back(r);
  };
  take(4);
  take(2);
  for (int64_t r = 3; r <= kMostRadix && n > 1; r += 2) take(r);
  rest = n;
  return found;
}

}  // namespace

bool has_small_factors(int64_t n) {
  int64_t rest = 1;
  radices_of(n, rest);
  return rest == 1;
}

RootsOfUnity::RootsOfUnity(int64_t n)
    : re(static_cast<size_t>(n)), im(static_cast<size_t>(n)) {
  auto set = [&](int64_t k, double c, double s) {
    re[static_cast<size_t>(k)] = c;
    im[static_cast<size_t>(k)] = s;
  };
  auto cosine = [&](int64_t k) { return re[static_cast<size_t>(k)]; };
  auto sine = [&](int64_t k) { return im[static_cast<size_t>(k)]; };
  int64_t own = n % 4 == 0 ? n / 8 : n % 2 == 0 ? n / 4 : n / 2;
  double step = 2 * std::numbers::pi / static_cast<double>(n);
  for (int64_t k = 0; k <= own && k < n; ++k) {
    double angle = step * static_cast<double>(k);
    set(k, std::cos(angle), -std::sin(angle));
  }
  if (n % 4 == 0) {
    for (int64_t k = n / 8 + 1; k <= n / 4; ++k)
      set(k, -sine(n / 4 - k), -cosine(n / 4 - k));
  }
  if (n % 2 == 0) {
    for (int64_t k = n / 4 + 1; k <= n / 2; ++k)
      set(k, -cosine(n / 2 - k), sine(n / 2 - k));
  }
  for (int64_t k = n / 2 + 1; k < n; ++k) set(k, cosine(n - k), -sine(n - k));
}

template <class C>
struct LineTransform<C>::Chirp {
  explicit Chirp(int64_t n);

  LineTransform<C> whole;
  std::vector<C> re, im;  // exp(-pi i k^2 / n)
  // The transform of its conjugate, over the length.
  std::vector<C> filter_re, filter_im;
};

template <class C>
LineTransform<C>::Chirp::Chirp(int64_t n)
    : whole([n] {
        int64_t length = 1;
        while (length < 2 * n - 1) length *= 2;
        return length;
      }()) {
  RootsOfUnity roots(2 * n);
  auto m = static_cast<size_t>(whole.room());
  filter_re.resize(m);
  filter_im.resize(m);
  int64_t square = 0;  // k^2 modulo 2 n
  for (int64_t k = 0; k < n; ++k) {
    auto at = static_cast<size_t>(square), i = static_cast<size_t>(k);
    re.push_back(static_cast<C>(roots.re[at]));
    im.push_back(static_cast<C>(roots.im[at]));
    for (size_t place : {i, (m - i) % m}) {
      filter_re[place] = re.back() / static_cast<C>(m);
      filter_im[place] = -im.back() / static_cast<C>(m);
    }
    square = (square + 2 * k + 1) % (2 * n);
  }
  std::vector<C> other_re(m), other_im(m);
  LineBuffers<C> line{
      filter_re.data(), filter_im.data(), other_re.data(), other_im.data()};
  whole.run(line, 1);
  if (line.re == other_re.data()) {
    filter_re = std::move(other_re);
    filter_im = std::move(other_im);
  }
}

template <class C>
LineTransform<C>::LineTransform(int64_t n) : n_(n) {
  int64_t rest = 1;
  std::vector<int64_t> radices = radices_of(n, rest);
  if (rest == 1) {
    add_stages(radices);
  } else {
    chirp_ = std::make_shared<const Chirp>(n);
  }
}

template <class C>
void LineTransform<C>::add_stages(const std::vector<int64_t>& radices) {
  RootsOfUnity roots(n_);
  auto turn = [&](int64_t k, const std::vector<double>& part) {
    turns_.push_back(static_cast<C>(part[static_cast<size_t>(k)]));
  };
  std::vector<size_t> begins;
  int64_t done = 1;
  for (int64_t r : radices) {
    int64_t parts = n_ / done / r;
    begins.push_back(turns_.size());
    for (const auto* part : {&roots.re, &roots.im}) {
      for (int64_t p = 0; p < parts; ++p) {
        for (int64_t k = 1; k < r; ++k) turn(p * k * done, *part);
      }
    }
    for (const auto* part : {&roots.re, &roots.im}) {
      for (int64_t k = 0; k < r; ++k) turn(k * (n_ / r), *part);
    }
    FftStage<C> stage;
    stage.radix = r;
    stage.parts = parts;
    stage.stride = done;
    stages_.push_back(stage);
    done *= r;
  }
  for (size_t i = 0; i < stages_.size(); ++i) {
    FftStage<C>& stage = stages_[i];
    int64_t each = stage.parts * (stage.radix - 1);
    stage.re = turns_.data() + begins[i];
    stage.im = stage.re + each;
    stage.root_re = stage.im + each;
    stage.root_im = stage.root_re + stage.radix;
  }
}

template <class C>
int64_t LineTransform<C>::room() const {
  return chirp_ ? chirp_->whole.room() : n_;
}

template <class C>
void LineTransform<C>::run(LineBuffers<C>& lines, int64_t lanes) const {
  if (chirp_) return convolve(lines, lanes);
  FftStageFunction<C> compute = stage_function<C>();
  for (FftStage<C> stage : stages_) {
    stage.stride *= lanes;
    compute(stage, lines.re, lines.im, lines.other_re, lines.other_im);
    std::swap(lines.re, lines.other_re);
    std::swap(lines.im, lines.other_im);
  }
}

namespace {

// Row j of the lines times factor j.
template <class C>
void scale_rows(LineBuffers<C>& lines,
                const std::vector<C>& re,
                const std::vector<C>& im,
                int64_t lanes) {
  for (size_t j = 0; j < re.size(); ++j) {
    C *x = lines.re + static_cast<int64_t>(j) * lanes,
      *y = lines.im + static_cast<int64_t>(j) * lanes;
    for (int64_t q = 0; q < lanes; ++q) {
      C a = x[q], b = y[q];
      x[q] = a * re[j] - b * im[j];
      y[q] = a * im[j] + b * re[j];
    }
  }
}

}  // namespace

template <class C>
void LineTransform<C>::convolve(LineBuffers<C>& lines, int64_t lanes) const {
  const Chirp& c = *chirp_;
  scale_rows(lines, c.re, c.im, lanes);
  for (int64_t i = n_ * lanes; i < room() * lanes; ++i)
    lines.re[i] = lines.im[i] = 0;
  c.whole.run(lines, lanes);
  scale_rows(lines, c.filter_re, c.filter_im, lanes);
  // Exchanged parts make the inverse transform of the forward one.
  std::swap(lines.re, lines.im);
  std::swap(lines.other_re, lines.other_im);
  c.whole.run(lines, lanes);
  std::swap(lines.re, lines.im);
  std::swap(lines.other_re, lines.other_im);
  scale_rows(lines, c.re, c.im, lanes);
}

template class LineTransform<float>;
template class LineTransform<double>;

}  // namespace taeda::native
