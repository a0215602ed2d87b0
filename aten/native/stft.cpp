// Short-time Fourier transforms: the spectra of overlapping windows of a signal
// (Allen and Rabiner, A unified approach to short-time Fourier analysis and
// synthesis, 1977), and the signal that is nearest to given spectra (Griffin
// and Lim, Signal estimation from modified short-time Fourier transform, 1984).
#include <taeda/aten/core/dispatcher.h>
#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/output.h>
#include <taeda/gen/native/istft.h>
#include <taeda/gen/native/stft.h>
#include <taeda/gen/ops/_fft_c2c.h>
#include <taeda/gen/ops/_fft_c2r.h>
#include <taeda/gen/ops/_fft_r2c.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/constant_pad_nd.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/min.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/ones.h>
#include <taeda/gen/ops/pad.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unfold.h>
#include <taeda/gen/ops/unfold_backward.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/view_as_real.h>

#include <algorithm>

namespace taeda::native {

namespace {

using Length = std::optional<int64_t>;
using Choice = std::optional<bool>;

// What a transform is divided by, as _fft_c2c takes it.
constexpr int64_t kNothing = 0, kRoot = 1, kCount = 2;
// Sums of squared windows that are smaller cannot be divided by.
constexpr double kLeastOverlap = 1e-11;

struct Frames {
  int64_t n_fft, hop, width;  // of the transform, between windows, of a window

  Frames(int64_t n, Length hop_length, Length win_length)
      : n_fft(n),
        hop(hop_length.value_or(n / 4)),
        width(win_length.value_or(n)) {}
  int64_t left() const { return (n_fft - width) / 2; }
  int64_t right() const { return n_fft - width - left(); }
};

Tensor squeezed(const Tensor& t, bool batched) {
  return batched ? t : ops::squeeze(t, 0);
}

void check_width(std::string_view op, const Frames& f) {
  TAEDA_CHECK(f.width > 0 && f.width <= f.n_fft,
              op,
              ": expected 0 < win_length <= n_fft, but got win_length=",
              f.width,
              " and n_fft=",
              f.n_fft);
}

Tensor rectangle(int64_t width, const Tensor& like) {
  ScalarType t = real_type_of(like.dtype());
  return ops::ones({width}, t, std::nullopt, like.device());
}

// The window with zeros on both sides; a rectangle if none is given, and
// nothing for one as wide as the transform.
Tensor centred(const OptionalTensor& window, const Tensor& like, Frames f) {
  bool given = window.has_value();
  if (!given && f.width == f.n_fft) return {};
  Tensor w = given ? Tensor(*window) : rectangle(f.width, like);
  if (f.width == f.n_fft) return w;
  return ops::constant_pad_nd(w, {f.left(), f.right()});
}

// Programs look for the first words, so that the operator comes last.
void warn_of_rectangle(std::string_view op, const OptionalTensor& window) {
  if (window.has_value()) return;
  warn(str_cat(
      "A window was not provided. A rectangular window will be applied, "
      "which leaks between frequencies; say `window=ones(n_fft)` where "
      "that is meant (",
      op,
      ")"));
}

void check_signals(const Tensor& self) {
  TAEDA_CHECK(self.dim() == 1 || self.dim() == 2,
              "stft: expected a 1D or 2D tensor, got sizes ",
              self.sizes());
}

void check_stft(const Tensor& self,
                const Frames& f,
                const OptionalTensor& window) {
  TAEDA_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()),
              "stft: expected a tensor of floating point or complex values, "
              "got ",
              self.dtype());
  check_signals(self);
  int64_t length = self.size(-1);
  TAEDA_CHECK(f.n_fft > 0 && f.n_fft <= length,
              "stft: expected 0 < n_fft <= ",
              length,
              ", but got n_fft=",
              f.n_fft);
  TAEDA_CHECK(
      f.hop > 0, "stft: expected hop_length > 0, but got hop_length=", f.hop);
  check_width("stft", f);
  TAEDA_CHECK(
      !window.has_value() || (window->dim() == 1 && window->size(0) == f.width),
      "stft: expected a 1D window tensor of size equal to win_length=",
      f.width,
      ", but got window with size ",
      window.has_value() ? window->sizes() : IntArrayRef());
}

Tensor spectra(const Tensor& frames, bool normalized, bool onesided) {
  int64_t divisor = normalized ? kRoot : kNothing;
  if (is_complex(frames.dtype())) {
    return ops::_fft_c2c(frames, {2}, divisor, true);
  }
  return ops::_fft_r2c(frames, {2}, divisor, onesided);
}

}  // namespace

Tensor stft(const Tensor& self,
            int64_t n_fft,
            Length hop_length,
            Length win_length,
            const OptionalTensor& window,
            bool normalized,
            Choice onesided,
            Choice return_complex,
            Choice align_to_window) {
  Frames f(n_fft, hop_length, win_length);
  check_stft(self, f, window);
  warn_of_rectangle("stft", window);
  bool complex = is_complex(self.dtype()) ||
                 (window.has_value() && is_complex(window->dtype()));
  TAEDA_CHECK(return_complex.has_value() || complex,
              "stft requires the return_complex parameter be given for real "
              "inputs: True, or False for a last dim of real and imaginary "
              "parts");
  if (!return_complex.value_or(true)) {
    warn(
        "stft with return_complex=False is deprecated: view_as_real of the "
        "complex result gives the same");
  }
  TAEDA_CHECK(!complex || !onesided.value_or(false),
              "Cannot have onesided output if window or input is complex");
  Tensor x = self.dim() == 1 ? ops::unsqueeze(self, 0) : self;
  if (align_to_window.value_or(false)) {
    x = ops::constant_pad_nd(x, {f.left(), f.right()});
  }
  Tensor frames = ops::unfold(x, 1, n_fft, f.hop);
  Tensor w = centred(window, self, f);
  if (w.defined()) frames = ops::mul(frames, w);
  Tensor found = spectra(frames, normalized, onesided.value_or(!complex));
  found = squeezed(ops::transpose(found, 1, 2), self.dim() == 2);
  return return_complex.value_or(true) ? found : ops::view_as_real(found);
}

Tensor stft_center(const Tensor& self,
                   int64_t n_fft,
                   Length hop_length,
                   Length win_length,
                   const OptionalTensor& window,
                   bool center,
                   std::string_view pad_mode,
                   bool normalized,
                   Choice onesided,
                   Choice return_complex,
                   Choice align_to_window) {
  TAEDA_CHECK(!center || !align_to_window.has_value(),
              "stft align_to_window should only be set when center = false");
  Tensor x = self;
  if (center) {
    int64_t around = n_fft / 2;
    check_signals(self);
    Tensor rows = self.dim() == 1 ? ops::unsqueeze(self, 0) : self;
    rows = ops::pad(ops::unsqueeze(rows, 0), {around, around}, pad_mode);
    x = squeezed(ops::squeeze(rows, 0), self.dim() == 2);
  }
  return stft(x,
              n_fft,
              hop_length,
              win_length,
              window,
              normalized,
              onesided,
              return_complex,
              align_to_window);
}

namespace {

void check_istft(const Tensor& self,
                 const Frames& f,
                 const OptionalTensor& window,
                 bool onesided) {
  TAEDA_CHECK(f.hop > 0 && f.hop <= f.width,
              "istft: expected 0 < hop_length <= win_length, but got "
              "hop_length=",
              f.hop,
              " and win_length=",
              f.width);
  check_width("istft", f);
  int64_t bins = self.size(-2), wanted = onesided ? f.n_fft / 2 + 1 : f.n_fft;
  TAEDA_CHECK(bins == wanted,
              "istft: expected the frequency dimension (2nd to the last) of "
              "the input tensor to match ",
              onesided ? "n_fft / 2 + 1 when onesided=True"
                       : "n_fft when onesided=False",
              ", but got ",
              bins,
              " for n_fft=",
              f.n_fft);
  TAEDA_CHECK(
      !window.has_value() || (window->dim() == 1 && window->size(0) == f.width),
      "istft: Invalid window shape. window has to be 1D and length of "
      "`win_length`, got ",
      window.has_value() ? window->sizes() : IntArrayRef(),
      " and win_length=",
      f.width);
}

// Signals of all windows: [B, windows, n_fft].
Tensor signals(const Tensor& spectra,
               const Frames& f,
               bool normalized,
               bool onesided,
               bool complex) {
  int64_t divisor = normalized ? kRoot : kCount;
  if (complex) return ops::_fft_c2c(spectra, {2}, divisor, false);
  Tensor half = onesided ? spectra : ops::slice(spectra, 2, 0, f.n_fft / 2 + 1);
  return ops::_fft_c2r(half, {2}, divisor, f.n_fft);
}

// How often, by the squared window, each sample lies in a window.
Tensor overlap(const Tensor& window,
               const Frames& f,
               const Tensor& like,
               int64_t count) {
  Tensor w =
      window.defined() ? ops::mul(window, window) : rectangle(f.n_fft, like);
  int64_t whole = f.n_fft + f.hop * (count - 1);
  Tensor rows = ops::expand(ops::unsqueeze(w, 0), {count, f.n_fft});
  return ops::unfold_backward(rows, {whole}, 0, f.n_fft, f.hop);
}

void check_overlap(const Tensor& weight) {
  TAEDA_CHECK(weight.size(0) > 0, "istft: no samples are left");
  bool known = !weight.is_meta() && wrapped_or_null(weight) == nullptr &&
               !meets_python(weight);
  if (!known) return;
  Tensor least = ops::min(ops::abs(weight));
  double value = ops::item(least).to_double();
  TAEDA_CHECK(value > kLeastOverlap,
              "istft: window overlap add min: ",
              value,
              ": some samples lie in no window, so nothing tells what they "
              "are");
}

}  // namespace

Tensor istft(const Tensor& self,
             int64_t n_fft,
             Length hop_length,
             Length win_length,
             const OptionalTensor& window,
             bool center,
             bool normalized,
             Choice onesided,
             Length length,
             bool return_complex) {
  TAEDA_CHECK(is_complex(self.dtype()),
              "istft requires a complex-valued input tensor matching the "
              "output from stft with return_complex=True, got ",
              self.dtype());
  TAEDA_CHECK(self.dim() == 2 || self.dim() == 3,
              "istft: expected a tensor with 2 or 3 dimensions, but got sizes ",
              self.sizes());
  TAEDA_CHECK(self.numel() > 0, "istft: input tensor cannot be empty.");
  warn_of_rectangle("istft", window);
  Frames f(n_fft, hop_length, win_length);
  bool half = onesided.value_or(self.size(-2) != n_fft);
  check_istft(self, f, window, half);
  TAEDA_CHECK(!return_complex || !half,
              "Cannot have onesided output if window or input is complex");
  TAEDA_CHECK(
      return_complex || !window.has_value() || !is_complex(window->dtype()),
      "Complex windows are incompatible with return_complex=False");

  Tensor rows = self.dim() == 2 ? ops::unsqueeze(self, 0) : self;
  rows = ops::transpose(rows, 1, 2);
  rows = signals(rows, f, normalized, half, return_complex);
  Tensor w = centred(window, self, f);
  if (w.defined()) rows = ops::mul(rows, w);
  int64_t whole = n_fft + f.hop * (rows.size(1) - 1);
  Tensor y = ops::unfold_backward(rows, {rows.size(0), whole}, 1, n_fft, f.hop);
  Tensor weight = overlap(w, f, self, rows.size(1));

  int64_t start = center ? n_fft / 2 : 0;
  int64_t end = length ? start + *length : whole - start;
  int64_t last = std::max(start, std::min(end, whole));
  weight = ops::slice(weight, 0, start, last);
  check_overlap(weight);
  y = ops::div(ops::slice(y, 1, start, last), weight);
  if (end > whole) {
    warn(str_cat("The length of signal is shorter than the length parameter: ",
                 end - whole,
                 " zeros stand at its end (istft)"));
    y = ops::constant_pad_nd(y, {0, end - whole});
  }
  return squeezed(y, self.dim() == 3);
}

}  // namespace taeda::native
