// Fourier transforms: one dim after the other.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/fft_lines.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_fft_c2c.h>
#include <taeda/gen/native/_fft_c2r.h>
#include <taeda/gen/native/_fft_r2c.h>
#include <taeda/gen/ops/clone.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace taeda::native {

namespace {

enum class Kind { kComplex, kFromReal, kToReal };

// One dim of all lines. Pointers are to real numbers, strides count them.
template <class T>
struct Pass {
  Kind kind;
  bool forward;
  double factor;
  int64_t n;  // length of the line: of the real one, if one is real
  const T* in;
  T* out;
  int64_t in_step, out_step;
  DimVector sizes, in_strides, out_strides;  // of the other dims

  int64_t lines() const {
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    return count;
  }
};

template <class T>
Pass<T> make_pass(Kind kind,
                  bool forward,
                  double factor,
                  const Tensor& in,
                  const Tensor& out,
                  int64_t dim) {
  int64_t in_unit = kind == Kind::kFromReal ? 1 : 2;
  int64_t out_unit = kind == Kind::kToReal ? 1 : 2;
  Pass<T> pass{kind,
               forward,
               factor,
               kind == Kind::kToReal ? out.size(dim) : in.size(dim),
               in.const_data<T>(),
               out.mutable_data<T>(),
               in.stride(dim) * in_unit,
               out.stride(dim) * out_unit,
               {},
               {},
               {}};
  DimVector order;
  for (int64_t d = 0; d < in.dim(); ++d) {
    if (d != dim) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return out.stride(a) > out.stride(b);
  });
  for (int64_t d : order) {
    pass.sizes.push_back(in.size(d));
    pass.in_strides.push_back(in.stride(d) * in_unit);
    pass.out_strides.push_back(out.stride(d) * out_unit);
  }
  return pass;
}

// The offsets of `lanes` lines from line `first` on.
void offsets_of(int64_t first,
                int64_t lanes,
                IntArrayRef sizes,
                IntArrayRef strides,
                int64_t* offsets) {
  for (int64_t q = 0; q < lanes; ++q) {
    int64_t rest = first + q;
    offsets[q] = 0;
    for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d])
      offsets[q] += rest % sizes[d] * strides[d];
  }
}

constexpr int64_t kMostLanes = 16;

// Lines on their way.
template <class C>
struct Group {
  LineBuffers<C> at;
  int64_t lanes;
  int64_t in[kMostLanes], out[kMostLanes];
};

// Moves lines into buffers, transforms them and moves them out. A real line of
// even length is a complex one of half of it, from whose spectrum that of the
// even and that of the odd elements are told by their symmetry.
template <class T, class C>
class Lines {
 public:
  explicit Lines(const Pass<T>& pass)
      : pass_(pass),
        halved_(pass.kind != Kind::kComplex && pass.n % 2 == 0),
        length_(halved_ ? pass.n / 2 : pass.n),
        transform_(length_),
        roots_(halved_ ? pass.n : 1) {}

  void run() const {
    int64_t all = pass_.lines();
    int64_t fits = (int64_t{1} << 17) /
                   (transform_.room() * static_cast<int64_t>(sizeof(C)));
    int64_t lanes = std::min(std::clamp<int64_t>(fits, 1, kMostLanes), all);
    int64_t grain = std::max<int64_t>(1, 32768 / pass_.n / lanes) * lanes;
    parallel_for(0, all, grain, [&](int64_t begin, int64_t end) {
      int64_t size = transform_.room() * lanes;
      std::vector<C> room(static_cast<size_t>(4 * size));
      C* p = room.data();
      for (int64_t i = begin; i < end; i += lanes) {
        Group<C> group{{p, p + size, p + 2 * size, p + 3 * size},
                       std::min(lanes, end - i),
                       {},
                       {}};
        some(group, i);
      }
    });
  }

 private:
  struct Complex {
    C re, im;
  };

  void some(Group<C>& group, int64_t first) const {
    auto place = [&](const DimVector& strides, int64_t* offsets) {
      offsets_of(first, group.lanes, pass_.sizes, strides, offsets);
    };
    place(pass_.in_strides, group.in);
    place(pass_.out_strides, group.out);
    gather(group);
    // Exchanged parts make the inverse transform of the forward one.
    bool inverse = pass_.kind == Kind::kToReal ||
                   (pass_.kind == Kind::kComplex && !pass_.forward);
    if (inverse) exchange(group);
    transform_.run(group.at, group.lanes);
    if (inverse) exchange(group);
    scatter(group);
  }
  static void exchange(Group<C>& group) {
    std::swap(group.at.re, group.at.im);
    std::swap(group.at.other_re, group.at.other_im);
  }

  // f(element, lane, place in the buffers).
  template <class F>
  void each(const Group<C>& group, int64_t count, F&& f) const {
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t q = 0; q < group.lanes; ++q) f(j, q, j * group.lanes + q);
    }
  }

  void gather(Group<C>& group) const {
    LineBuffers<C>& b = group.at;
    auto put = [&](int64_t i, T re, T im) {
      b.re[i] = static_cast<C>(re);
      b.im[i] = static_cast<C>(im);
    };
    int64_t step = pass_.in_step;
    if (pass_.kind == Kind::kToReal) return gather_half(group);
    each(group, length_, [&](int64_t j, int64_t q, int64_t i) {
      const T* x = pass_.in + group.in[q];
      if (pass_.kind == Kind::kComplex) {
        put(i, x[j * step], x[j * step + 1]);
      } else if (halved_) {
        put(i, x[2 * j * step], x[(2 * j + 1) * step]);
      } else {
        put(i, x[j * step], T(0));
      }
    });
  }

  // Element k of a line of which only the half that is not negative is there;
  // what the symmetry makes real is read so.
  Complex half(const Group<C>& group, int64_t q, int64_t k) const {
    const T* x = pass_.in + group.in[q] + k * pass_.in_step;
    bool real = k == 0 || 2 * k == pass_.n;
    C im = real ? C(0) : static_cast<C>(x[1]);
    return {static_cast<C>(x[0]), im};
  }

  void gather_half(Group<C>& group) const {
    each(group, length_, [&](int64_t j, int64_t q, int64_t i) {
      Complex value;
      if (halved_) {
        Complex near = half(group, q, j), far = half(group, q, length_ - j);
        Complex odd = turned({near.re - far.re, near.im + far.im}, j, true);
        value = {near.re + far.re - odd.im, near.im - far.im + odd.re};
      } else if (2 * j < pass_.n) {
        value = half(group, q, j);
      } else {
        value = half(group, q, pass_.n - j);
        value.im = -value.im;
      }
      group.at.re[i] = value.re;
      group.at.im[i] = value.im;
    });
  }

  void scatter(const Group<C>& group) const {
    const LineBuffers<C>& b = group.at;
    auto factor = static_cast<C>(pass_.factor);
    if (pass_.kind == Kind::kFromReal) return scatter_half(group);
    each(group, length_, [&](int64_t j, int64_t q, int64_t i) {
      T* y = pass_.out + group.out[q];
      T re = static_cast<T>(b.re[i] * factor);
      T im = static_cast<T>(b.im[i] * factor);
      if (pass_.kind == Kind::kComplex) {
        y[j * pass_.out_step] = re;
        y[j * pass_.out_step + 1] = im;
      } else if (halved_) {
        y[2 * j * pass_.out_step] = re;
        y[(2 * j + 1) * pass_.out_step] = im;
      } else {
        y[j * pass_.out_step] = re;
      }
    });
  }

  void scatter_half(const Group<C>& group) const {
    const LineBuffers<C>& b = group.at;
    auto factor = static_cast<C>(pass_.factor);
    each(group, pass_.n / 2 + 1, [&](int64_t k, int64_t q, int64_t) {
      int64_t i = k % length_ * group.lanes + q;
      Complex value{b.re[i], b.im[i]};
      if (halved_) {
        int64_t o = (length_ - k) % length_ * group.lanes + q;
        Complex odd =
            turned({value.im + b.im[o], b.re[o] - value.re}, k, false);
        value = {C(0.5) * (value.re + b.re[o] + odd.re),
                 C(0.5) * (value.im - b.im[o] + odd.im)};
      }
      T* y = pass_.out + group.out[q] + k * pass_.out_step;
      y[0] = static_cast<T>(value.re * factor);
      y[1] = static_cast<T>(value.im * factor);
    });
  }

  // Times the k-th root of unity of the real line's length, or its inverse.
  Complex turned(Complex a, int64_t k, bool back) const {
    auto c = static_cast<C>(roots_.re[static_cast<size_t>(k % pass_.n)]);
    auto s = static_cast<C>(roots_.im[static_cast<size_t>(k % pass_.n)]);
    if (back) s = -s;
    return {a.re * c - a.im * s, a.re * s + a.im * c};
  }

  const Pass<T>& pass_;
  bool halved_;
  int64_t length_;  // of the complex lines
  LineTransform<C> transform_;
  RootsOfUnity roots_;
};

template <class T>
void run_pass_of(const Pass<T>& pass) {
  // A convolution loses more digits than stages do.
  if (has_small_factors(pass.n)) {
    Lines<T, T>(pass).run();
  } else {
    Lines<T, double>(pass).run();
  }
}

void run_pass(Kind kind,
              bool forward,
              double factor,
              const Tensor& in,
              const Tensor& out,
              int64_t dim) {
  if (out.numel() == 0) return;
  if (real_type_of(out.dtype()) == kFloat) {
    run_pass_of(make_pass<float>(kind, forward, factor, in, out, dim));
  } else {
    run_pass_of(make_pass<double>(kind, forward, factor, in, out, dim));
  }
}

double factor_of(IntArrayRef sizes, IntArrayRef dims, int64_t normalization) {
  double count = 1;
  for (int64_t d : dims)
    count *= static_cast<double>(sizes[static_cast<size_t>(
        wrap_dim(d, static_cast<int64_t>(sizes.size())))]);
  if (normalization == 0) return 1;
  return 1 / (normalization == 1 ? std::sqrt(count) : count);
}

Tensor resolved(const Tensor& t) {
  return t.is_conj() || t.is_neg() ? Tensor(contiguous(t)) : t;
}

// The last dim first; a copy where there is none.
void complex_passes(const Tensor& in,
                    const Tensor& out,
                    IntArrayRef dims,
                    bool forward,
                    double factor) {
  if (dims.empty()) return copy_into(out, in);
  for (size_t i = dims.size(); i-- > 0; factor = 1) {
    const Tensor& from = i + 1 == dims.size() ? in : out;
    run_pass(Kind::kComplex,
             forward,
             factor,
             from,
             out,
             wrap_dim(dims[i], in.dim()));
  }
}

}  // namespace

void fft_c2c_cpu(const Tensor& self,
                 IntArrayRef dim,
                 int64_t normalization,
                 bool forward,
                 const Tensor& out) {
  double factor = factor_of(self.sizes(), dim, normalization);
  complex_passes(resolved(self), out, dim, forward, factor);
}

void fft_r2c_cpu(const Tensor& self,
                 IntArrayRef dim,
                 int64_t normalization,
                 bool onesided,
                 const Tensor& out) {
  if (!onesided) {
    copy_into(out, self);
    return fft_c2c_cpu(out, dim, normalization, true, out);
  }
  double factor = factor_of(self.sizes(), dim, normalization);
  IntArrayRef others = dim.slice(0, dim.size() - 1);
  run_pass(Kind::kFromReal,
           true,
           factor,
           resolved(self),
           out,
           wrap_dim(dim.back(), self.dim()));
  if (!others.empty()) complex_passes(out, out, others, true, 1);
}

void fft_c2r_cpu(const Tensor& self,
                 IntArrayRef dim,
                 int64_t normalization,
                 int64_t last_dim_size,
                 const Tensor& out) {
  double factor = factor_of(out.sizes(), dim, normalization);
  IntArrayRef others = dim.slice(0, dim.size() - 1);
  Tensor half = resolved(self);
  if (!others.empty()) {
    half = ops::clone(half, MemoryFormat::Contiguous);
    complex_passes(half, half, others, false, 1);
  }
  run_pass(Kind::kToReal,
           false,
           factor,
           half,
           out,
           wrap_dim(dim.back(), self.dim()));
}

}  // namespace taeda::native
