// New tensors of random numbers: shapes and options.
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/random.h>
#include <taeda/gen/native/rand.h>
#include <taeda/gen/native/rand_like.h>
#include <taeda/gen/native/randint.h>
#include <taeda/gen/native/randint_like.h>
#include <taeda/gen/native/randn.h>
#include <taeda/gen/native/randn_like.h>
#include <taeda/gen/native/randperm.h>

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

// How many whole numbers from 0 on a dtype can tell apart.
int64_t most_numbers(ScalarType dtype) {
  switch (dtype) {
    case kHalf:
      return (int64_t{1} << 11) + 1;
    case kBFloat16:
      return (int64_t{1} << 8) + 1;
    case kFloat:
      return (int64_t{1} << 24) + 1;
    case kByte:
      return 256;
    case kChar:
      return 128;
    case kShort:
      return 32768;
    case kInt:
      return int64_t{1} << 31;
    default:
      return std::numeric_limits<int64_t>::max();
  }
}

}  // namespace

template <class I>
void randperm_generator_shape(I n,
                              const MaybeGenerator&,
                              Dtype dtype,
                              MaybeLayout layout,
                              MaybeDevice,
                              MaybeBool,
                              Plan<I>& plan) {
  TAEDA_CHECK(n >= 0, "n must be non-negative, got ", n);
  int64_t most = most_numbers(dtype.value_or(kLong));
  TAEDA_CHECK(n <= most,
              "n cannot be greater than ",
              most,
              " for ",
              dtype.value_or(kLong),
              " type, got ",
              n);
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

}  // namespace taeda::native
