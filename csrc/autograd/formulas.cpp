#include <taeda/csrc/autograd/formulas.h>

#if __has_include(<taeda/gen/ops/conj.h>)
#include <taeda/gen/ops/conj.h>
#endif
#include <taeda/aten/core/level.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/new_empty_strided.h>
#include <taeda/gen/ops/real.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/sym/expand.h>
#include <taeda/gen/sym/reshape.h>

namespace taeda::autograd {

Tensor sum_to(const Tensor& t, SymIntArrayRef sizes) {
  SymIntArrayRef own = symbolic_sizes(t);
  if (same_sizes(own, sizes)) return t;
  DimVector dims;
  size_t extra = own.size() - sizes.size();
  for (size_t d = 0; d < own.size(); ++d) {
    if (d < extra || (sizes[d - extra] == 1 && own[d] != 1)) {
      dims.push_back(static_cast<int64_t>(d));
    }
  }
  Tensor summed = dims.empty() ? t : ops::sum(t, IntArrayRef(dims), true);
  return extra == 0 ? summed : sym::reshape(summed, sizes);
}

Tensor cast_to(const Tensor& t, ScalarType dtype) {
  if (t.dtype() == dtype) return t;
  bool drops_imaginary = t.is_complex() && !is_complex(dtype);
  return ops::_to_copy(drops_imaginary ? ops::real(t) : t, dtype);
}

bool may_hold(const Tensor& condition) {
  if (wrapped_or_null(condition) != nullptr || meets_python(condition)) {
    return true;
  }
  // Looking would wait for the device.
  if (!condition.is_cpu()) return true;
  return *condition.const_data<bool>();
}

Tensor empty_beside(const Tensor& t, IntArrayRef sizes, IntArrayRef strides) {
  if (wrapped_or_null(t) != nullptr || meets_python(t)) {
    return ops::new_empty_strided(t, sizes, strides);
  }
  return make_tensor_strided("empty", sizes, strides, t.dtype(), t.device());
}

Tensor real_if_needed(const Tensor& t, ScalarType wanted) {
  return t.is_complex() && !is_complex(wanted) ? cast_to(t, wanted) : t;
}

Tensor no_derivative(const char* op, const char* argument) {
  throw_error(
      ErrorKind::NotImplemented,
      str_cat("derivative for ", op, ": ", argument, " is not implemented"));
}

Tensor conj_of(const Tensor& t) {
  if (!t.is_complex()) return t;
#if __has_include(<taeda/gen/ops/conj.h>)
  return ops::conj(t);
#else
  throw_error(ErrorKind::NotImplemented,
              "conj: complex gradients need the operator conj");
#endif
}

Tensor unreduce(const Tensor& t,
                SymIntArrayRef sizes,
                std::optional<IntArrayRef> dims,
                bool keepdim) {
  if (keepdim || sizes.empty()) return t;
  Dims<SymInt> kept(sizes);
  if (!dims || dims->empty()) {
    for (SymInt& s : kept) s = 1;
  } else {
    for (int64_t d : *dims) {
      kept[static_cast<size_t>(
          wrap_dim(d, static_cast<int64_t>(sizes.size())))] = 1;
    }
  }
  return sym::reshape(t, kept);
}

Tensor copy_backward(const Tensor& grad,
                     SymIntArrayRef sizes,
                     ScalarType dtype,
                     Device device) {
  Tensor sum = cast_to(sum_to(real_if_needed(grad, dtype), sizes), dtype);
  if (sum.device() == device) return sum;
  return ops::_to_copy(sum, std::nullopt, std::nullopt, device);
}

Tensor sum_backward(const Tensor& grad,
                    SymIntArrayRef sizes,
                    std::optional<IntArrayRef> dims,
                    bool keepdim) {
  return sym::expand(unreduce(grad, sizes, dims, keepdim), sizes);
}

}  // namespace taeda::autograd
