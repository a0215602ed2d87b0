// Factories of one value: what they are filled with.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/settings.h>
#include <taeda/gen/native/empty.h>
#include <taeda/gen/native/empty_like.h>
#include <taeda/gen/native/empty_permuted.h>
#include <taeda/gen/native/empty_strided.h>
#include <taeda/gen/native/eye.h>
#include <taeda/gen/native/full.h>
#include <taeda/gen/native/full_like.h>
#include <taeda/gen/native/new_empty.h>
#include <taeda/gen/native/new_empty_strided.h>
#include <taeda/gen/native/new_full.h>
#include <taeda/gen/native/new_ones.h>
#include <taeda/gen/native/new_zeros.h>
#include <taeda/gen/native/ones.h>
#include <taeda/gen/native/ones_like.h>
#include <taeda/gen/native/scalar_tensor.h>
#include <taeda/gen/native/zeros.h>
#include <taeda/gen/native/zeros_like.h>

#include <algorithm>

namespace taeda::native {

void empty_values(ArrayRef<int64_t>,
                  Dtype,
                  MaybeLayout,
                  MaybeDevice,
                  MaybeBool,
                  MaybeFormat,
                  const Tensor& out) {
  unset(out);
}
void empty_values(const Tensor&,
                  Dtype,
                  MaybeLayout,
                  MaybeDevice,
                  MaybeBool,
                  MaybeFormat,
                  const Tensor& out) {
  unset(out);
}
void empty_values(const Tensor&,
                  ArrayRef<int64_t>,
                  Dtype,
                  MaybeLayout,
                  MaybeDevice,
                  MaybeBool,
                  const Tensor& out) {
  unset(out);
}
void empty_strided_values(ArrayRef<int64_t>,
                          ArrayRef<int64_t>,
                          Dtype,
                          MaybeLayout,
                          MaybeDevice,
                          MaybeBool,
                          const Tensor& out) {
  unset(out);
}
void empty_strided_values(const Tensor&,
                          ArrayRef<int64_t>,
                          ArrayRef<int64_t>,
                          Dtype,
                          MaybeLayout,
                          MaybeDevice,
                          MaybeBool,
                          const Tensor& out) {
  unset(out);
}

// Filled ---------------------------------------------------------------------

void zeros_values(ArrayRef<int64_t>,
                  Dtype,
                  MaybeLayout,
                  MaybeDevice,
                  MaybeBool,
                  const Tensor& out) {
  zero_fill(out);
}
void zeros_values(const Tensor&,
                  Dtype,
                  MaybeLayout,
                  MaybeDevice,
                  MaybeBool,
                  MaybeFormat,
                  const Tensor& out) {
  zero_fill(out);
}
void zeros_values(const Tensor&,
                  ArrayRef<int64_t>,
                  Dtype,
                  MaybeLayout,
                  MaybeDevice,
                  MaybeBool,
                  const Tensor& out) {
  zero_fill(out);
}

void ones_values(ArrayRef<int64_t>,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 const Tensor& out) {
  fill_with(out, int64_t{1});
}
void ones_values(const Tensor&,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 MaybeFormat,
                 const Tensor& out) {
  fill_with(out, int64_t{1});
}
void ones_values(const Tensor&,
                 ArrayRef<int64_t>,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 const Tensor& out) {
  fill_with(out, int64_t{1});
}

void full_values(ArrayRef<int64_t>,
                 const Scalar& value,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 const Tensor& out) {
  fill_with(out, value);
}
void full_values(const Tensor&,
                 const Scalar& value,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 MaybeFormat,
                 const Tensor& out) {
  fill_with(out, value);
}
void full_values(const Tensor&,
                 ArrayRef<int64_t>,
                 const Scalar& value,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 const Tensor& out) {
  fill_with(out, value);
}
void scalar_tensor_values(const Scalar& value,
                          Dtype,
                          MaybeLayout,
                          MaybeDevice,
                          MaybeBool,
                          const Tensor& out) {
  fill_with(out, value);
}

void eye_values(int64_t n,
                int64_t m,
                Dtype,
                MaybeLayout,
                MaybeDevice,
                MaybeBool,
                const Tensor& out) {
  zero_fill(out);
  Tensor diagonal =
      make_view(out, {std::min(n, m)}, {m + 1}, out.storage_offset());
  fill_with(diagonal, int64_t{1});
}
void eye_values(int64_t n,
                Dtype dtype,
                MaybeLayout layout,
                MaybeDevice device,
                MaybeBool pin,
                const Tensor& out) {
  eye_values(n, n, dtype, layout, device, pin, out);
}

}  // namespace taeda::native
