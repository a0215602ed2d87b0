// Interpolation.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Scale = std::optional<double>;

std::vector<double> listed(std::initializer_list<Scale> scales) {
  std::vector<double> all;
  for (const Scale& s : scales) all.push_back(s ? *s : 0);
  return all;
}

Tensor enlarged(const char* body,
                const Tensor& self,
                IntArrayRef size,
                bool corners,
                const std::vector<double>& scales) {
  DimVector sizes(self.sizes().begin(), self.sizes().begin() + 2);
  for (int64_t s : size) sizes.push_back(s);
  Tensor out = make_tensor("upsample", sizes, self.dtype(), self.device());
  DeviceCall("upsample", "transforms", body)
      .number("corners", corners ? 1 : 0)
      .list("scales", scales)
      .tensor("self", self)
      .tensor("result", out)
      .run(out.numel());
  return out;
}

Tensor shrunk(const char* body,
              const Tensor& grad,
              IntArrayRef size,
              bool flag,
              const std::vector<double>& scales) {
  Tensor out = make_tensor("upsample", size, grad.dtype(), grad.device());
  fill_with(out, 0);
  DeviceCall("upsample", "transforms", body)
      .number("corners", flag ? 1 : 0)
      .number("exact", flag ? 1 : 0)
      .list("scales", scales)
      .tensor("grad", grad)
      .tensor("result", out)
      .run(grad.numel());
  return out;
}

Tensor linear1d(const Tensor& self, IntArrayRef size, bool corners, Scale s) {
  return enlarged("upsample_at<1, 2>(g, i);", self, size, corners, listed({s}));
}
Tensor bilinear2d(
    const Tensor& self, IntArrayRef size, bool corners, Scale h, Scale w) {
  return enlarged(
      "upsample_at<2, 2>(g, i);", self, size, corners, listed({h, w}));
}
Tensor bicubic2d(
    const Tensor& self, IntArrayRef size, bool corners, Scale h, Scale w) {
  return enlarged(
      "upsample_at<2, 4>(g, i);", self, size, corners, listed({h, w}));
}
Tensor trilinear3d(const Tensor& self,
                   IntArrayRef size,
                   bool corners,
                   Scale d,
                   Scale h,
                   Scale w) {
  return enlarged(
      "upsample_at<3, 2>(g, i);", self, size, corners, listed({d, h, w}));
}

Tensor linear1d_back(
    const Tensor& grad, IntArrayRef, IntArrayRef size, bool corners, Scale s) {
  return shrunk(
      "upsample_back_at<1, 2>(g, i);", grad, size, corners, listed({s}));
}
Tensor bilinear2d_back(const Tensor& grad,
                       IntArrayRef,
                       IntArrayRef size,
                       bool corners,
                       Scale h,
                       Scale w) {
  return shrunk(
      "upsample_back_at<2, 2>(g, i);", grad, size, corners, listed({h, w}));
}
Tensor bicubic2d_back(const Tensor& grad,
                      IntArrayRef,
                      IntArrayRef size,
                      bool corners,
                      Scale h,
                      Scale w) {
  return shrunk(
      "upsample_back_at<2, 4>(g, i);", grad, size, corners, listed({h, w}));
}
Tensor trilinear3d_back(const Tensor& grad,
                        IntArrayRef,
                        IntArrayRef size,
                        bool corners,
                        Scale d,
                        Scale h,
                        Scale w) {
  return shrunk(
      "upsample_back_at<3, 2>(g, i);", grad, size, corners, listed({d, h, w}));
}

template <bool kExact>
Tensor nearest1d_back(const Tensor& grad,
                      IntArrayRef,
                      IntArrayRef size,
                      Scale s) {
  return shrunk("nearest_back_at<1>(g, i);", grad, size, kExact, listed({s}));
}
template <bool kExact>
Tensor nearest2d_back(
    const Tensor& grad, IntArrayRef, IntArrayRef size, Scale h, Scale w) {
  return shrunk(
      "nearest_back_at<2>(g, i);", grad, size, kExact, listed({h, w}));
}
template <bool kExact>
Tensor nearest3d_back(const Tensor& grad,
                      IntArrayRef,
                      IntArrayRef size,
                      Scale d,
                      Scale h,
                      Scale w) {
  return shrunk(
      "nearest_back_at<3>(g, i);", grad, size, kExact, listed({d, h, w}));
}

}  // namespace

Definitions transform_definitions() {
  static const Definition all[] = {
      defined_as("upsample_linear1d", linear1d),
      defined_as("upsample_bilinear2d", bilinear2d),
      defined_as("upsample_bicubic2d", bicubic2d),
      defined_as("upsample_trilinear3d", trilinear3d),
      defined_as("upsample_linear1d_backward", linear1d_back),
      defined_as("upsample_bilinear2d_backward", bilinear2d_back),
      defined_as("upsample_bicubic2d_backward", bicubic2d_back),
      defined_as("upsample_trilinear3d_backward", trilinear3d_back),
      defined_as("upsample_nearest1d_backward", nearest1d_back<false>),
      defined_as("upsample_nearest2d_backward", nearest2d_back<false>),
      defined_as("upsample_nearest3d_backward", nearest3d_back<false>),
      defined_as("_upsample_nearest_exact1d_backward", nearest1d_back<true>),
      defined_as("_upsample_nearest_exact2d_backward", nearest2d_back<true>),
      defined_as("_upsample_nearest_exact3d_backward", nearest3d_back<true>),
  };
  return all;
}

}  // namespace taeda::cuda
