// Factories of one value: shapes and options.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/core/strides.h>
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

#include <cstring>
#include <limits>

namespace taeda::native {

void check_layout(std::string_view op, MaybeLayout layout) {
  TAEDA_CHECK_AS(NotImplemented,
                 !layout || *layout == Layout::Strided,
                 op,
                 ": not implemented for sparse types, got layout ",
                 *layout);
}

Tensor new_like(std::string_view op,
                const Tensor& self,
                Dtype dtype,
                MaybeDevice device,
                MaybeFormat format) {
  ScalarType t = dtype.value_or(self.dtype());
  Device d = device.value_or(self.device());
  MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  if (f != MemoryFormat::Preserve) {
    return make_tensor_strided(
        op, self.sizes(), format_strides(self.sizes(), f), t, d);
  }
  if (self.is_contiguous()) return make_tensor(op, self.sizes(), t, d);
  if (self.is_non_overlapping_and_dense()) {
    return make_tensor_strided(op, self.sizes(), self.strides(), t, d);
  }
  return make_tensor_strided(op, self.sizes(), dense_strides(self), t, d);
}

DimVector dense_strides(const Tensor& self) {
  return strides::preserved(self.sizes(), self.strides());
}

ScalarType type_of_fill(const Scalar& value, Dtype dtype) {
  if (dtype) return *dtype;
  if (value.is_bool()) return kBool;
  if (value.is_integral()) return kLong;
  if (!value.is_complex()) return default_dtype();
  // Of a 16-bit default, too, which complex32 seldom has operators for.
  return default_dtype() == kDouble ? kComplexDouble : kComplexFloat;
}

// Shapes that many factories have ---------------------------------------------

template <class I>
void sized_shape(ArrayRef<I> size,
                 Dtype dtype,
                 MaybeLayout layout,
                 MaybeDevice,
                 MaybeBool,
                 Plan<I>& plan) {
  plan_size(plan, size, dtype.value_or(default_dtype()), layout);
}
TAEDA_SHAPE(sized_shape);

template <class I>
void like_shape(const Spec<I>& self,
                Dtype dtype,
                MaybeLayout layout,
                MaybeDevice,
                MaybeBool,
                MaybeFormat format,
                Plan<I>& plan) {
  plan_like(plan, self, dtype, layout, format);
}
TAEDA_SHAPE(like_shape);

template <class I>
void new_shape(const Spec<I>& self,
               ArrayRef<I> size,
               Dtype dtype,
               MaybeLayout layout,
               MaybeDevice,
               MaybeBool,
               Plan<I>& plan) {
  plan_size(plan, size, dtype.value_or(self.dtype()), layout);
}
TAEDA_SHAPE(new_shape);

// Without values -------------------------------------------------------------

void unset(const Tensor& t) {
  if (!settings::fill_uninitialized.load(std::memory_order_relaxed)) return;
  if (t.is_meta() || t.numel() == 0) return;
  ScalarType type = t.dtype();
  if (!is_integral(type, /*include_bool=*/true)) {
    fill_with(t, std::numeric_limits<double>::quiet_NaN());
  } else if (is_signed(type)) {
    size_t spare = 64 - 8 * element_size(type);
    fill_with(t, std::numeric_limits<int64_t>::max() >> spare);
  } else if (type == kBool) {
    fill_with(t, int64_t{1});
  } else {
    fill_with(t, int64_t{-1});
  }
}

template <class I>
void empty_shape(ArrayRef<I> size,
                 Dtype dtype,
                 MaybeLayout layout,
                 MaybeDevice,
                 MaybeBool,
                 MaybeFormat memory_format,
                 Plan<I>& plan) {
  MemoryFormat format = memory_format.value_or(MemoryFormat::Contiguous);
  TAEDA_CHECK(format != MemoryFormat::Preserve,
              "empty: preserve_format needs a tensor to take the order of; use "
              "empty_like");
  check_layout(plan.op(), layout);
  plan.set(0, size, format, dtype.value_or(default_dtype()));
  plan.leave_unset();
}
TAEDA_SHAPE(empty_shape);

namespace {

template <class I>
void plan_strided(Plan<I>& plan,
                  ArrayRef<I> size,
                  ArrayRef<I> stride,
                  ScalarType dtype,
                  MaybeLayout layout) {
  check_layout(plan.op(), layout);
  TAEDA_CHECK(size.size() == stride.size(),
              "empty_strided: mismatch in length of strides and shape, got ",
              stride,
              " and ",
              size);
  plan.set(0, size, stride, dtype);
}

}  // namespace

template <class I>
void empty_strided_shape(ArrayRef<I> size,
                         ArrayRef<I> stride,
                         Dtype dtype,
                         MaybeLayout layout,
                         MaybeDevice,
                         MaybeBool,
                         Plan<I>& plan) {
  plan_strided(plan, size, stride, dtype.value_or(default_dtype()), layout);
}
TAEDA_SHAPE(empty_strided_shape);

template <class I>
void new_empty_strided_shape(const Spec<I>& self,
                             ArrayRef<I> size,
                             ArrayRef<I> stride,
                             Dtype dtype,
                             MaybeLayout layout,
                             MaybeDevice,
                             MaybeBool,
                             Plan<I>& plan) {
  plan_strided(plan, size, stride, dtype.value_or(self.dtype()), layout);
}
TAEDA_SHAPE(new_empty_strided_shape);

template <class I>
void empty_permuted_shape(ArrayRef<I> size,
                          ArrayRef<int64_t> physical_layout,
                          Dtype dtype,
                          MaybeLayout layout,
                          MaybeDevice,
                          MaybeBool,
                          Plan<I>& plan) {
  TAEDA_CHECK(physical_layout.size() == size.size(),
              "Number of dimensions in size does not match the length of the "
              "physical_layout; i.e. len(size) = ",
              size.size(),
              " is not equal to len(physical_layout) = ",
              physical_layout.size());
  int64_t rank = static_cast<int64_t>(size.size());
  SmallVector<bool, 8> seen(size.size(), false);
  Dims<I> strides(size.size());
  I running = 1;
  for (int64_t i = rank; i-- > 0;) {
    int64_t d = physical_layout[i];
    TAEDA_CHECK(d >= 0 && d < rank,
                "Dimension out of range (expected to be between 0 and ",
                rank - 1,
                ", but got ",
                d,
                " at index ",
                i,
                "). NB: negative dims not currently supported; file an issue "
                "if you want it.");
    TAEDA_CHECK(!seen[d], "Duplicate dim not allowed");
    seen[d] = true;
    strides[d] = running;
    running *= sym_max(size[d], I(1));
  }
  plan_strided<I>(plan, size, strides, dtype.value_or(default_dtype()), layout);
}
TAEDA_SHAPE(empty_permuted_shape);

template <class I>
void full_shape(ArrayRef<I> size,
                const Scalar& fill_value,
                Dtype dtype,
                MaybeLayout layout,
                MaybeDevice,
                MaybeBool,
                Plan<I>& plan) {
  plan_size(plan, size, type_of_fill(fill_value, dtype), layout);
}
TAEDA_SHAPE(full_shape);

template <class I>
void full_like_shape(const Spec<I>& self,
                     const Scalar&,
                     Dtype dtype,
                     MaybeLayout layout,
                     MaybeDevice,
                     MaybeBool,
                     MaybeFormat format,
                     Plan<I>& plan) {
  plan_like(plan, self, dtype, layout, format);
}
TAEDA_SHAPE(full_like_shape);

template <class I>
void new_full_shape(const Spec<I>& self,
                    ArrayRef<I> size,
                    const Scalar&,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice,
                    MaybeBool,
                    Plan<I>& plan) {
  plan_size(plan, size, dtype.value_or(self.dtype()), layout);
}
TAEDA_SHAPE(new_full_shape);

template <class I>
void scalar_tensor_shape(const Scalar&,
                         Dtype dtype,
                         MaybeLayout layout,
                         MaybeDevice,
                         MaybeBool,
                         Plan<I>& plan) {
  plan_size(plan, ArrayRef<I>(), dtype.value_or(default_dtype()), layout);
}
TAEDA_SHAPE(scalar_tensor_shape);

template <class I>
void eye_m_shape(I n,
                 I m,
                 Dtype dtype,
                 MaybeLayout layout,
                 MaybeDevice,
                 MaybeBool,
                 Plan<I>& plan) {
  TAEDA_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TAEDA_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  plan_size<I>(plan, {n, m}, dtype.value_or(default_dtype()), layout);
}
TAEDA_SHAPE(eye_m_shape);

template <class I>
void eye_shape(I n,
               Dtype dtype,
               MaybeLayout layout,
               MaybeDevice device,
               MaybeBool pin,
               Plan<I>& plan) {
  eye_m_shape<I>(n, n, dtype, layout, device, pin, plan);
}
TAEDA_SHAPE(eye_shape);

}  // namespace taeda::native
