// im2col and col2im: shapes.
#include <taeda/aten/native/unfold.h>
#include <taeda/gen/native/col2im.h>
#include <taeda/gen/native/im2col.h>

namespace taeda::native {

template <class I>
void im2col_shape(const Spec<I>& self,
                  ArrayRef<int64_t> kernel_size,
                  ArrayRef<int64_t> dilation,
                  ArrayRef<int64_t> padding,
                  ArrayRef<int64_t> stride,
                  Plan<I>& plan) {
  int64_t rank = self.dim();
  bool fits = (rank == 3 || rank == 4) && self.sizes()[rank - 1] != 0 &&
              self.sizes()[rank - 2] != 0 && self.sizes()[rank - 3] != 0;
  TAEDA_CHECK_AS(Index,
                 rank > 2,
                 "im2col: Expected 3D or 4D (batch mode) tensor, got ",
                 self);
  TAEDA_CHECK(fits,
              "im2col: Expected 3D or 4D (batch mode) tensor with possibly 0 "
              "batch size and other non-zero dimensions for input, but got: ",
              self.sizes());
  auto w = make_windows<I>("im2col",
                           self.sizes().slice(rank - 2),
                           kernel_size,
                           dilation,
                           padding,
                           stride);
  Dims<I> sizes;
  if (rank == 4) sizes.push_back(self.sizes()[0]);
  sizes.push_back(self.sizes()[rank - 3] * w.kernel_size());
  sizes.push_back(w.columns());
  plan.set(0, sizes, self.dtype());
}
TAEDA_SHAPE(im2col_shape);

template <class I>
void col2im_shape(const Spec<I>& self,
                  ArrayRef<I> output_size,
                  ArrayRef<int64_t> kernel_size,
                  ArrayRef<int64_t> dilation,
                  ArrayRef<int64_t> padding,
                  ArrayRef<int64_t> stride,
                  Plan<I>& plan) {
  TAEDA_CHECK(output_size.size() == 2,
              "It is expected output_size equals to 2, but got size ",
              static_cast<int64_t>(output_size.size()));
  int64_t rank = self.dim();
  TAEDA_CHECK(rank == 2 || rank == 3,
              "Expected 2D or 3D (batch mode) tensor for input with possibly 0 "
              "batch size and non-zero dimensions for input, but got: ",
              self.sizes());
  auto w = make_windows<I>(
      "col2im", output_size, kernel_size, dilation, padding, stride);
  I rows = self.sizes()[rank - 2];
  TAEDA_CHECK(rows % w.kernel_size() == 0,
              "Expected size of input's dimension 1 to be divisible by the "
              "product of kernel_size, but got input.size(1)=",
              rows,
              " and kernel_size=",
              kernel_size,
              ".");
  TAEDA_CHECK(self.sizes()[rank - 1] == w.columns(),
              "Given output_size=",
              output_size,
              ", kernel_size=",
              kernel_size,
              ", expected size of input's dimension 2 to match the calculated "
              "number of sliding blocks ",
              w.columns(),
              ", but got input.size(2)=",
              self.sizes()[rank - 1],
              ".");
  Dims<I> sizes;
  if (rank == 3) sizes.push_back(self.sizes()[0]);
  sizes.push_back(rows / w.kernel_size());
  sizes.push_back(output_size[0]);
  sizes.push_back(output_size[1]);
  plan.set(0, sizes, self.dtype());
}
TAEDA_SHAPE(col2im_shape);

}  // namespace taeda::native
