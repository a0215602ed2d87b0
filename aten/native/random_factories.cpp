// New tensors of random numbers.
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

// rand, randn ----------------------------------------------------------------

template <class I>
void sized_generator_shape(ArrayRef<I> size,
                           const MaybeGenerator&,
                           Dtype dtype,
                           MaybeLayout layout,
                           MaybeDevice,
                           MaybeBool,
                           Plan<I>& plan) {
  plan_size(plan, size, dtype.value_or(default_dtype()), layout);
}
TAEDA_SHAPE(sized_generator_shape);

template <class I>
void like_generator_shape(const Spec<I>& self,
                          const MaybeGenerator&,
                          Dtype dtype,
                          MaybeLayout layout,
                          MaybeDevice,
                          MaybeBool,
                          MaybeFormat format,
                          Plan<I>& plan) {
  plan_like(plan, self, dtype, layout, format);
}
TAEDA_SHAPE(like_generator_shape);

template <class I>
void sized_out_shape(ArrayRef<I> size, const Spec<I>& out, Plan<I>& plan) {
  plan_into(plan, size, out);
}
TAEDA_SHAPE(sized_out_shape);

template <class I>
void sized_generator_out_shape(ArrayRef<I> size,
                               const MaybeGenerator&,
                               const Spec<I>& out,
                               Plan<I>& plan) {
  plan_into(plan, size, out);
}
TAEDA_SHAPE(sized_generator_out_shape);

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

// Integers -------------------------------------------------------------------

template <class I>
void randint_shape(I high,
                   ArrayRef<I> size,
                   Dtype dtype,
                   MaybeLayout layout,
                   MaybeDevice,
                   MaybeBool,
                   Plan<I>& plan) {
  plan_size(plan, size, dtype.value_or(kLong), layout);
  check_random_range<I>(0, high);
}
TAEDA_SHAPE(randint_shape);

template <class I>
void randint_like_shape(const Spec<I>& self,
                        I high,
                        Dtype dtype,
                        MaybeLayout layout,
                        MaybeDevice,
                        MaybeBool,
                        MaybeFormat format,
                        Plan<I>& plan) {
  plan_like(plan, self, dtype, layout, format);
  check_random_range<I>(0, high);
}
TAEDA_SHAPE(randint_like_shape);

template <class I>
void randint_low_shape(I low,
                       I high,
                       ArrayRef<I> size,
                       Dtype dtype,
                       MaybeLayout layout,
                       MaybeDevice,
                       MaybeBool,
                       Plan<I>& plan) {
  plan_size(plan, size, dtype.value_or(kLong), layout);
  check_random_range<I>(low, high);
}
TAEDA_SHAPE(randint_low_shape);

template <class I>
void randint_like_low_shape(const Spec<I>& self,
                            I low,
                            I high,
                            Dtype dtype,
                            MaybeLayout layout,
                            MaybeDevice,
                            MaybeBool,
                            MaybeFormat format,
                            Plan<I>& plan) {
  plan_like(plan, self, dtype, layout, format);
  check_random_range<I>(low, high);
}
TAEDA_SHAPE(randint_like_low_shape);

template <class I>
void randint_like_tensor_shape(const Spec<I>& self,
                               const Spec<I>& high,
                               Dtype dtype,
                               MaybeLayout layout,
                               MaybeDevice,
                               MaybeBool,
                               MaybeFormat format,
                               Plan<I>& plan) {
  TAEDA_CHECK(high.dim() == 0 && high.device().is_cpu(),
              "randint: high must be a scalar tensor and on CPU, got ",
              high);
  plan_like(plan, self, dtype, layout, format);
}
TAEDA_SHAPE(randint_like_tensor_shape);

template <class I>
void randint_generator_shape(I high,
                             ArrayRef<I> size,
                             const MaybeGenerator&,
                             Dtype dtype,
                             MaybeLayout layout,
                             MaybeDevice,
                             MaybeBool,
                             Plan<I>& plan) {
  plan_size(plan, size, dtype.value_or(kLong), layout);
  check_random_range<I>(0, high);
}
TAEDA_SHAPE(randint_generator_shape);

template <class I>
void randint_like_generator_shape(const Spec<I>& self,
                                  I high,
                                  const MaybeGenerator&,
                                  Dtype dtype,
                                  MaybeLayout layout,
                                  MaybeDevice,
                                  MaybeBool,
                                  MaybeFormat format,
                                  Plan<I>& plan) {
  plan_like(plan, self, dtype, layout, format);
  check_random_range<I>(0, high);
}
TAEDA_SHAPE(randint_like_generator_shape);

template <class I>
void randint_low_generator_shape(I low,
                                 I high,
                                 ArrayRef<I> size,
                                 const MaybeGenerator&,
                                 Dtype dtype,
                                 MaybeLayout layout,
                                 MaybeDevice,
                                 MaybeBool,
                                 Plan<I>& plan) {
  plan_size(plan, size, dtype.value_or(kLong), layout);
  check_random_range<I>(low, high);
}
TAEDA_SHAPE(randint_low_generator_shape);

template <class I>
void randint_like_low_generator_shape(const Spec<I>& self,
                                      I low,
                                      I high,
                                      const MaybeGenerator&,
                                      Dtype dtype,
                                      MaybeLayout layout,
                                      MaybeDevice,
                                      MaybeBool,
                                      MaybeFormat format,
                                      Plan<I>& plan) {
  plan_like(plan, self, dtype, layout, format);
  check_random_range<I>(low, high);
}
TAEDA_SHAPE(randint_like_low_generator_shape);

template <class I>
void randint_like_tensor_generator_shape(const Spec<I>& self,
                                         const Spec<I>& high,
                                         const MaybeGenerator&,
                                         Dtype dtype,
                                         MaybeLayout layout,
                                         MaybeDevice,
                                         MaybeBool,
                                         MaybeFormat format,
                                         Plan<I>& plan) {
  TAEDA_CHECK(high.dim() == 0 && high.device().is_cpu(),
              "randint: high must be a scalar tensor and on CPU, got ",
              high);
  plan_like(plan, self, dtype, layout, format);
}
TAEDA_SHAPE(randint_like_tensor_generator_shape);

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

template <class I>
void randperm_generator_shape(I n,
                              const MaybeGenerator&,
                              Dtype dtype,
                              MaybeLayout layout,
                              MaybeDevice,
                              MaybeBool,
                              Plan<I>& plan) {
  TAEDA_CHECK(n >= 0, "n must be non-negative, got ", n);
  plan_size<I>(plan, {n}, dtype.value_or(kLong), layout);
}
TAEDA_SHAPE(randperm_generator_shape);

template <class I>
void randperm_shape(I n,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool pin,
                    Plan<I>& plan) {
  randperm_generator_shape<I>(
      n, std::nullopt, dtype, layout, device, pin, plan);
}
TAEDA_SHAPE(randperm_shape);

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
