// Systems of equations: those that elimination solves.
#include <taeda/aten/native/cuda/factors.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/linalg/exponential.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/aten/native/linalg/report.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Pair = std::tuple<Tensor, Tensor>;

struct Solved {
  Tensor x;
  Tensor info;  // of each matrix, the first pivot that is 0, from 1 on
};

Solved solved(const Tensor& a, const Tensor& b) {
  constexpr const char* op = "linalg_solve";
  Tensor matrix = native::column_major(op, a), x = native::column_major(op, b);
  Tensor info = native::new_infos(op, a);
  if (matrix.numel() > 0) solve_by_elimination(op, matrix, x, info);
  return {x, info};
}

Tensor expanded(const Tensor& t, IntArrayRef lead) {
  DimVector sizes(lead.begin(), lead.end());
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return ops::expand(t, sizes);
}

Solved solve_any(const Tensor& a, const Tensor& b, bool left) {
  IntArrayRef rows(a.sizes().data(), a.sizes().size() - 1);
  bool vector = b.dim() == 1 || (b.dim() + 1 == a.dim() && b.sizes() == rows);
  Tensor right = vector ? ops::unsqueeze(b, -1) : b;
  Tensor matrix = a;
  if (!left) {
    right = ops::transpose(right, -2, -1);
    matrix = ops::transpose(a, -2, -1);
  }
  size_t rank = std::max(a.sizes().size(), right.sizes().size()) - 2;
  DimVector lead(rank, 1);
  for (const Tensor& t : {matrix, right}) {
    size_t own = t.sizes().size() - 2;
    for (size_t d = 0; d < own; ++d) {
      int64_t size = t.sizes()[d];
      if (size != 1) lead[rank - own + d] = size;
    }
  }
  Solved found = solved(expanded(matrix, lead), expanded(right, lead));
  if (!left) found.x = ops::transpose(found.x, -2, -1);
  if (vector) found.x = ops::squeeze(found.x, -1);
  return found;
}

Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left) {
  Solved found = solve_any(a, b, left);
  native::check_solved("linalg.solve", found.info);
  return found.x;
}
Pair linalg_solve_ex(const Tensor& a,
                     const Tensor& b,
                     bool left,
                     bool check_errors) {
  Solved found = solve_any(a, b, left);
  if (check_errors) native::check_solved("linalg.solve_ex", found.info);
  return {found.x, found.info};
}

Solved inverted(const Tensor& a) {
  Tensor one =
      ops::eye(a.size(-1), a.dtype(), std::nullopt, a.device(), std::nullopt);
  return solved(a, ops::expand(one, a.sizes()));
}
Tensor linalg_inv(const Tensor& a) {
  Solved found = inverted(a);
  native::check_inverted("linalg.inv", found.info);
  return found.x;
}
Pair linalg_inv_ex(const Tensor& a, bool check_errors) {
  Solved found = inverted(a);
  if (check_errors) native::check_inverted("linalg.inv_ex", found.info);
  return {found.x, found.info};
}

}  // namespace

Definitions system_definitions() {
  static const Definition all[] = {
      defined_as("linalg_matrix_exp", native::exponential_of),
      defined_as("linalg_solve", linalg_solve),
      defined_as("linalg_solve_ex", linalg_solve_ex),
      defined_as("linalg_inv", linalg_inv),
      defined_as("linalg_inv_ex", linalg_inv_ex),
  };
  return all;
}

}  // namespace taeda::cuda
