// Channels as the elements of finer planes, and back: shapes.
#include <taeda/gen/native/pixel_shuffle.h>
#include <taeda/gen/native/pixel_unshuffle.h>

#include <limits>

namespace taeda::native {

namespace {

template <class T>
void check_planes(const char* op, const T& self, const char* what, int64_t r) {
  TAEDA_CHECK(self.dim() >= 3,
              op,
              " expects input to have at least 3 dimensions, but got input "
              "with ",
              self.dim(),
              " dimension(s)");
  TAEDA_CHECK(r > 0, op, " expects a positive ", what, ", but got ", r);
}

template <class I>
void plan_planes(const Spec<I>& self, I c, I h, I w, Plan<I>& plan) {
  Dims<I> sizes(self.sizes());
  sizes[sizes.size() - 3] = c;
  sizes[sizes.size() - 2] = h;
  sizes[sizes.size() - 1] = w;
  MemoryFormat format =
      self.dim() == 4 ? self.suggest_memory_format() : MemoryFormat::Contiguous;
  plan.set(0, sizes, format, self.dtype());
}

}  // namespace

template <class I>
void pixel_shuffle_shape(const Spec<I>& self, int64_t r, Plan<I>& plan) {
  check_planes("pixel_shuffle", self, "upscale_factor", r);
  TAEDA_CHECK_AS(Value,
                 r <= std::numeric_limits<int64_t>::max() / r,
                 "pixel_shuffle: upscale factor is too large, its square "
                 "overflowed: upscale_factor=",
                 r);
  I c = self.size(-3);
  TAEDA_CHECK(c % (r * r) == 0,
              "pixel_shuffle expects its input's 'channel' dimension to be "
              "divisible by the square of upscale_factor, but "
              "input.size(-3)=",
              c,
              " is not divisible by ",
              r * r);
  plan_planes(self, c / (r * r), self.size(-2) * r, self.size(-1) * r, plan);
}
TAEDA_SHAPE(pixel_shuffle_shape);

template <class I>
void pixel_unshuffle_shape(const Spec<I>& self, int64_t r, Plan<I>& plan) {
  check_planes("pixel_unshuffle", self, "downscale_factor", r);
  I c = self.size(-3), h = self.size(-2), w = self.size(-1);
  TAEDA_CHECK(h % r == 0,
              "pixel_unshuffle expects height to be divisible by "
              "downscale_factor, but input.size(-2)=",
              h,
              " is not divisible by ",
              r);
  TAEDA_CHECK(w % r == 0,
              "pixel_unshuffle expects width to be divisible by "
              "downscale_factor, but input.size(-1)=",
              w,
              " is not divisible by ",
              r);
  plan_planes(self, c * r * r, h / r, w / r, plan);
}
TAEDA_SHAPE(pixel_unshuffle_shape);

}  // namespace taeda::native
