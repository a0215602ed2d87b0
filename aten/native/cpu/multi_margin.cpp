// Hinge losses of classes against classes, row by row.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/loss_reduction.h>
#include <taeda/aten/native/multi_margin.h>
#include <taeda/gen/native/multi_margin_loss.h>
#include <taeda/gen/native/multi_margin_loss_backward.h>
#include <taeda/gen/native/multilabel_margin_loss_backward.h>
#include <taeda/gen/native/multilabel_margin_loss_forward.h>

#include <algorithm>

namespace taeda::native {

namespace {

template <class F>
void visit_float(std::string_view op, ScalarType t, F&& f) {
  if (t == kFloat) return f(float{});
  if (t == kDouble) return f(double{});
  not_implemented_for(op, t);
}

// The factor between a row's sum and what counts of it.
template <class T>
T row_scale(const Rows<int64_t>& rows, int64_t reduction) {
  double count =
      static_cast<double>(reduction == kMeanReduction ? rows.count : 1);
  return static_cast<T>(1.0 / (static_cast<double>(rows.classes) * count));
}

int64_t checked_class(std::string_view op, int64_t y, int64_t classes) {
  TAEDA_CHECK(y >= 0 && y < classes,
              op,
              ": target out of range: ",
              y,
              " with ",
              classes,
              " classes");
  return y;
}

// Either a loss for every row, or their sum.
template <class T, class F>
void sum_rows(const Rows<int64_t>& rows,
              const Tensor& out,
              bool each,
              F&& row) {
  T* to = out.mutable_data<T>();
  if (!each) *to = T(0);
  for (int64_t r = 0; r < rows.count; ++r) {
    T sum = row(r);
    if (each) {
      to[r] = sum;
    } else {
      *to += sum;
    }
  }
}

}  // namespace

void multi_margin_loss_cpu(const Tensor& self,
                           const Tensor& target,
                           const Scalar& p,
                           const Scalar& margin,
                           const OptionalTensor& weight,
                           int64_t reduction,
                           const Tensor& out) {
  constexpr std::string_view kName = "multi_margin_loss";
  auto rows = rows_of<int64_t>(kName, self);
  MarginTerms terms = margin_terms(p, margin);
  Tensor x = contiguous(self), t = contiguous(target);
  Tensor w = weight ? contiguous(*weight) : Tensor();
  visit_float(kName, self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* factors = w.defined() ? w.const_data<T>() : nullptr;
    T least = static_cast<T>(terms.margin);
    T scale = row_scale<T>(rows, reduction);
    sum_rows<T>(rows, out, out.dim() > 0, [&](int64_t r) {
      const T* row = x.const_data<T>() + r * rows.classes;
      int64_t y =
          checked_class(kName, t.const_data<int64_t>()[r], rows.classes);
      T sum = 0;
      for (int64_t i = 0; i < rows.classes; ++i) {
        T z = least - row[y] + row[i];
        if (i != y && z > 0) sum += terms.power == 1 ? z : z * z;
      }
      return sum * scale * (factors != nullptr ? factors[y] : T(1));
    });
  });
}

void multi_margin_loss_backward_cpu(const Tensor& grad_output,
                                    const Tensor& self,
                                    const Tensor& target,
                                    const Scalar& p,
                                    const Scalar& margin,
                                    const OptionalTensor& weight,
                                    int64_t reduction,
                                    const Tensor& out) {
  constexpr std::string_view kName = "multi_margin_loss_backward";
  auto rows = rows_of<int64_t>(kName, self);
  MarginTerms terms = margin_terms(p, margin);
  Tensor x = contiguous(self), t = contiguous(target);
  Tensor g = contiguous(grad_output);
  Tensor w = weight ? contiguous(*weight) : Tensor();
  visit_float(kName, self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* factors = w.defined() ? w.const_data<T>() : nullptr;
    T least = static_cast<T>(terms.margin);
    T scale = row_scale<T>(rows, reduction);
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* row = x.const_data<T>() + r * rows.classes;
      T* to = out.mutable_data<T>() + r * rows.classes;
      int64_t y =
          checked_class(kName, t.const_data<int64_t>()[r], rows.classes);
      T unit = scale * g.const_data<T>()[g.dim() > 0 ? r : 0] *
               (factors != nullptr ? factors[y] : T(1));
      T total = 0;
      for (int64_t i = 0; i < rows.classes; ++i) {
        T z = least - row[y] + row[i];
        bool active = i != y && z > 0;
        to[i] = active ? (terms.power == 1 ? unit : 2 * unit * z) : T(0);
        total += to[i];
      }
      to[y] = -total;
    }
  });
}

namespace {

// The target classes of one row: those before the first -1.
int64_t targets_in(const int64_t* row, int64_t classes) {
  return std::find(row, row + classes, int64_t{-1}) - row;
}

}  // namespace

void multilabel_margin_loss_cpu(const Tensor& self,
                                const Tensor& target,
                                int64_t reduction,
                                const Tensor& output,
                                const Tensor& is_target) {
  constexpr std::string_view kName = "multilabel_margin_loss";
  auto rows = rows_of<int64_t>(kName, self);
  Tensor x = contiguous(self), t = contiguous(target);
  fill_with(is_target, int64_t{0});
  visit_float(kName, self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T scale = row_scale<T>(rows, reduction);
    sum_rows<T>(rows, output, output.dim() > 0, [&](int64_t r) {
      const T* row = x.const_data<T>() + r * rows.classes;
      const int64_t* y = t.const_data<int64_t>() + r * rows.classes;
      T* marks = is_target.mutable_data<T>() + r * rows.classes;
      int64_t count = targets_in(y, rows.classes);
      for (int64_t j = 0; j < count; ++j) {
        marks[checked_class(kName, y[j], rows.classes)] = T(1);
      }
      T sum = 0;
      for (int64_t j = 0; j < count; ++j) {
        for (int64_t i = 0; i < rows.classes; ++i) {
          T z = 1 - row[y[j]] + row[i];
          if (marks[i] == 0 && z > 0) sum += z;
        }
      }
      return sum * scale;
    });
  });
}

void multilabel_margin_loss_backward_cpu(const Tensor& grad_output,
                                         const Tensor& self,
                                         const Tensor& target,
                                         int64_t reduction,
                                         const Tensor& is_target,
                                         const Tensor& out) {
  constexpr std::string_view kName = "multilabel_margin_loss_backward";
  auto rows = rows_of<int64_t>(kName, self);
  Tensor x = contiguous(self), t = contiguous(target);
  Tensor g = contiguous(grad_output), is = contiguous(is_target);
  fill_with(out, int64_t{0});
  visit_float(kName, self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T scale = row_scale<T>(rows, reduction);
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* row = x.const_data<T>() + r * rows.classes;
      const T* marks = is.const_data<T>() + r * rows.classes;
      const int64_t* y = t.const_data<int64_t>() + r * rows.classes;
      T* to = out.mutable_data<T>() + r * rows.classes;
      T unit = scale * g.const_data<T>()[g.dim() > 0 ? r : 0];
      int64_t count = targets_in(y, rows.classes);
      for (int64_t j = 0; j < count; ++j) {
        for (int64_t i = 0; i < rows.classes; ++i) {
          if (marks[i] != 0 || 1 - row[y[j]] + row[i] <= 0) continue;
          to[y[j]] -= unit;
          to[i] += unit;
        }
      }
    }
  });
}

}  // namespace taeda::native
