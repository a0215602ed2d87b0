#include <taeda/aten/native/scaled_mm.h>

#include <taeda/gen/native/_scaled_mm.h>
#include <taeda/gen/native/_scaled_mm_v2.h>
#include <taeda/gen/ops/_scaled_mm.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/clamp.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/reshape.h>

#include <algorithm>

namespace taeda::native {

namespace {

constexpr std::string_view kName = "_scaled_mm";
constexpr double kMostE4m3 = 448;

bool are_scales_right(const ScaledProduct& p) {
  bool types = is_float8(p.self.dtype()) && is_float8(p.mat2.dtype()) &&
               p.scale_a.dtype() == kFloat && p.scale_b.dtype() == kFloat;
  if (!types) return false;
  if (!p.by_rows()) return true;
  return p.scale_a.dim() == 2 && p.scale_a.size(0) == p.self.size(0) &&
         p.scale_a.size(1) == 1 && p.scale_b.dim() == 2 &&
         p.scale_b.size(0) == 1 && p.scale_b.size(1) == p.mat2.size(1);
}

}  // namespace

void check_scaled_mm(const ScaledProduct& p) {
  TAEDA_CHECK(p.self.dim() == 2,
              kName,
              ": mat1 must be a matrix, got ",
              p.self.sizes());
  TAEDA_CHECK(p.mat2.dim() == 2,
              kName,
              ": mat2 must be a matrix, got ",
              p.mat2.sizes());
  TAEDA_CHECK(p.self.size(1) == p.mat2.size(0),
              kName,
              ": mat_a and mat_b shapes cannot be multiplied (",
              p.self.sizes(),
              " and ",
              p.mat2.sizes(),
              ")");
  TAEDA_CHECK_AS(Value,
                 are_scales_right(p),
                 kName,
                 ": Invalid scaling configuration. Expected matrices of float8 "
                 "and scales of float32, one number each or ",
                 "[",
                 p.self.size(0),
                 ", 1] and [1, ",
                 p.mat2.size(1),
                 "]",
                 "; got ",
                 p.self.dtype(),
                 " with ",
                 p.scale_a.dtype(),
                 p.scale_a.sizes(),
                 ", and ",
                 p.mat2.dtype(),
                 " with ",
                 p.scale_b.dtype(),
                 p.scale_b.sizes());
  if (p.bias && p.bias->defined()) {
    TAEDA_CHECK(p.bias->numel() == p.mat2.size(1),
                kName,
                ": Bias must be size ",
                p.mat2.size(1),
                " but got ",
                p.bias->numel());
  }
}

Tensor scale_sums(const ScaledProduct& p, const Tensor& sums) {
  // Scales of one number may have any number of dims of size 1.
  auto times = [](const Tensor& t, const Tensor& scale) {
    return scale.dim() <= 2 ? ops::mul(t, scale)
                            : ops::mul(t, ops::reshape(scale, {1}));
  };
  Tensor out = p.by_rows() ? times(times(sums, p.scale_a), p.scale_b)
                           : times(sums, ops::mul(p.scale_a, p.scale_b));
  if (p.bias && p.bias->defined()) {
    out = ops::add(out, ops::_to_copy(*p.bias, kFloat));
  }
  if (p.scales_result()) out = ops::div(out, *p.scale_result);
  ScalarType dtype = p.out_dtype();
  if (dtype == kFloat8_e4m3fn) {
    out = ops::clamp(out, Scalar(-kMostE4m3), Scalar(kMostE4m3));
  }
  return dtype == kFloat ? out : ops::_to_copy(out, dtype);
}

Tensor scaled_mm(const Tensor& self,
                 const Tensor& mat2,
                 const Tensor& scale_a,
                 const Tensor& scale_b,
                 const OptionalTensor& bias,
                 const OptionalTensor& scale_result,
                 std::optional<ScalarType> out_dtype,
                 bool) {
  ScaledProduct p{self, mat2, scale_a, scale_b, bias, scale_result, out_dtype};
  check_scaled_mm(p);
  return scale_sums(
      p, ops::mm(ops::_to_copy(self, kFloat), ops::_to_copy(mat2, kFloat)));
}

namespace {

// The one tensor of scales that recipes of one number or one vector have.
Tensor only_scale(std::string_view which,
                  TensorList scales,
                  ArrayRef<int64_t> recipe,
                  ArrayRef<int64_t> swizzle) {
  bool plain = std::all_of(
      swizzle.begin(), swizzle.end(), [](int64_t s) { return s == 0; });
  bool known = scales.size() == 1 && recipe.size() == 1 && recipe[0] >= 0 &&
               recipe[0] <= 1;
  TAEDA_CHECK_AS(NotImplemented,
                 known && plain,
                 "_scaled_mm_v2: expected one tensor ",
                 which,
                 " with recipe 0 or 1 and without swizzles, got ",
                 scales.size(),
                 " of recipe ",
                 recipe,
                 " with ",
                 swizzle);
  Tensor scale = scales[0];
  TAEDA_CHECK_AS(Value,
                 recipe[0] == 1 || scale.numel() == 1,
                 "_scaled_mm_v2: Invalid scaling configuration. Expected ",
                 which,
                 " of one number for recipe 0, got ",
                 scale.sizes());
  return scale;
}

}  // namespace

Tensor scaled_mm_v2(const Tensor& self,
                    const Tensor& mat2,
                    TensorList scale_a,
                    ArrayRef<int64_t> recipe_a,
                    ArrayRef<int64_t> swizzle_a,
                    TensorList scale_b,
                    ArrayRef<int64_t> recipe_b,
                    ArrayRef<int64_t> swizzle_b,
                    const OptionalTensor& bias,
                    std::optional<ScalarType> out_dtype,
                    ArrayRef<int64_t> contraction_dim,
                    bool use_fast_accum) {
  bool usual = contraction_dim.empty() ||
               (contraction_dim.size() == 2 && contraction_dim[0] == 1 &&
                contraction_dim[1] == 0);
  TAEDA_CHECK_AS(NotImplemented,
                 usual,
                 "_scaled_mm_v2: expected contraction_dim [1, 0], got ",
                 contraction_dim);
  return ops::_scaled_mm(self,
                         mat2,
                         only_scale("scale_a", scale_a, recipe_a, swizzle_a),
                         only_scale("scale_b", scale_b, recipe_b, swizzle_b),
                         bias,
                         std::nullopt,
                         out_dtype,
                         use_fast_accum);
}

}  // namespace taeda::native
