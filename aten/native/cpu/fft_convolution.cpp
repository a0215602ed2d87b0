#include <taeda/aten/native/cpu/fft_convolution.h>

#include <utility>

namespace taeda::native {

namespace {

// base^exponent modulo n.
int64_t power(int64_t base, int64_t exponent, int64_t n) {
  int64_t result = 1;
  for (; exponent > 0; exponent /= 2, base = base * base % n) {
    if (exponent % 2 == 1) result = result * base % n;
  }
  return result;
}

std::vector<int64_t> prime_factors(int64_t n) {
  std::vector<int64_t> found;
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) found.push_back(p);
    while (n % p == 0) n /= p;
  }
  if (n > 1) found.push_back(n);
  return found;
}

// A number whose powers are all that are not 0 modulo n; 0 where n is no prime
// or n - 1 has large factors.
int64_t generator_of(int64_t n) {
  if (n > INT32_MAX || !has_small_factors(n - 1)) return 0;
  if (prime_factors(n) != std::vector<int64_t>{n}) return 0;
  std::vector<int64_t> factors = prime_factors(n - 1);
  for (int64_t g = 2; g < n; ++g) {
    bool all = true;
    for (int64_t p : factors) all = all && power(g, (n - 1) / p, n) != 1;
    if (all) return g;
  }
  return 0;
}

int64_t convolution_length(int64_t n, int64_t generator) {
  if (generator > 0) return n - 1;
  int64_t length = 1;
  while (length < 2 * n - 1) length *= 2;
  return length;
}

}  // namespace

template <class C>
LineConvolution<C>::LineConvolution(int64_t n)
    : n_(n),
      generator_(generator_of(n)),
      length_(convolution_length(n, generator_)),
      whole_(length_, /*single=*/true),
      filter_re_(static_cast<size_t>(length_)),
      filter_im_(static_cast<size_t>(length_)) {
  if (generator_ > 0) {
    plan_powers();
  } else {
    plan_chirp();
  }
  std::vector<C> scratch(static_cast<size_t>(whole_.scratch(1)));
  FftView<C> line{filter_re_.data(), filter_im_.data(), 1, 1};
  double factor = 1 / static_cast<double>(length_);
  whole_.run(read(line), line, 1, factor, scratch.data());
}

template <class C>
void LineConvolution<C>::plan_powers() {
  RootsOfUnity roots(n_);
  int64_t inverse = power(generator_, n_ - 2, n_);
  for (int64_t k = 0, up = 1, down = 1; k < length_; ++k) {
    from_.push_back(static_cast<int32_t>(up));
    to_.push_back(static_cast<int32_t>(down));
    auto at = static_cast<size_t>(k), root = static_cast<size_t>(down);
    filter_re_[at] = static_cast<C>(roots.re[root]);
    filter_im_[at] = static_cast<C>(roots.im[root]);
    up = up * generator_ % n_;
    down = down * inverse % n_;
  }
}

template <class C>
void LineConvolution<C>::plan_chirp() {
  RootsOfUnity roots(2 * n_);
  int64_t square = 0;  // k^2 modulo 2 n
  for (int64_t k = 0; k < n_; ++k) {
    auto at = static_cast<size_t>(square);
    chirp_re_.push_back(static_cast<C>(roots.re[at]));
    chirp_im_.push_back(static_cast<C>(roots.im[at]));
    for (int64_t place : {k, (length_ - k) % length_}) {
      filter_re_[static_cast<size_t>(place)] = chirp_re_.back();
      filter_im_[static_cast<size_t>(place)] = -chirp_im_.back();
    }
    square = (square + 2 * k + 1) % (2 * n_);
  }
}

template <class C>
size_t LineConvolution<C>::numbers() const {
  return whole_.numbers() + filter_re_.size() * 2 + chirp_re_.size() * 2 +
         from_.size();
}

template <class C>
void LineConvolution<C>::run(const FftView<const C>& in,
                             const FftView<C>& out,
                             double factor,
                             C* scratch) const {
  const FftKernels<C>& kernels = fft_kernels<C>();
  FftView<C> all{scratch, scratch + length_, 1, 1};
  C* rest = scratch + 2 * length_;
  C first_re = in.re[0], first_im = in.im[0];
  if (generator_ > 0) {
    for (int64_t k = 0; k < length_; ++k) {
      int64_t at = from_[static_cast<size_t>(k)] * in.row;
      all.re[k] = in.re[at];
      all.im[k] = in.im[at];
    }
  } else {
    kernels.product(chirp_re_.data(), chirp_im_.data(), in, all, n_);
    for (int64_t i = n_; i < length_; ++i) all.re[i] = all.im[i] = 0;
  }
  whole_.run(read(all), all, 1, 1, rest);
  C sum_re = first_re + all.re[0], sum_im = first_im + all.im[0];
  kernels.product(
      filter_re_.data(), filter_im_.data(), read(all), all, length_);
  if (generator_ > 0) {
    // The inverse transform adds this to every element.
    all.re[0] += first_re;
    all.im[0] += first_im;
  }
  // Exchanged parts make the inverse transform of the forward one.
  std::swap(all.re, all.im);
  whole_.run(read(all), all, 1, factor, rest);
  std::swap(all.re, all.im);
  if (generator_ == 0) {
    kernels.product(chirp_re_.data(), chirp_im_.data(), read(all), out, n_);
    return;
  }
  out.re[0] = sum_re * static_cast<C>(factor);
  out.im[0] = sum_im * static_cast<C>(factor);
  for (int64_t k = 0; k < length_; ++k) {
    int64_t at = to_[static_cast<size_t>(k)] * out.row;
    out.re[at] = all.re[k];
    out.im[at] = all.im[k];
  }
}

template class LineConvolution<float>;
template class LineConvolution<double>;

}  // namespace taeda::native
