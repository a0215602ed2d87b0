// Factories.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/creation.h>
#include <taeda/gen/native/zeros.h>
#include <taeda/gen/native/zeros_like.h>

#include <algorithm>
#include <cstring>

namespace taeda::native {

void check_layout(std::string_view op, std::optional<Layout> layout) {
  TAEDA_CHECK_AS(NotImplemented,
                 !layout || *layout == Layout::Strided,
                 op,
                 ": layout ",
                 *layout,
                 " is not supported yet");
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
  // Innermost first: by stride, ties keep the logical order.
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    int64_t x = self.strides()[a], y = self.strides()[b];
    if (x == 0 || y == 0) return false;
    return x < y;
  });
  DimVector strides(static_cast<size_t>(rank));
  int64_t running = 1;
  for (int64_t d : order) {
    strides[d] = running;
    running *= std::max<int64_t>(self.sizes()[d], 1);
  }
  return strides;
}

void zero_fill(const Tensor& t) {
  if (!t.is_cpu() || t.numel() == 0) return;
  if (t.is_non_overlapping_and_dense() && t.nbytes() < (size_t{1} << 20)) {
    std::memset(t.mutable_raw_data(), 0, t.nbytes());
    return;
  }
  fill_with(t, int64_t{0});
}

Tensor zeros(ArrayRef<int64_t> size,
             std::optional<ScalarType> dtype,
             std::optional<Layout> layout,
             std::optional<Device> device,
             std::optional<bool>) {
  check_layout("zeros", layout);
  Tensor out = make_tensor("zeros",
                           size,
                           dtype.value_or(default_dtype()),
                           device.value_or(default_device()));
  zero_fill(out);
  return out;
}

Tensor zeros_like(const Tensor& self,
                  std::optional<ScalarType> dtype,
                  std::optional<Layout> layout,
                  std::optional<Device> device,
                  std::optional<bool>,
                  std::optional<MemoryFormat> memory_format) {
  check_layout("zeros_like", layout);
  Tensor out = new_like("zeros_like", self, dtype, device, memory_format);
  zero_fill(out);
  return out;
}

}  // namespace taeda::native
