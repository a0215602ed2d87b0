// Fourier transforms of many lines of one length, side by side.
#pragma once

#include <taeda/aten/native/cpu/kernels/fft.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace taeda::native {

// The same numbers, not to be written.
template <class C>
FftView<const C> read(const FftView<C>& v) {
  return {v.re, v.im, v.row, v.unit};
}

// exp(-2 pi i k / n) for all k below n, each rounded once from its octant.
struct RootsOfUnity {
  explicit RootsOfUnity(int64_t n);
  std::vector<double> re, im;
};

// The kernels of the level in use.
template <class C>
const FftKernels<C>& fft_kernels();

// Note [Transforms of lines]
// Lengths are computed by T. Stockham's algorithm (1966) with stages of radix
// 16, 8, 4, 2, 3, 5 and generic odd ones; those of prime factors that are too
// large for a stage as convolutions (fft_convolution.h). Vectors hold
// neighbours of the innermost dim of each stage: lines that lie side by side,
// or what earlier stages have
// made of one line. The first stage of one line has no such neighbours; it
// takes elements next to each other, has as radix the width of a vector and
// puts its results in order by a transposition in registers. Long lines are
// matrices whose columns and then rows are transformed (D. Bailey's four steps,
// 1990), so that what is worked on stays in the cache.
template <class C>
class LineConvolution;
template <class C>
class LargeTransform;

template <class C>
class LineTransform {
 public:
  // `single`: lines are transformed one at a time. Without it n has no prime
  // factor above kMostRadix.
  LineTransform(int64_t n, bool single);

  // The radix of the first stage of a line that is alone; 0: there is none.
  static int64_t single_radix(int64_t n);

  // Numbers of scratch space that `lanes` lines need.
  int64_t scratch(int64_t lanes) const;
  // Forward transforms of all lines, whose elements are the rows of the views.
  // The views may be the same. Exchanged parts, of both, make the inverse
  // transform of it.
  void run(const FftView<const C>& in,
           const FftView<C>& out,
           int64_t lanes,
           double factor,
           C* scratch) const;

  // What the tables hold.
  size_t numbers() const;

 private:
  struct Place {
    int64_t radix, parts;
    size_t begin;
    bool first;
  };
  void add_stages(const std::vector<int64_t>& radices, bool single);
  FftStage<C> stage_at(const Place& place) const;
  int64_t n_;
  std::vector<Place> places_;
  std::vector<C> turns_;  // the roots of all stages
  std::shared_ptr<const LineConvolution<C>> convolution_;
  std::shared_ptr<const LargeTransform<C>> large_;
};

// What transforms of lines of n numbers need. A real line of even length is a
// complex one of half of it, from whose spectrum that of the even and that of
// the odd elements are told by their symmetry.
template <class C>
struct LinePlan {
  LinePlan(int64_t n, bool halved, bool single);

  int64_t length;  // of the complex lines
  LineTransform<C> transform;
  std::vector<C> roots_re, roots_im;  // of the real line's length, if halved

  FftRoots<C> roots() const {
    return {length, roots_re.data(), roots_im.data()};
  }
  size_t numbers() const {
    return transform.numbers() + roots_re.size() + roots_im.size();
  }
};

// The plan, of which the last ones are kept. Any thread may call it.
template <class C>
std::shared_ptr<const LinePlan<C>> line_plan(int64_t n,
                                             bool halved,
                                             bool single);

// Prime factors up to this one are stages of lines that are alone, and float
// is as exact as it can be; kMostRadix is the limit of lines side by side.
inline constexpr int64_t kMostSmall = 61;

// Whether `n` has no prime factor above `most`.
bool has_small_factors(int64_t n, int64_t most = kMostSmall);

}  // namespace taeda::native
