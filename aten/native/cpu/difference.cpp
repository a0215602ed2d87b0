// isin and frexp.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/difference.h>
#include <taeda/gen/native/frexp.h>
#include <taeda/gen/native/isin.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace taeda::native {

void isin_cpu(const Tensor& elements,
              const Tensor& test_elements,
              bool,
              bool invert,
              const Tensor& out) {
  ScalarType common = common_type<int64_t>(elements, test_elements);
  ScalarType type = is_integral(common, true) ? kLong : kDouble;
  Tensor a = contiguous_as(elements, type);
  Tensor b = contiguous_as(test_elements, type);
  bool* to = out.mutable_data<bool>();
  auto run = [&](auto tag) {
    using T = decltype(tag);
    const T* first = b.const_data<T>();
    std::vector<T> sorted;
    // NaN equals nothing, and would spoil the order.
    std::copy_if(first, first + b.numel(), std::back_inserter(sorted), [](T v) {
      return v == v;
    });
    std::sort(sorted.begin(), sorted.end());
    const T* x = a.const_data<T>();
    for (int64_t i = 0, n = a.numel(); i < n; ++i) {
      bool found = x[i] == x[i] &&
                   std::binary_search(sorted.begin(), sorted.end(), x[i]);
      to[i] = found != invert;
    }
  };
  type == kLong ? run(int64_t{}) : run(double{});
}

void frexp_cpu(const Tensor& self,
               const Tensor& mantissa,
               const Tensor& exponent) {
  Tensor plain = contiguous_as(self, kDouble);
  Tensor m = make_tensor("frexp", self.sizes(), kDouble);
  Tensor e = make_tensor("frexp", self.sizes(), kInt);
  const double* x = plain.const_data<double>();
  double* fractions = m.mutable_data<double>();
  int32_t* powers = e.mutable_data<int32_t>();
  for (int64_t i = 0, n = plain.numel(); i < n; ++i) {
    int power = 0;
    fractions[i] = std::frexp(x[i], &power);
    powers[i] = power;
  }
  copy_into(mantissa, m);
  copy_into(exponent, e);
}

}  // namespace taeda::native
