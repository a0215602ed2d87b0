// New tensors of random numbers, filled by the distributions in place.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/native/cpu/distribution_fill.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/random.h>
#include <taeda/gen/native/normal_.h>
#include <taeda/gen/native/rand.h>
#include <taeda/gen/native/rand_like.h>
#include <taeda/gen/native/randint.h>
#include <taeda/gen/native/randint_like.h>
#include <taeda/gen/native/randn.h>
#include <taeda/gen/native/randn_like.h>
#include <taeda/gen/native/random_.h>
#include <taeda/gen/native/randperm.h>
#include <taeda/gen/native/uniform_.h>

#include <cmath>

namespace taeda::native {

void rand_cpu(ArrayRef<int64_t>,
              const MaybeGenerator& generator,
              Dtype,
              MaybeLayout,
              MaybeDevice,
              MaybeBool,
              const Tensor& out) {
  uniform_(out, 0, 1, generator);
}
void rand_cpu(const Tensor&,
              const MaybeGenerator& generator,
              Dtype,
              MaybeLayout,
              MaybeDevice,
              MaybeBool,
              MaybeFormat,
              const Tensor& out) {
  uniform_(out, 0, 1, generator);
}
void rand_cpu(ArrayRef<int64_t>,
              const MaybeGenerator& generator,
              const Tensor& out) {
  uniform_(out, 0, 1, generator);
}
void rand_cpu(ArrayRef<int64_t>,
              Dtype,
              MaybeLayout,
              MaybeDevice,
              MaybeBool,
              const Tensor& out) {
  uniform_(out, 0, 1, std::nullopt);
}
void rand_cpu(const Tensor&,
              Dtype,
              MaybeLayout,
              MaybeDevice,
              MaybeBool,
              MaybeFormat,
              const Tensor& out) {
  uniform_(out, 0, 1, std::nullopt);
}
void rand_cpu(ArrayRef<int64_t>, const Tensor& out) {
  uniform_(out, 0, 1, std::nullopt);
}

void randn_cpu(ArrayRef<int64_t>,
               const MaybeGenerator& generator,
               Dtype,
               MaybeLayout,
               MaybeDevice,
               MaybeBool,
               const Tensor& out) {
  normal_(out, 0, 1, generator);
}
void randn_cpu(const Tensor&,
               const MaybeGenerator& generator,
               Dtype,
               MaybeLayout,
               MaybeDevice,
               MaybeBool,
               MaybeFormat,
               const Tensor& out) {
  normal_(out, 0, 1, generator);
}
void randn_cpu(ArrayRef<int64_t>,
               const MaybeGenerator& generator,
               const Tensor& out) {
  normal_(out, 0, 1, generator);
}
void randn_cpu(ArrayRef<int64_t>,
               Dtype,
               MaybeLayout,
               MaybeDevice,
               MaybeBool,
               const Tensor& out) {
  normal_(out, 0, 1, std::nullopt);
}
void randn_cpu(const Tensor&,
               Dtype,
               MaybeLayout,
               MaybeDevice,
               MaybeBool,
               MaybeFormat,
               const Tensor& out) {
  normal_(out, 0, 1, std::nullopt);
}
void randn_cpu(ArrayRef<int64_t>, const Tensor& out) {
  normal_(out, 0, 1, std::nullopt);
}

namespace {

void integers(const Tensor& out,
              int64_t low,
              int64_t high,
              const MaybeGenerator& generator) {
  random_(out, low, std::optional<int64_t>(high), generator);
}

int64_t bound_of(const Tensor& high) {
  int64_t bound = Scalar::load(high.dtype(), high.const_raw_data()).to_int();
  check_random_range<int64_t>(0, bound);
  return bound;
}

}  // namespace

void randint_cpu(int64_t low,
                 int64_t high,
                 ArrayRef<int64_t>,
                 const MaybeGenerator& generator,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 const Tensor& out) {
  integers(out, low, high, generator);
}
void randint_cpu(const Tensor&,
                 int64_t low,
                 int64_t high,
                 const MaybeGenerator& generator,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 MaybeFormat,
                 const Tensor& out) {
  integers(out, low, high, generator);
}
void randint_cpu(int64_t high,
                 ArrayRef<int64_t>,
                 const MaybeGenerator& generator,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 const Tensor& out) {
  integers(out, 0, high, generator);
}
void randint_cpu(const Tensor&,
                 int64_t high,
                 const MaybeGenerator& generator,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 MaybeFormat,
                 const Tensor& out) {
  integers(out, 0, high, generator);
}
void randint_cpu(const Tensor&,
                 const Tensor& high,
                 const MaybeGenerator& generator,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 MaybeFormat,
                 const Tensor& out) {
  integers(out, 0, bound_of(high), generator);
}
void randint_cpu(int64_t low,
                 int64_t high,
                 ArrayRef<int64_t>,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 const Tensor& out) {
  integers(out, low, high, std::nullopt);
}
void randint_cpu(const Tensor&,
                 int64_t low,
                 int64_t high,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 MaybeFormat,
                 const Tensor& out) {
  integers(out, low, high, std::nullopt);
}
void randint_cpu(int64_t high,
                 ArrayRef<int64_t>,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 const Tensor& out) {
  integers(out, 0, high, std::nullopt);
}
void randint_cpu(const Tensor&,
                 int64_t high,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 MaybeFormat,
                 const Tensor& out) {
  integers(out, 0, high, std::nullopt);
}
void randint_cpu(const Tensor&,
                 const Tensor& high,
                 Dtype,
                 MaybeLayout,
                 MaybeDevice,
                 MaybeBool,
                 MaybeFormat,
                 const Tensor& out) {
  integers(out, 0, bound_of(high), std::nullopt);
}

void randperm_cpu(int64_t n,
                  const MaybeGenerator& generator,
                  Dtype,
                  MaybeLayout,
                  MaybeDevice,
                  MaybeBool,
                  const Tensor& out) {
  ScalarType t = out.dtype();
  LockedGenerator locked(generator);
  visit_type(t, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t> ||
                  std::is_same_v<T, int16_t> || std::is_same_v<T, int32_t> ||
                  std::is_same_v<T, int64_t> || std::is_same_v<T, float> ||
                  std::is_same_v<T, double> || std::is_same_v<T, Half> ||
                  std::is_same_v<T, BFloat16>) {
      TAEDA_CHECK(n <= 1 || static_cast<double>(T(static_cast<float>(n - 1))) <
                                INFINITY,
                  "n is too large for result tensor type: '",
                  t,
                  "'");
      fill_permutation<T>(out.mutable_data<T>(), n, 1, *locked);
    } else {
      not_implemented_for("randperm", t);
    }
  });
}
void randperm_cpu(int64_t n,
                  Dtype dtype,
                  MaybeLayout layout,
                  MaybeDevice device,
                  MaybeBool pin,
                  const Tensor& out) {
  randperm_cpu(n, std::nullopt, dtype, layout, device, pin, out);
}

}  // namespace taeda::native
