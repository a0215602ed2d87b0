#include <taeda/aten/native/cpu/fft_large.h>
#include <taeda/aten/parallel/parallel.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace taeda::native {

namespace {

// A smaller line stays in the second cache, with what it becomes.
constexpr int64_t kLeastBytes = int64_t{1} << 21;
constexpr int64_t kLeastFactor = 128;

}  // namespace

template <class C>
LargeTransform<C>::LargeTransform(int64_t rows, int64_t columns)
    : rows_(rows),
      columns_(columns),
      of_column_(rows, /*single=*/false),
      of_row_(columns, /*single=*/false),
      coarse_(rows) {
  double step = 2 * std::numbers::pi / (static_cast<double>(rows) * columns);
  for (int64_t k = 0; k < columns; ++k) {
    fine_re_.push_back(std::cos(step * static_cast<double>(k)));
    fine_im_.push_back(-std::sin(step * static_cast<double>(k)));
  }
  auto half = static_cast<size_t>(rows * kTogether);
  turns_.resize(2 * half);
  for (int64_t j = 0; j < rows; ++j) {
    for (int64_t q = 0; q < kTogether; ++q) {
      double re = 0, im = 0;
      root(j * q, re, im);
      auto at = static_cast<size_t>(j * kTogether + q);
      turns_[at] = static_cast<C>(re);
      turns_[half + at] = static_cast<C>(im);
    }
  }
}

template <class C>
std::shared_ptr<const LargeTransform<C>> LargeTransform<C>::of(int64_t n) {
  if (n * 2 * int64_t{sizeof(C)} < kLeastBytes) return nullptr;
  auto rows = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (rows >= kLeastFactor && n % rows != 0) --rows;
  if (rows < kLeastFactor) return nullptr;
  return std::make_shared<const LargeTransform>(rows, n / rows);
}

template <class C>
size_t LargeTransform<C>::numbers() const {
  return turns_.size() + 2 * (coarse_.re.size() + fine_re_.size()) +
         of_column_.numbers() + of_row_.numbers();
}

template <class C>
void LargeTransform<C>::root(int64_t k, double& re, double& im) const {
  auto c = static_cast<size_t>(k / columns_ % rows_);
  auto f = static_cast<size_t>(k % columns_);
  re = coarse_.re[c] * fine_re_[f] - coarse_.im[c] * fine_im_[f];
  im = coarse_.re[c] * fine_im_[f] + coarse_.im[c] * fine_re_[f];
}

// The columns from `first` on become rows of `out`.
template <class C>
void LargeTransform<C>::columns_from(const FftView<const C>& in,
                                     int64_t first,
                                     C* out,
                                     C* room) const {
  const FftKernels<C>& kernels = fft_kernels<C>();
  int64_t lanes = std::min(kTogether, columns_ - first);
  int64_t at = first * in.unit;
  FftView<const C> from{in.re + at, in.im + at, columns_ * in.unit, in.unit};
  FftView<C> to{room, room + 1, 2 * kTogether, 2};
  C *row_turns = room + 2 * kTogether * rows_, *scratch = row_turns + 2 * rows_;
  of_column_.run(from, to, lanes, 1, scratch);
  for (int64_t j = 0; j < rows_; ++j) {
    double re = 0, im = 0;
    root(first * j, re, im);
    row_turns[j] = static_cast<C>(re);
    row_turns[rows_ + j] = static_cast<C>(im);
  }
  // Lanes that are not there turn what nobody reads.
  kernels.turn(row_turns, turns_.data(), to, rows_, kTogether);
  kernels.transpose(
      room, 2 * kTogether, out + 2 * first * rows_, 2 * rows_, rows_, lanes);
}

template <class C>
void LargeTransform<C>::run(const FftView<const C>& in,
                            const FftView<C>& out,
                            double factor) const {
  auto middle = std::make_unique_for_overwrite<C[]>(
      static_cast<size_t>(2 * rows_ * columns_));
  auto room = [](int64_t numbers) {
    return std::make_unique<C[]>(static_cast<size_t>(numbers));
  };
  auto groups = [](int64_t lines) {
    return (lines + kTogether - 1) / kTogether;
  };
  parallel_for(0, groups(columns_), 4, [&](int64_t begin, int64_t end) {
    auto own =
        room(2 * (kTogether + 1) * rows_ + of_column_.scratch(kTogether));
    for (int64_t i = begin; i < end; ++i)
      columns_from(in, i * kTogether, middle.get(), own.get());
  });
  parallel_for(0, groups(rows_), 4, [&](int64_t begin, int64_t end) {
    auto own = room(of_row_.scratch(kTogether));
    for (int64_t i = begin; i < end; ++i) {
      int64_t first = i * kTogether, at = first * out.unit;
      int64_t lanes = std::min(kTogether, rows_ - first);
      const C* p = middle.get() + 2 * first;
      FftView<C> to{out.re + at, out.im + at, rows_ * out.unit, out.unit};
      of_row_.run({p, p + 1, 2 * rows_, 2}, to, lanes, factor, own.get());
    }
  });
}

template class LargeTransform<float>;
template class LargeTransform<double>;

}  // namespace taeda::native
