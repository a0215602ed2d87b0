#include <taeda/aten/native/cpu/fft_lines.h>
#include <taeda/aten/native/cpu/fft_pass.h>
#include <taeda/aten/parallel/parallel.h>

#include <algorithm>
#include <memory>
#include <type_traits>

namespace taeda::native {

namespace {

// Where the complex numbers of some lines lie in a tensor: the real part of
// element j of line q at [j * row + q * lane], the imaginary one `part` after
// it. Real lines are complex ones of half their length.
struct Layout {
  int64_t row, part, lane;
  bool pairs() const { return part == 1; }
  // Whether the lines' own elements, or the lines, are neighbours.
  bool along() const { return pairs() && row == 2; }
  bool across() const { return lane == (pairs() ? 2 : 1); }
};

// C is what is computed with.
template <class T, class C>
class Lines {
 public:
  explicit Lines(const FftPass<T>& pass)
      : pass_(pass),
        halved_(pass.kind != FftKind::kComplex && pass.n % 2 == 0),
        lanes_(pass.sizes.empty() ? 1 : pass.sizes.back()),
        in_(layout(from_real(), pass.in_step, last(pass.in_strides))),
        out_(layout(to_real(), pass.out_step, last(pass.out_strides))),
        plan_(line_plan<C>(pass.n, halved_, alone())) {
    if (alone()) {
      group_ = 1;
    } else {
      int64_t each = plan_->transform.scratch(1) * int64_t{sizeof(C)};
      int64_t neighbours = 64 / int64_t{sizeof(C)};
      int64_t fits = (int64_t{1} << 16) / each;
      int64_t least = each > (int64_t{1} << 22) ? 1 : neighbours / 2;
      group_ = std::min(std::clamp(fits, least, neighbours), lanes_);
    }
  }

  void run() const {
    int64_t outer = 1;
    for (size_t d = 0; d + 1 < pass_.sizes.size(); ++d) outer *= pass_.sizes[d];
    int64_t groups = (lanes_ + group_ - 1) / group_;
    int64_t grain = std::max<int64_t>(1, 32768 / (pass_.n * group_));
    parallel_for(0, outer * groups, grain, [&](int64_t begin, int64_t end) {
      auto room = std::make_unique_for_overwrite<C[]>(static_cast<size_t>(
          staging() * 3 + plan_->transform.scratch(group_)));
      for (int64_t i = begin; i < end; ++i)
        some(i / groups, i % groups * group_, room.get());
    });
  }

 private:
  static constexpr bool kSame = std::is_same_v<T, C>;
  // Convolutions of so few lines are quicker than large radices.
  static constexpr int64_t kFewLines = 4;

  bool from_real() const {
    return pass_.kind == FftKind::kFromReal ||
           pass_.kind == FftKind::kWholeFromReal;
  }
  bool to_real() const { return pass_.kind == FftKind::kToReal; }
  static int64_t last(const DimVector& strides) {
    return strides.empty() ? 0 : strides.back();
  }
  Layout layout(bool real, int64_t step, int64_t lane) const {
    if (!real) return {step, 1, lane};
    return {halved_ ? 2 * step : step, step, lane};
  }
  // Whether lines are transformed one at a time: where their elements are
  // neighbours and fill vectors, or there is but one.
  bool alone() const {
    if (lanes_ == 1) return true;
    if (!has_small_factors(pass_.n, kMostRadix)) return true;
    if (!has_small_factors(pass_.n)) return lanes_ < kFewLines;
    bool whole = pass_.kind == FftKind::kComplex || halved_;
    if (!whole || !in_.along() || !out_.along()) return false;
    int64_t length = halved_ ? pass_.n / 2 : pass_.n;
    int64_t radix = LineTransform<C>::single_radix(length);
    return radix * 2 >= fft_kernels<C>().width || (radix > 0 && lanes_ < 4);
  }
  // Numbers that one buffer for lines on their way takes.
  int64_t staging() const { return 2 * (pass_.n + 2) * group_; }

  void some(int64_t outer, int64_t first, C* room) const {
    int64_t lanes = std::min(group_, lanes_ - first);
    const T* in = pass_.in + first * in_.lane;
    T* out = pass_.out + first * out_.lane;
    for (size_t d = pass_.sizes.size(); d-- > 1; outer /= pass_.sizes[d - 1]) {
      int64_t index = outer % pass_.sizes[d - 1];
      in += index * pass_.in_strides[d - 1];
      out += index * pass_.out_strides[d - 1];
    }
    C *one = room + staging(), *two = one + staging(),
      *scratch = two + staging();
    FftView<const C> from = gathered(in, lanes, room);
    FftView<C> to = target(out, lanes, one);
    if (!halved_) {
      transformed(from, to, lanes, scratch);
    } else {
      FftView<C> half{two, two + plan_->length * lanes, lanes, 1};
      const FftKernels<C>& kernels = fft_kernels<C>();
      if (from_real()) {
        transformed(from, half, lanes, scratch);
        kernels.join(plan_->roots(), read(half), to, in_row(to, lanes));
      } else {
        kernels.split(plan_->roots(), from, half, in_row(from, lanes));
        transformed(read(half), to, lanes, scratch);
      }
    }
    scatter(out, lanes, one);
    if (pass_.kind == FftKind::kWholeFromReal) mirror(out, lanes);
  }

  // What join and split take lines as: 0 where one is a row.
  template <class V>
  static int64_t in_row(const V& view, int64_t lanes) {
    return lanes == 1 && view.row == view.unit ? 0 : lanes;
  }

  // Exchanged parts make the inverse transform of the forward one.
  void transformed(FftView<const C> in,
                   FftView<C> out,
                   int64_t lanes,
                   C* scratch) const {
    if (to_real() || (!from_real() && !pass_.forward)) {
      std::swap(in.re, in.im);
      std::swap(out.re, out.im);
    }
    // Spectra are joined from those of halves times 2.
    double factor = from_real() && halved_ ? pass_.factor / 2 : pass_.factor;
    plan_->transform.run(in, out, lanes, factor, scratch);
  }

  // Complex elements of a line before and after.
  int64_t in_count() const {
    if (to_real()) return pass_.n / 2 + 1;
    return plan_->length;
  }
  int64_t out_count() const {
    if (from_real()) return pass_.n / 2 + 1;
    return plan_->length;
  }

  // The tensor's own memory as a view, where kernels can read or write it.
  template <class P>
  bool direct(const Layout& at, int64_t lanes, P* p, FftView<P>& view) const {
    if (!reachable(at, lanes)) return false;
    view = {p, p + at.part, at.row, at.pairs() ? 2 : 1};
    return true;
  }
  // A convolution wants the elements of its line side by side.
  bool reachable(const Layout& at, int64_t lanes) const {
    if (lanes > 1) return at.across();
    return at.along() || has_small_factors(pass_.n);
  }
  // Lines whose real parts alone are there, or half of them, are made whole.
  bool whole_in() const { return pass_.kind == FftKind::kComplex || halved_; }
  bool whole_out() const { return !to_real() || halved_; }

  FftView<const C> gathered(const T* in, int64_t lanes, C* room) const {
    if constexpr (kSame) {
      FftView<const C> view;
      if (whole_in() && direct(in_, lanes, in, view)) return view;
      if (whole_in() && in_.along()) {
        fft_kernels<C>().transpose(
            in, in_.lane, room, 2 * lanes, lanes, in_count());
        return {room, room + 1, 2 * lanes, 2};
      }
    }
    int64_t count = whole_in() ? in_count() : pass_.n;
    C* im = room + count * lanes;
    for (int64_t q = 0; q < lanes; ++q) {
      gather_line(in + q * in_.lane, count, room + q, im + q, lanes);
    }
    return {room, im, lanes, 1};
  }

  void gather_line(
      const T* x, int64_t count, C* re, C* im, int64_t lanes) const {
    int64_t row = in_.row, part = in_.part, there = count;
    bool imaginary = whole_in() || to_real();
    if (!whole_in() && to_real()) there = pass_.n / 2 + 1;
    for (int64_t j = 0; j < there; ++j) {
      re[j * lanes] = static_cast<C>(x[j * row]);
      im[j * lanes] = imaginary ? static_cast<C>(x[j * row + part]) : C(0);
    }
    if (there == count) return;
    // Of a spectrum that is half there the rest follows by symmetry; what that
    // makes real is read so.
    im[0] = 0;
    for (int64_t j = there; j < count; ++j) {
      re[j * lanes] = re[(count - j) * lanes];
      im[j * lanes] = -im[(count - j) * lanes];
    }
  }

  // Where results go: the tensor, or a buffer that `scatter` empties.
  FftView<C> target(T* out, int64_t lanes, C* room) const {
    if constexpr (kSame) {
      FftView<C> view;
      if (direct_out(lanes) && direct(out_, lanes, out, view)) return view;
    }
    return {room, room + 1, 2 * lanes, 2};
  }
  bool direct_out(int64_t lanes) const {
    bool writes_all = from_real() && !halved_;
    return kSame && whole_out() && !writes_all && reachable(out_, lanes);
  }

  void scatter(T* out, int64_t lanes, const C* room) const {
    if (direct_out(lanes)) return;
    if constexpr (kSame) {
      if (whole_out() && out_.along()) {
        return fft_kernels<C>().transpose(
            room, 2 * lanes, out, out_.lane, out_count(), lanes);
      }
    }
    int64_t count = to_real() && !halved_ ? pass_.n : out_count();
    for (int64_t q = 0; q < lanes; ++q) {
      T* y = out + q * out_.lane;
      const C* x = room + 2 * q;
      int64_t row = out_.row, part = out_.part;
      bool imaginary = whole_out();
      for (int64_t j = 0; j < count; ++j) {
        y[j * row] = static_cast<T>(x[2 * j * lanes]);
        if (imaginary) y[j * row + part] = static_cast<T>(x[2 * j * lanes + 1]);
      }
    }
  }

  // The half of a spectrum that follows from the other.
  void mirror(T* out, int64_t lanes) const {
    for (int64_t q = 0; q < lanes; ++q) {
      T* line = out + q * out_.lane;
      if (out_.along()) {
        fft_kernels<T>().mirror(line, pass_.n);
        continue;
      }
      for (int64_t k = 1; 2 * k < pass_.n; ++k) {
        T *to = line + (pass_.n - k) * out_.row, *from = line + k * out_.row;
        to[0] = from[0];
        to[1] = -from[1];
      }
    }
  }

  const FftPass<T>& pass_;
  bool halved_;
  int64_t lanes_;  // lines of the last of the other dims
  Layout in_, out_;
  std::shared_ptr<const LinePlan<C>> plan_;
  int64_t group_;  // lines that are transformed together
};

template <class T>
void run_pass_of(const FftPass<T>& pass) {
  // A convolution loses more digits than stages do.
  if (has_small_factors(pass.n)) {
    Lines<T, T>(pass).run();
  } else {
    Lines<T, double>(pass).run();
  }
}

}  // namespace

void run_fft_pass(FftPass<float> pass) { run_pass_of(pass); }
void run_fft_pass(FftPass<double> pass) { run_pass_of(pass); }

}  // namespace taeda::native
