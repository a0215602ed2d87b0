// Factories of one value.
#include <taeda/aten/native/creation.h>

#include <taeda/aten/iter/copy.h>
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
#include <cstring>
#include <limits>

namespace taeda::native {

using Dtype = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;
using MaybeFormat = std::optional<MemoryFormat>;

void check_layout(std::string_view op, std::optional<Layout> layout) {
  TAEDA_CHECK_AS(NotImplemented,
                 !layout || *layout == Layout::Strided,
                 op,
                 ": layout ",
                 *layout,
                 " is not supported yet");
}

Tensor new_tensor(std::string_view op,
                  IntArrayRef size,
                  Dtype dtype,
                  MaybeLayout layout,
                  MaybeDevice device) {
  check_layout(op, layout);
  return make_tensor(op,
                     size,
                     dtype.value_or(default_dtype()),
                     device.value_or(default_device()));
}

Tensor new_like(std::string_view op,
                const Tensor& self,
                std::optional<ScalarType> dtype,
                std::optional<Device> device,
                std::optional<MemoryFormat> format) {
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
  int64_t rank = self.dim();
  SmallVector<int64_t, 8> order;
  for (int64_t d = rank; d-- > 0;) order.push_back(d);
  // Innermost first: by stride, of equal ones the shorter dim. The comparison
  // is no order where strides are 0, so dims are inserted one by one.
  auto before = [&](int64_t a, int64_t b) {
    int64_t x = self.strides()[a], y = self.strides()[b];
    if (x == 0 || y == 0) return 0;
    if (x != y) return x < y ? 1 : -1;
    return self.sizes()[a] < self.sizes()[b] ? 1 : 0;
  };
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      int compared = before(order[at], order[j]);
      if (compared < 0) break;
      if (compared > 0) {
        std::swap(order[at], order[j]);
        at = j;
      }
    }
  }
  DimVector strides(static_cast<size_t>(rank));
  int64_t running = 1;
  for (int64_t d : order) {
    strides[d] = running;
    running *= std::max<int64_t>(self.sizes()[d], 1);
  }
  return strides;
}

void zero_fill(const Tensor& t) { fill_with(t, int64_t{0}); }

ScalarType type_of_fill(const Scalar& value, Dtype dtype) {
  if (dtype) return *dtype;
  if (value.is_bool()) return kBool;
  if (value.is_integral()) return kLong;
  return value.is_complex() ? complex_type_of(default_dtype())
                            : default_dtype();
}

// Without values -------------------------------------------------------------

Tensor unset(Tensor t) {
  if (!settings::fill_uninitialized.load(std::memory_order_relaxed)) return t;
  if (t.is_meta() || t.numel() == 0) return t;
  ScalarType type = t.dtype();
  if (!is_integral(type, /*include_bool=*/true)) {
    fill_with(t, std::numeric_limits<double>::quiet_NaN());
  } else if (is_signed(type)) {
    size_t spare = 64 - 8 * element_size(type);
    fill_with(t, std::numeric_limits<int64_t>::max() >> spare);
  } else if (type == kBool) {
    fill_with(t, int64_t{1});
  } else {
    std::memset(t.mutable_raw_data(), 0xff, t.nbytes());
  }
  return t;
}

Tensor empty(ArrayRef<int64_t> size,
             Dtype dtype,
             MaybeLayout layout,
             MaybeDevice device,
             MaybeBool,
             MaybeFormat memory_format) {
  MemoryFormat format = memory_format.value_or(MemoryFormat::Contiguous);
  TAEDA_CHECK(format != MemoryFormat::Preserve,
              "empty: preserve_format needs a tensor to take the order of; use "
              "empty_like");
  if (format == MemoryFormat::Contiguous) {
    return unset(new_tensor("empty", size, dtype, layout, device));
  }
  check_layout("empty", layout);
  return unset(make_tensor_strided("empty",
                                   size,
                                   format_strides(size, format),
                                   dtype.value_or(default_dtype()),
                                   device.value_or(default_device())));
}

Tensor empty_like(const Tensor& self,
                  Dtype dtype,
                  MaybeLayout layout,
                  MaybeDevice device,
                  MaybeBool,
                  MaybeFormat memory_format) {
  check_layout("empty_like", layout);
  return unset(new_like("empty_like", self, dtype, device, memory_format));
}

Tensor empty_strided(ArrayRef<int64_t> size,
                     ArrayRef<int64_t> stride,
                     Dtype dtype,
                     MaybeLayout layout,
                     MaybeDevice device,
                     MaybeBool) {
  check_layout("empty_strided", layout);
  TAEDA_CHECK(size.size() == stride.size(),
              "empty_strided: mismatch in length of strides and shape, got ",
              stride,
              " and ",
              size);
  return unset(make_tensor_strided("empty_strided",
                                   size,
                                   stride,
                                   dtype.value_or(default_dtype()),
                                   device.value_or(default_device())));
}

Tensor empty_permuted(ArrayRef<int64_t> size,
                      ArrayRef<int64_t> physical_layout,
                      Dtype dtype,
                      MaybeLayout layout,
                      MaybeDevice device,
                      MaybeBool pin) {
  TAEDA_CHECK(physical_layout.size() == size.size(),
              "Number of dimensions in size does not match the length of the "
              "physical_layout; i.e. len(size) = ",
              size.size(),
              " is not equal to len(physical_layout) = ",
              physical_layout.size());
  int64_t rank = static_cast<int64_t>(size.size());
  DimVector strides(size.size(), -1);
  int64_t running = 1;
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
    TAEDA_CHECK(strides[d] < 0, "Duplicate dim not allowed");
    strides[d] = running;
    running *= std::max<int64_t>(size[d], 1);
  }
  return empty_strided(size, strides, dtype, layout, device, pin);
}

Tensor new_empty(const Tensor& self,
                 ArrayRef<int64_t> size,
                 Dtype dtype,
                 MaybeLayout layout,
                 MaybeDevice device,
                 MaybeBool) {
  return unset(new_tensor("new_empty",
                          size,
                          dtype.value_or(self.dtype()),
                          layout,
                          device.value_or(self.device())));
}

Tensor new_empty_strided(const Tensor& self,
                         ArrayRef<int64_t> size,
                         ArrayRef<int64_t> stride,
                         Dtype dtype,
                         MaybeLayout layout,
                         MaybeDevice device,
                         MaybeBool pin) {
  return empty_strided(size,
                       stride,
                       dtype.value_or(self.dtype()),
                       layout,
                       device.value_or(self.device()),
                       pin);
}

// Filled ---------------------------------------------------------------------

Tensor zeros(ArrayRef<int64_t> size,
             Dtype dtype,
             MaybeLayout layout,
             MaybeDevice device,
             MaybeBool) {
  Tensor out = new_tensor("zeros", size, dtype, layout, device);
  zero_fill(out);
  return out;
}

Tensor ones(ArrayRef<int64_t> size,
            Dtype dtype,
            MaybeLayout layout,
            MaybeDevice device,
            MaybeBool) {
  Tensor out = new_tensor("ones", size, dtype, layout, device);
  fill_with(out, int64_t{1});
  return out;
}

Tensor full(ArrayRef<int64_t> size,
            const Scalar& fill_value,
            Dtype dtype,
            MaybeLayout layout,
            MaybeDevice device,
            MaybeBool) {
  ScalarType t = type_of_fill(fill_value, dtype);
  Tensor out = new_tensor("full", size, t, layout, device);
  fill_with(out, fill_value);
  return out;
}

Tensor scalar_tensor(const Scalar& s,
                     Dtype dtype,
                     MaybeLayout layout,
                     MaybeDevice device,
                     MaybeBool) {
  Tensor out = new_tensor("scalar_tensor", {}, dtype, layout, device);
  fill_with(out, s);
  return out;
}

Tensor zeros_like(const Tensor& self,
                  Dtype dtype,
                  MaybeLayout layout,
                  MaybeDevice device,
                  MaybeBool,
                  MaybeFormat memory_format) {
  check_layout("zeros_like", layout);
  Tensor out = new_like("zeros_like", self, dtype, device, memory_format);
  zero_fill(out);
  return out;
}

Tensor ones_like(const Tensor& self,
                 Dtype dtype,
                 MaybeLayout layout,
                 MaybeDevice device,
                 MaybeBool,
                 MaybeFormat memory_format) {
  check_layout("ones_like", layout);
  Tensor out = new_like("ones_like", self, dtype, device, memory_format);
  fill_with(out, int64_t{1});
  return out;
}

Tensor full_like(const Tensor& self,
                 const Scalar& fill_value,
                 Dtype dtype,
                 MaybeLayout layout,
                 MaybeDevice device,
                 MaybeBool,
                 MaybeFormat memory_format) {
  check_layout("full_like", layout);
  Tensor out = new_like("full_like", self, dtype, device, memory_format);
  fill_with(out, fill_value);
  return out;
}

Tensor new_zeros(const Tensor& self,
                 ArrayRef<int64_t> size,
                 Dtype dtype,
                 MaybeLayout layout,
                 MaybeDevice device,
                 MaybeBool pin) {
  Tensor out = new_empty(self, size, dtype, layout, device, pin);
  zero_fill(out);
  return out;
}

Tensor new_ones(const Tensor& self,
                ArrayRef<int64_t> size,
                Dtype dtype,
                MaybeLayout layout,
                MaybeDevice device,
                MaybeBool pin) {
  return new_full(self, size, int64_t{1}, dtype, layout, device, pin);
}

Tensor new_full(const Tensor& self,
                ArrayRef<int64_t> size,
                const Scalar& fill_value,
                Dtype dtype,
                MaybeLayout layout,
                MaybeDevice device,
                MaybeBool pin) {
  Tensor out = new_empty(self, size, dtype, layout, device, pin);
  fill_with(out, fill_value);
  return out;
}

Tensor eye(int64_t n,
           int64_t m,
           Dtype dtype,
           MaybeLayout layout,
           MaybeDevice device,
           MaybeBool) {
  TAEDA_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TAEDA_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  Tensor out = new_tensor("eye", {n, m}, dtype, layout, device);
  zero_fill(out);
  Tensor diagonal =
      make_view(out, {std::min(n, m)}, {m + 1}, out.storage_offset());
  fill_with(diagonal, int64_t{1});
  return out;
}
Tensor eye(int64_t n,
           Dtype dtype,
           MaybeLayout layout,
           MaybeDevice device,
           MaybeBool pin) {
  return eye(n, n, dtype, layout, device, pin);
}

}  // namespace taeda::native
