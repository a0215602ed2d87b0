#include <taeda/csrc/python/tensor_functions.h>

#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/gen/ops/item.h>

namespace taeda::python {

namespace {
constexpr DispatchKeySet kNotPlain{DispatchKey::Wrapped,
                                   DispatchKey::Conjugate,
                                   DispatchKey::Negative,
                                   DispatchKey::SparseCPU};

// The value in wrappers; under vmap there is none for the mapped function.
TensorBase unwrapped(TensorBase t, Reading reading) {
  while (const Wrapped* w = wrapped_or_null(t)) {
    check_alive(*w, "item");
    TAEDA_CHECK(w->batch_dim < 0 || reading == Reading::Number,
                "vmap: It looks like you're attempting to use a Tensor in some "
                "data-dependent control flow. The elements of the batch (",
                w->value,
                ") may go different ways; torch.where chooses for each.");
    TAEDA_CHECK(w->batch_dim < 0,
                "vmap: It looks like you're calling .item() on a Tensor. We "
                "don't support vmap over calling .item() on a Tensor: each "
                "element of the batch (",
                w->value,
                ") has a number of its own. Please try to rewrite what you're "
                "doing with other operations.");
    t = w->level->value_in(t);
  }
  return t;
}

// Memory to read elements from: on the CPU, lazy conjugation resolved.
TensorBase memory_of(const TensorBase& given, Reading reading) {
  TensorBase t = unwrapped(given, reading);
  TAEDA_CHECK(!t.is_meta(),
              "Tensor.item() cannot be called on meta tensors: they have no "
              "elements");
  if (t.is_cpu() && !t.is_conj() && !t.is_neg()) return t;
  BelowAutograd guard;
  GilRelease gil(!t.is_cpu());  // a device may take any time
  return t.is_cpu() ? contiguous(t) : on_cpu(t);
}

PyObject* element(ScalarType dtype, const void* p) {
  switch (dtype) {
    case kFloat:
      return PyFloat_FromDouble(*static_cast<const float*>(p));
    case kDouble:
      return PyFloat_FromDouble(*static_cast<const double*>(p));
    case kLong:
      return PyLong_FromLongLong(*static_cast<const int64_t*>(p));
    case kBool:
      return PyBool_FromLong(*static_cast<const uint8_t*>(p) != 0);
    default:
      return wrap(Scalar::load(dtype, p));
  }
}

PyObject* lists(const TensorBase& t, int64_t dim, const char* p) {
  if (dim == t.dim()) return element(t.dtype(), p);
  int64_t n = t.sizes()[dim];
  int64_t step = t.strides()[dim] * static_cast<int64_t>(t.itemsize());
  return new_list(static_cast<size_t>(n),
                  [&](size_t i) {
                    return lists(
                        t, dim + 1, p + static_cast<int64_t>(i) * step);
                  })
      .release();
}
}  // namespace

Scalar item_of(const TensorBase& t, Reading reading) {
  TAEDA_CHECK(t.numel() == 1,
              message("a Tensor with {} elements cannot be converted to Scalar",
                      t.numel()));
  if (meets_python(t) || t.layout() != Layout::Strided) return ops::item(t);
  TensorBase r = memory_of(t, reading);
  return Scalar::load(r.dtype(), r.const_raw_data());
}

PyObject* item_object(const TensorBase& t) {
  if (TAEDA_UNLIKELY(meets_python(t))) return wrap(ops::item(t));
  bool plain = (t.keys() & kNotPlain).empty();
  if (TAEDA_LIKELY(t.numel() == 1 && t.is_cpu() && plain)) {
    return element(t.dtype(), t.const_raw_data());
  }
  return wrap(item_of(t));
}

PyObject* list_of(const TensorBase& t) {
  TAEDA_CHECK(!t.keys().has(DispatchKey::Python) || !meets_python(t),
              ".tolist() is not supported for tensor subclasses.");
  TensorBase r = memory_of(t, Reading::Number);
  return lists(r, 0, static_cast<const char*>(r.const_raw_data()));
}

}  // namespace taeda::python
