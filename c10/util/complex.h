// Complex numbers, shared by the core, the CPU kernels and NVRTC device code.
// No system header: NVRTC compiles this file as it stands. std::complex is not
// used because its layout promises hold but its arithmetic calls into libgcc
// and its functions are not device code.
#pragma once

#ifndef TAEDA_HD
#ifdef __CUDACC__  // NVRTC defines it too
#define TAEDA_HD __host__ __device__
#else
#define TAEDA_HD
#endif
#endif

namespace taeda {

// Two T beside each other, real part first, aligned to the pair: the layout of
// NumPy, std::complex, BLAS and cuComplex. Zero when default-constructed.
template <typename T>
class alignas(2 * sizeof(T)) complex {
 public:
  using value_type = T;

  TAEDA_HD constexpr complex() : real_(), imag_() {}
  TAEDA_HD constexpr complex(T real, T imag = T()) : real_(real), imag_(imag) {}
  // Widening is implicit, narrowing is not.
  template <typename U>
  TAEDA_HD explicit(sizeof(U) >
                    sizeof(T)) constexpr complex(const complex<U>& other)
      : real_(static_cast<T>(other.real())),
        imag_(static_cast<T>(other.imag())) {}

  TAEDA_HD constexpr T real() const { return real_; }
  TAEDA_HD constexpr T imag() const { return imag_; }
  TAEDA_HD constexpr void real(T value) { real_ = value; }
  TAEDA_HD constexpr void imag(T value) { imag_ = value; }

  TAEDA_HD explicit constexpr operator bool() const {
    return real_ != T() || imag_ != T();
  }

  TAEDA_HD constexpr complex operator+() const { return *this; }
  TAEDA_HD constexpr complex operator-() const {
    return complex(-real_, -imag_);
  }

  TAEDA_HD constexpr complex& operator+=(complex b) {
    return *this = *this + b;
  }
  TAEDA_HD constexpr complex& operator-=(complex b) {
    return *this = *this - b;
  }
  TAEDA_HD constexpr complex& operator*=(complex b) {
    return *this = *this * b;
  }
  TAEDA_HD constexpr complex& operator/=(complex b) {
    return *this = *this / b;
  }

  // Friends found by argument lookup, so that plain numbers convert on either
  // side and complex<float> with complex<double> gives the wider type.
  TAEDA_HD friend constexpr complex operator+(complex a, complex b) {
    return complex(a.real_ + b.real_, a.imag_ + b.imag_);
  }
  TAEDA_HD friend constexpr complex operator-(complex a, complex b) {
    return complex(a.real_ - b.real_, a.imag_ - b.imag_);
  }
  // The school formula: like PyTorch, no recovery of infinities from NaN.
  TAEDA_HD friend constexpr complex operator*(complex a, complex b) {
    return complex(a.real_ * b.real_ - a.imag_ * b.imag_,
                   a.real_ * b.imag_ + a.imag_ * b.real_);
  }
  // R. L. Smith, "Algorithm 116: Complex division", CACM 5 (1962): dividing by
  // the larger part first keeps |b|^2 from overflowing or vanishing. Selects
  // instead of branches, so that loops vectorise. x/0 is x.real/0, x.imag/0.
  TAEDA_HD friend constexpr complex operator/(complex a, complex b) {
    const T abs_re = b.real_ < T() ? -b.real_ : b.real_;
    const T abs_im = b.imag_ < T() ? -b.imag_ : b.imag_;
    const bool re_larger = abs_re >= abs_im;
    const bool is_zero = abs_re + abs_im == T();
    const T large = re_larger ? b.real_ : b.imag_;
    const T small = re_larger ? b.imag_ : b.real_;
    const T ratio = is_zero ? T() : small / large;
    const T den = is_zero ? abs_re + abs_im : large + small * ratio;
    const T along = re_larger ? a.real_ : a.imag_;
    const T across = re_larger ? a.imag_ : -a.real_;
    const T re = (along + (re_larger ? a.imag_ : a.real_) * ratio) / den;
    const T im = (across - (re_larger ? a.real_ : -a.imag_) * ratio) / den;
    return complex(re, im);
  }

  TAEDA_HD friend constexpr bool operator==(complex a, complex b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }
  TAEDA_HD friend constexpr bool operator!=(complex a, complex b) {
    return !(a == b);
  }

 private:
  T real_;
  T imag_;
};

template <typename T>
TAEDA_HD constexpr T real(complex<T> z) {
  return z.real();
}

template <typename T>
TAEDA_HD constexpr T imag(complex<T> z) {
  return z.imag();
}

template <typename T>
TAEDA_HD constexpr complex<T> conj(complex<T> z) {
  return complex<T>(z.real(), -z.imag());
}

// |z|^2, without protection against overflow.
template <typename T>
TAEDA_HD constexpr T norm(complex<T> z) {
  return z.real() * z.real() + z.imag() * z.imag();
}

}  // namespace taeda
