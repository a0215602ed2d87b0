// Norms of lists of tensors, and what GradScaler does, on the device.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/rows.h>
#include <taeda/aten/native/cuda/tables.h>
#include <taeda/gen/ops/abs.h>

#include <cmath>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

constexpr unsigned kThreads = 256;

// The numbers of NormKind in lists.cuh.
int norm_kind(double order) {
  if (order == 0) return 4;
  if (order == 1) return 1;
  if (order == 2) return 0;
  return std::isinf(order) ? 3 : 2;
}

std::vector<Tensor> foreach_norm(TensorList self,
                                 const Scalar& ord,
                                 std::optional<ScalarType> dtype) {
  constexpr const char* kName = "_foreach_norm";
  TAEDA_CHECK(!self.empty(), "Tensor list must have at least one tensor.");
  double order = ord.to_double();
  TAEDA_CHECK_AS(NotImplemented,
                 !(std::isinf(order) && order < 0),
                 kName,
                 ": order -inf is not implemented");
  Device device = self[0].device();
  DeviceGuard guard(device.index);
  std::vector<Tensor> dense, out;
  for (const Tensor& each : self) {
    Tensor t = each.is_complex() ? ops::abs(each) : each;
    TAEDA_CHECK(is_floating(t.dtype()),
                kName,
                ": expected floating-point or complex tensors, got ",
                t.dtype());
    bool plain = t.is_non_overlapping_and_dense();
    dense.push_back(plain ? t : in_rows(t));
    out.push_back(make_tensor(kName, {}, dtype.value_or(t.dtype()), device));
  }
  // A launch has tensors of one dtype.
  for (size_t from = 0; from < dense.size();) {
    size_t to = from;
    ScalarType t = dense[from].dtype(), written = out[from].dtype();
    std::vector<TableRow> rows;
    for (; to < dense.size() && dense[to].dtype() == t; ++to) {
      rows.push_back(
          {dense[to].numel(), {const_cast<void*>(dense[to].const_raw_data())}});
    }
    ScalarType wide = written == kDouble ? kDouble : accumulated_in(t);
    for_tables(
        rows, [&](const TensorTable& table, size_t first, unsigned chunks) {
          ListCall call{};
          call.table = table;
          call.order = order;
          Tensor parts =
              make_tensor(kName, {static_cast<int64_t>(chunks)}, wide, device);
          call.parts = parts.mutable_raw_data();
          for (int i = 0; i < table.tensors; ++i) {
            call.out[i] =
                out[from + first + static_cast<size_t>(i)].mutable_raw_data();
          }
          int kind = norm_kind(order);
          TemplateArgument sums[] = {t, wide, kind};
          if (chunks > 0) {
            run_blocks({kName, "lists", "norm_parts", "ListCall"},
                       sums,
                       Grid{chunks, 1, kThreads},
                       &call);
          }
          TemplateArgument totals[] = {written, wide, kind};
          run_blocks({kName, "lists", "norm_totals", "ListCall"},
                     totals,
                     Grid{static_cast<unsigned>(table.tensors), 1, kThreads},
                     &call);
        });
    from = to;
  }
  return out;
}

void check_one(const Tensor& t, ScalarType dtype, std::string_view name) {
  TAEDA_CHECK(
      t.numel() == 1, name, " must be a 1-element tensor, got ", t.sizes());
  std::string_view kind = dtype == kInt ? "an int" : "a float";
  TAEDA_CHECK(
      t.dtype() == dtype, name, " must be ", kind, " tensor, got ", t.dtype());
}

void unscale(TensorList self,
             const Tensor& found_inf,
             const Tensor& inv_scale) {
  constexpr const char* kName = "_amp_foreach_non_finite_check_and_unscale_";
  check_one(found_inf, kFloat, "found_inf");
  check_one(inv_scale, kFloat, "inv_scale");
  found_inf.impl()->bump_version();
  DeviceGuard guard(found_inf.device().index);
  for (size_t from = 0; from < self.size();) {
    ScalarType t = self[from].dtype();
    if (!is_floating(t)) not_implemented_for(kName, t);
    std::vector<TableRow> rows;
    std::vector<std::pair<Tensor, Tensor>> copies;
    size_t to = from;
    for (; to < self.size() && self[to].dtype() == t; ++to) {
      Tensor grad = self[to];
      if (!grad.is_non_overlapping_and_dense()) {
        grad = in_rows(grad);
        copies.emplace_back(self[to], grad);
      }
      self[to].impl()->bump_version();
      rows.push_back(
          {grad.numel(), {const_cast<void*>(grad.const_raw_data())}});
    }
    for_tables(rows, [&](const TensorTable& table, size_t, unsigned chunks) {
      if (chunks == 0) return;
      ListCall call{};
      call.table = table;
      call.found_inf = static_cast<float*>(found_inf.mutable_raw_data());
      call.factor = static_cast<const float*>(inv_scale.const_raw_data());
      TemplateArgument arguments[] = {t};
      run_blocks({kName, "lists", "unscale_list", "ListCall"},
                 arguments,
                 Grid{chunks, 1, kThreads},
                 &call);
    });
    for (const auto& [target, copy] : copies) copy_into(target, copy);
    from = to;
  }
}

// One thread: the host does not wait for what the gradients were.
void update_scale(const Tensor& self,
                  const Tensor& growth_tracker,
                  const Tensor& found_inf,
                  double growth,
                  double backoff,
                  int64_t interval) {
  check_one(self, kFloat, "current_scale");
  check_one(growth_tracker, kInt, "growth_tracker");
  check_one(found_inf, kFloat, "found_inf");
  ScaleCall call{static_cast<float*>(self.mutable_raw_data()),
                 static_cast<int*>(growth_tracker.mutable_raw_data()),
                 static_cast<const float*>(found_inf.const_raw_data()),
                 growth,
                 backoff,
                 interval};
  DeviceGuard guard(self.device().index);
  TemplateArgument arguments[] = {1};
  run_blocks({"_amp_update_scale_", "lists", "update_scale", "ScaleCall"},
             arguments,
             Grid{1, 1, 32},
             &call);
  self.impl()->bump_version();
  growth_tracker.impl()->bump_version();
}

}  // namespace

Definitions list_definitions() {
  static const Definition all[] = {
      defined_as("_foreach_norm.Scalar", foreach_norm),
      defined_as("_amp_foreach_non_finite_check_and_unscale_", unscale),
      defined_as("_amp_update_scale_", update_scale),
  };
  return all;
}

}  // namespace taeda::cuda
