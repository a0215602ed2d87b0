// Planes resized dim by dim: shapes, and what each filter is asked for.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/upsample.h>
#include <taeda/aten/native/upsample_taps.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_upsample_bicubic2d_aa.h>
#include <taeda/gen/native/_upsample_bicubic2d_aa_backward.h>
#include <taeda/gen/native/_upsample_bilinear2d_aa.h>
#include <taeda/gen/native/_upsample_bilinear2d_aa_backward.h>
#include <taeda/gen/native/_upsample_lanczos2d_aa.h>
#include <taeda/gen/native/_upsample_lanczos2d_aa_backward.h>
#include <taeda/gen/native/_upsample_nearest_exact1d.h>
#include <taeda/gen/native/_upsample_nearest_exact1d_backward.h>
#include <taeda/gen/native/_upsample_nearest_exact2d.h>
#include <taeda/gen/native/_upsample_nearest_exact2d_backward.h>
#include <taeda/gen/native/_upsample_nearest_exact3d.h>
#include <taeda/gen/native/_upsample_nearest_exact3d_backward.h>
#include <taeda/gen/native/upsample_bicubic2d.h>
#include <taeda/gen/native/upsample_bicubic2d_backward.h>
#include <taeda/gen/native/upsample_bilinear2d.h>
#include <taeda/gen/native/upsample_bilinear2d_backward.h>
#include <taeda/gen/native/upsample_linear1d.h>
#include <taeda/gen/native/upsample_linear1d_backward.h>
#include <taeda/gen/native/upsample_nearest1d.h>
#include <taeda/gen/native/upsample_nearest1d_backward.h>
#include <taeda/gen/native/upsample_nearest2d.h>
#include <taeda/gen/native/upsample_nearest2d_backward.h>
#include <taeda/gen/native/upsample_nearest3d.h>
#include <taeda/gen/native/upsample_nearest3d_backward.h>
#include <taeda/gen/native/upsample_trilinear3d.h>
#include <taeda/gen/native/upsample_trilinear3d_backward.h>

namespace taeda::native {

namespace {

bool is_antialias(Filter f) { return f >= Filter::LinearAntialias; }

void check_resize_type(const Request& r, ScalarType t, bool gradient) {
  bool planes = r.filter != Filter::Linear || r.factors.size() == 2;
  bool fits = t == kFloat || t == kDouble;
  if (!is_antialias(r.filter)) fits = fits || t == kHalf || t == kBFloat16;
  if (!gradient && planes) fits = fits || t == kByte;
  if (!fits) not_implemented_for("compute_indices_weights", t);
}

template <class I>
void check_sizes(const Request& r, ArrayRef<I> in, ArrayRef<I> out) {
  size_t dims = r.factors.size();
  TAEDA_CHECK(out.size() == dims,
              "It is expected output_size equals to ",
              dims,
              ", but got size ",
              out.size());
  TAEDA_CHECK(in.size() == dims + 2,
              "It is expected input_size equals to ",
              dims + 2,
              ", but got size ",
              in.size());
  for (size_t d = 0; d < dims; ++d) {
    TAEDA_CHECK(in[d + 2] > 0 && out[d] > 0,
                "Input and output sizes should be greater than 0, but got "
                "input ",
                in.slice(2),
                " and output ",
                out);
  }
}

template <class I>
Dims<I> with_planes(ArrayRef<I> input, ArrayRef<I> planes) {
  Dims<I> sizes{input[0], input[1]};
  for (const I& s : planes) sizes.push_back(s);
  return sizes;
}

template <class I>
void plan_resized(const Spec<I>& self,
                  ArrayRef<I> output_size,
                  const Request& r,
                  Plan<I>& plan) {
  check_sizes(r, self.sizes(), output_size);
  TAEDA_CHECK(self.sizes()[1] > 0 || self.sizes()[0] == 0,
              "Non-empty ",
              self.dim(),
              "D data tensor expected but got a tensor with sizes ",
              self.sizes());
  check_resize_type(r, self.dtype(), /*gradient=*/false);
  plan.set(
      0, with_planes(self.sizes(), output_size), format_of(self), self.dtype());
}

template <class I>
void plan_spread(const Spec<I>& grad_output,
                 ArrayRef<I> output_size,
                 ArrayRef<I> input_size,
                 const Request& r,
                 Plan<I>& plan) {
  check_sizes(r, input_size, output_size);
  Dims<I> full = with_planes(input_size, output_size);
  TAEDA_CHECK(grad_output.sizes() == ArrayRef<I>(full),
              "Expected grad_output to have the same shape as output; output "
              "has ",
              ArrayRef<I>(full),
              " but got grad_output of size ",
              grad_output.sizes());
  check_resize_type(r, grad_output.dtype(), /*gradient=*/true);
  plan.set(0, input_size, format_of(grad_output), grad_output.dtype());
}

}  // namespace

// An operator and its gradient.
#define TAEDA_UPSAMPLE(NAME, FILTER, HOW, NAMES)                \
  template <class I>                                            \
  void NAME##_shape(const Spec<I>& self,                        \
                    ArrayRef<I> output_size,                    \
                    TAEDA_PLAIN HOW,                            \
                    Plan<I>& plan) {                            \
    Request r = request(Filter::FILTER, TAEDA_PLAIN NAMES);     \
    plan_resized(self, output_size, r, plan);                   \
  }                                                             \
  TAEDA_SHAPE(NAME##_shape);                                    \
  template <class I>                                            \
  void NAME##_backward_shape(const Spec<I>& grad_output,        \
                             ArrayRef<I> output_size,           \
                             ArrayRef<I> input_size,            \
                             TAEDA_PLAIN HOW,                   \
                             Plan<I>& plan) {                   \
    Request r = request(Filter::FILTER, TAEDA_PLAIN NAMES);     \
    plan_spread(grad_output, output_size, input_size, r, plan); \
  }                                                             \
  TAEDA_SHAPE(NAME##_backward_shape);

TAEDA_UPSAMPLE_FILTERS(TAEDA_UPSAMPLE)
#undef TAEDA_UPSAMPLE

}  // namespace taeda::native
