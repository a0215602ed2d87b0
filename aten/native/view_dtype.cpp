// Views that read the same bytes as another type: view.dtype, complex numbers
// as pairs, lazy conjugation and negation.
#include <taeda/aten/iter/symbolic.h>
#include <taeda/aten/native/view.h>
#include <taeda/gen/native/_conj.h>
#include <taeda/gen/native/_neg_view.h>
#include <taeda/gen/native/imag.h>
#include <taeda/gen/native/real.h>
#include <taeda/gen/native/view.h>
#include <taeda/gen/native/view_as_complex.h>
#include <taeda/gen/native/view_as_real.h>
#include <taeda/gen/ops/_conj.h>
#include <taeda/gen/ops/_neg_view.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/view.h>
#include <taeda/gen/ops/view_as_complex.h>
#include <taeda/gen/ops/view_as_real.h>

namespace taeda::native {

namespace {

// Remakes a view by what made its source, then by `F`.
template <class F>
struct Replay final : ViewReplay {
  Replay(const Tensor& source, F f) : function(f) {
    const TensorExtra* extra = source.impl()->extra_or_null();
    if (extra != nullptr) before = extra->replay;
  }
  IntrusivePtr<TensorImpl> replay(
      const IntrusivePtr<TensorImpl>& base) const override {
    Tensor from(before ? before->replay(base) : base);
    return function(from).impl_ptr();
  }
  std::shared_ptr<ViewReplay> before;
  F function;
};

template <class F>
std::shared_ptr<ViewReplay> replay_with(const Tensor& source, F f) {
  return std::make_shared<Replay<F>>(source, f);
}

// Sizes in the new type where an element is `ratio` old ones.
void to_larger(const Tensor& self, ScalarType dtype, Geometry& g) {
  int64_t ratio = static_cast<int64_t>(element_size(dtype) / self.itemsize());
  size_t last = g.sizes.size() - 1;
  auto check = [&](bool ok, const std::string& what, int64_t value) {
    TAEDA_CHECK(ok,
                what,
                " must be divisible by ",
                ratio,
                " to view ",
                self.dtype(),
                " as ",
                dtype,
                " (different element sizes), but got ",
                value);
  };
  check(g.sizes[last] % ratio == 0, "self.size(-1)", g.sizes[last]);
  check(g.offset % ratio == 0, "self.storage_offset()", g.offset);
  for (size_t d = 0; d < last; ++d) {
    bool whole = g.strides[d] % ratio == 0;
    check(whole, whole ? "" : str_cat("self.stride(", d, ")"), g.strides[d]);
    g.strides[d] /= ratio;
  }
  g.sizes[last] /= ratio;
  g.offset /= ratio;
}

void to_smaller(const Tensor& self, ScalarType dtype, Geometry& g) {
  int64_t ratio = static_cast<int64_t>(self.itemsize() / element_size(dtype));
  size_t last = g.sizes.size() - 1;
  for (size_t d = 0; d < last; ++d) g.strides[d] *= ratio;
  g.sizes[last] *= ratio;
  g.offset *= ratio;
}

}  // namespace

Tensor view(const Tensor& self, ScalarType dtype) {
  if (self.dtype() == dtype) {
    return make_view(self, self.sizes(), self.strides(), self.storage_offset());
  }
  TAEDA_CHECK(!self.is_conj(),
              "torch.Tensor.view is not supported for conjugate view tensors "
              "when converting to a different dtype.");
  TAEDA_CHECK(!self.is_neg(),
              "torch.Tensor.view is not supported for tensors with negative "
              "bit set when converting to a different dtype.");
  Geometry g(self);
  size_t from = self.itemsize(), to = element_size(dtype);
  if (from != to) {
    TAEDA_CHECK(self.dim() != 0,
                "self.dim() cannot be 0 to view ",
                self.dtype(),
                " as ",
                dtype,
                " (different element sizes)");
    TAEDA_CHECK(self.strides().back() == 1,
                "self.stride(-1) must be 1 to view ",
                self.dtype(),
                " as ",
                dtype,
                " (different element sizes), but got ",
                self.strides().back());
    from < to ? to_larger(self, dtype, g) : to_smaller(self, dtype, g);
  }
  auto replay = replay_with(
      self, [dtype](const Tensor& t) { return ops::view(t, dtype); });
  return make_view_as(
      self, dtype, g.sizes, g.strides, g.offset, std::move(replay));
}

namespace {

// `self` under another type and geometry.
template <class F>
Tensor retyped(const Tensor& self, ScalarType dtype, const Geometry& g, F f) {
  return make_view_as(
      self, dtype, g.sizes, g.strides, g.offset, replay_with(self, f));
}
template <class F>
Tensor retyped(const Tensor& self,
               ScalarType dtype,
               const ViewGeometry<SymInt>& g,
               F f) {
  Tensor view = make_view_as(self, dtype, {}, {}, 0, replay_with(self, f));
  set_symbolic_geometry(view, g);
  return view;
}

template <class I>
Tensor as_real(const Tensor& self) {
  TAEDA_CHECK(self.is_complex(),
              "view_as_real is only supported for complex tensors");
  TAEDA_CHECK(!self.is_conj(),
              "view_as_real doesn't work on unresolved conjugated tensors.  To "
              "resolve the conjugate tensor so you can view it as real, use "
              "self.resolve_conj(); however, be warned that the resulting "
              "tensor will NOT alias the original.");
  ViewGeometry<I> g(self);
  for (I& s : g.strides) s *= 2;
  g.sizes.push_back(2);
  g.strides.push_back(1);
  g.offset *= 2;
  return retyped(self, real_type_of(self.dtype()), g, [](const Tensor& t) {
    return ops::view_as_real(t);
  });
}

template <class I>
void check_as_complex(const Tensor& self, const ViewGeometry<I>& g) {
  TAEDA_CHECK(self.dtype() == kFloat || self.dtype() == kDouble ||
                  self.dtype() == kHalf,
              "view_as_complex is only supported for half, float and double "
              "tensors, but got a tensor of scalar type: ",
              self.dtype());
  TAEDA_CHECK(self.dim() != 0, "Input tensor must have one or more dimensions");
  TAEDA_CHECK(g.sizes.back() == 2,
              "Tensor must have a last dimension of "
              "size 2, got ",
              self);
  TAEDA_CHECK(g.strides.back() == 1,
              "Tensor must have a last dimension with stride 1, got ",
              ArrayRef<I>(g.strides));
  TAEDA_CHECK(g.offset % I(2) == 0,
              "Tensor must have a storage_offset divisible by 2, got ",
              g.offset);
  for (size_t d = 0; d + 1 < g.strides.size(); ++d) {
    if (g.sizes[d] == 1) continue;
    TAEDA_CHECK(g.strides[d] % I(2) == 0,
                "Tensor must have a stride divisible by 2 for all but last "
                "dimension, got ",
                ArrayRef<I>(g.strides));
  }
}

template <class I>
Tensor as_complex(const Tensor& self) {
  ViewGeometry<I> g(self);
  check_as_complex(self, g);
  g.sizes.pop_back();
  g.strides.pop_back();
  for (I& s : g.strides) s /= 2;
  g.offset /= 2;
  return retyped(self, complex_type_of(self.dtype()), g, [](const Tensor& t) {
    return ops::view_as_complex(t);
  });
}

}  // namespace

Tensor view_as_real(const Tensor& self) { return as_real<int64_t>(self); }
Tensor view_as_real_sized(const Tensor& self) { return as_real<SymInt>(self); }
Tensor view_as_complex(const Tensor& self) { return as_complex<int64_t>(self); }
Tensor view_as_complex_sized(const Tensor& self) {
  return as_complex<SymInt>(self);
}

Tensor real(const Tensor& self) {
  if (!self.is_complex()) return self;
  Tensor plain = self.is_conj() ? ops::_conj(self) : self;
  return ops::select(ops::view_as_real(plain), -1, 0);
}

Tensor imag(const Tensor& self) {
  TAEDA_CHECK(self.is_complex(),
              "imag is not implemented for tensors with non-complex dtypes.");
  Tensor plain = self.is_conj() ? ops::_conj(self) : self;
  Tensor part = ops::select(ops::view_as_real(plain), -1, 1);
  return self.is_conj() ? ops::_neg_view(part) : part;
}

namespace {

template <class I, class F>
Tensor toggled(const Tensor& self, DispatchKey key, F remake) {
  Tensor view = retyped(self, self.dtype(), ViewGeometry<I>(self), remake);
  if (self.keys().has(key)) {
    view.impl()->remove_key(key);
  } else {
    view.impl()->add_key(key);
  }
  return view;
}

template <class I>
Tensor conjugated(const Tensor& self) {
  return toggled<I>(self, DispatchKey::Conjugate, [](const Tensor& t) {
    return ops::_conj(t);
  });
}
template <class I>
Tensor negated(const Tensor& self) {
  return toggled<I>(self, DispatchKey::Negative, [](const Tensor& t) {
    return ops::_neg_view(t);
  });
}

}  // namespace

Tensor _conj(const Tensor& self) { return conjugated<int64_t>(self); }
Tensor _conj_sized(const Tensor& self) { return conjugated<SymInt>(self); }
Tensor _neg_view(const Tensor& self) { return negated<int64_t>(self); }
Tensor _neg_view_sized(const Tensor& self) { return negated<SymInt>(self); }

}  // namespace taeda::native
