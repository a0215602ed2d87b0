#include <taeda/csrc/python/tensor_functions.h>
#include <taeda/csrc/python/torch_function.h>

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/derived.h>
#include <taeda/gen/ops/alias.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/index.h>
#include <taeda/gen/ops/index_put.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/sym/view.h>

namespace taeda::python {

// Note [Indexing]
// A key is first turned into a plan: steps that each make a view (select,
// slice, new dim) and, for advanced indexing, one optional index tensor per dim
// of that view. On plain tensors the steps are applied to sizes and strides
// alone and one view is made at the end; where something has to see them
// (autograd, a mode) each step is a call of its operator.

namespace {
struct Step {
  enum Kind { Select, Slice, NewDim } kind;
  int64_t dim;
  int64_t start;
  int64_t stop;
  int64_t step;
};

class Plan {
 public:
  explicit Plan(const TensorBase& self)
      : self_(self), sizes_(self.sizes()), strides_(self.strides()) {}

  void parse(PyObject* key);
  bool advanced() const { return !indices_.empty(); }
  ArrayRef<OptionalTensor> indices() const { return indices_; }
  TensorBase view() const;

 private:
  void parse_items(PyObject* const* items, Py_ssize_t count);
  void parse_item(PyObject* item);
  void select(int64_t index);
  void slice(PyObject* item);
  void new_dim();
  void add_index(TensorBase index);
  void add_bool(bool value);
  void skip_dims(int64_t count) { dim_ += count; }
  int64_t consumed(PyObject* item) const;
  void check_count(int64_t indices, int64_t dims) const {
    TAEDA_CHECK_AS(Index,
                   indices <= dims,
                   "too many indices for tensor of dimension ",
                   self_.dim());
  }

  const TensorBase& self_;
  DimVector sizes_, strides_;
  int64_t offset_ = 0;
  int64_t dim_ = 0;       // next dim of the view
  int64_t self_dim_ = 0;  // the dim of `self` that it comes from
  int64_t skipped_ = 0;   // dims that an ellipsis stands for
  int64_t folded_ = 0;    // dims that masks cover beyond one entry each
  SmallVector<Step, 4> steps_;
  SmallVector<OptionalTensor, 4> indices_;
};

bool is_mask(const TensorBase& t) {
  return t.dtype() == kBool || t.dtype() == kByte;
}

// How many dims of self an item uses up.
int64_t Plan::consumed(PyObject* item) const {
  if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) return 0;
  if (is_tensor(item) && is_mask(unwrap(item))) return unwrap(item).dim();
  return 1;
}

void Plan::select(int64_t index) {
  TAEDA_CHECK_AS(Index,
                 self_.dim() > 0,
                 "invalid index of a 0-dim tensor. Use `tensor.item()` in "
                 "Python or `tensor.item<T>()` in C++ to convert a 0-dim "
                 "tensor to a number");
  check_count(dim_ + 1, static_cast<int64_t>(sizes_.size()));
  int64_t size = sizes_[dim_];
  TAEDA_CHECK_AS(
      Index,
      index >= -size && index < size,
      message("index {} is out of bounds for dimension {} with size {}",
              index,
              self_dim_,
              size));
  if (index < 0) index += size;
  steps_.push_back({Step::Select, dim_, index, 0, 0});
  offset_ += index * strides_[dim_];
  sizes_.erase(sizes_.begin() + dim_);
  strides_.erase(strides_.begin() + dim_);
  ++self_dim_;
}

int64_t slice_end(PyObject* o, int64_t otherwise) {
  if (o == Py_None) return otherwise;
  if (is_tensor(o)) return item_of(unwrap(o)).to_int();
  Py_ssize_t v = 0;
  if (_PyEval_SliceIndex(o, &v) == 0) throw PythonError();
  return v;
}

void Plan::slice(PyObject* item) {
  auto* s = reinterpret_cast<PySliceObject*>(item);
  int64_t step = slice_end(s->step, 1);
  check_count(dim_ + 1, static_cast<int64_t>(sizes_.size()));
  TAEDA_CHECK_AS(Value, step > 0, "step must be greater than zero");
  int64_t size = sizes_[dim_];
  auto clamp = [&](int64_t v) {
    if (v < 0) v += size;
    return std::clamp<int64_t>(v, 0, size);
  };
  int64_t start = clamp(slice_end(s->start, 0));
  int64_t stop = std::max(start, clamp(slice_end(s->stop, size)));
  if (start != 0 || stop != size || step != 1) {
    steps_.push_back({Step::Slice, dim_, start, stop, step});
    offset_ += start * strides_[dim_];
    sizes_[dim_] = (stop - start + step - 1) / step;
    strides_[dim_] *= step;
  }
  ++dim_;
  ++self_dim_;
}

void Plan::new_dim() {
  steps_.push_back({Step::NewDim, dim_, 0, 0, 0});
  bool inside = dim_ < static_cast<int64_t>(sizes_.size());
  int64_t stride = inside ? sizes_[dim_] * strides_[dim_] : 1;
  sizes_.insert(sizes_.begin() + dim_, 1);
  strides_.insert(strides_.begin() + dim_, stride);
}

void Plan::add_index(TensorBase index) {
  indices_.resize(static_cast<size_t>(dim_ - folded_));
  int64_t dims = is_mask(index) ? index.dim() : 1;
  indices_.push_back(std::move(index));
  dim_ += dims;
  self_dim_ += dims;
  folded_ += dims - 1;
}

// True indexes a new dim of size 1, False leaves nothing of it.
void Plan::add_bool(bool value) {
  new_dim();
  TensorBase index = make_tensor("index", {value ? 1 : 0}, kLong);
  if (value) *index.mutable_data<int64_t>() = 0;
  add_index(std::move(index));
  --self_dim_;
}

void Plan::parse_item(PyObject* item) {
  if (PyLong_CheckExact(item)) return select(to_int(item));
  if (PySlice_Check(item)) return slice(item);
  if (item == Py_None) {
    new_dim();
    ++dim_;
    return;
  }
  if (item == Py_Ellipsis) {
    self_dim_ += skipped_;
    return skip_dims(skipped_);
  }
  if (PyBool_Check(item)) return add_bool(item == Py_True);
  if (takes_over(item)) throw OverriddenArgument();
  if (is_tensor(item)) {
    const TensorBase& t = unwrap(item);
    bool number = t.dim() == 0 && is_integral(t.dtype(), /*include_bool=*/true);
    // A wrapper has no number to choose a dim by: it indexes as a tensor.
    if (number && !t.keys().has(DispatchKey::Wrapped)) {
      int64_t value = item_of(t).to_int();
      return is_mask(t) ? add_bool(value != 0) : select(value);
    }
    return add_index(t);
  }
  if (PyIndex_Check(item) && !is_numpy_array(item)) {
    return select(to_int(item));
  }
  if (PySequence_Check(item)) {
    TensorBase t = tensor_from_data(item, {});
    if (t.numel() == 0 && t.is_floating_point()) t = cast(t, kLong);
    return add_index(std::move(t));
  }
  raise(PyExc_IndexError,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
        "Variables are valid indices (got {})",
        type_name_of(item));
}

void Plan::parse_items(PyObject* const* items, Py_ssize_t count) {
  int64_t used = 0;
  for (Py_ssize_t i = 0; i < count; ++i) used += consumed(items[i]);
  check_count(used, self_.dim());
  skipped_ = self_.dim() - used;
  for (Py_ssize_t i = 0; i < count; ++i) parse_item(items[i]);
}

// NumPy's old heuristic, which PyTorch keeps: a short list that holds anything
// but numbers stands for a tuple.
bool stands_for_tuple(PyObject* key) {
  if (!PyList_Check(key) || PyList_GET_SIZE(key) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); ++i) {
    PyObject* item = PyList_GET_ITEM(key, i);
    if (is_tensor(item) || PySequence_Check(item) || PySlice_Check(item) ||
        item == Py_Ellipsis || item == Py_None) {
      return true;
    }
  }
  return false;
}

void Plan::parse(PyObject* key) {
  if (PyTuple_Check(key) || stands_for_tuple(key)) {
    return parse_items(PySequence_Fast_ITEMS(key), Py_SIZE(key));
  }
  if (PyLong_CheckExact(key)) return select(to_int(key));
  if (PySlice_Check(key) && self_.dim() == 0) {
    throw_error(ErrorKind::Index,
                "slice() cannot be applied to a 0-dim tensor.");
  }
  parse_items(&key, 1);
}

TensorBase apply(const TensorBase& t, const Step& s) {
  switch (s.kind) {
    case Step::Select:
      return ops::select(t, s.dim, s.start);
    case Step::Slice:
      return ops::slice(t, s.dim, s.start, s.stop, s.step);
    default:
      return ops::unsqueeze(t, s.dim);
  }
}

TensorBase Plan::view() const {
  if (is_plain(self_)) {
    if (steps_.empty() && advanced()) return self_;
    return make_view(self_, sizes_, strides_, self_.storage_offset() + offset_);
  }
  TensorBase t = self_;
  for (const Step& s : steps_) t = apply(t, s);
  if (!steps_.empty() || advanced()) return t;
  return ops::alias(t);
}

// What is assigned, as a tensor of self's dtype where it is plain data.
TensorBase assigned(const TensorBase& self, PyObject* value) {
  if (is_tensor(value)) return unwrap(value);
  if (is_scalar_like(value)) {
    TensorBase t = make_tensor("setitem", {}, self.dtype());
    to_scalar(value).store(self.dtype(), t.mutable_raw_data());
    return t;
  }
  if (!PySequence_Check(value) || PyUnicode_Check(value)) {
    raise(PyExc_TypeError,
          "can't assign a {} to a {} tensor",
          type_name_of(value),
          dtype_name(self.dtype()));
  }
  DataOptions options;
  options.dtype = self.dtype();
  return tensor_from_data(value, options);
}

// Leading dims of size 1 that the target does not have are no obstacle.
TensorBase without_leading_ones(const TensorBase& value, int64_t rank) {
  int64_t drop = 0;
  SymIntArrayRef sizes = sym_sizes(*value.impl());
  while (value.dim() - drop > rank && sizes[drop] == 1) ++drop;
  if (drop == 0) return value;
  return sym::view(value, sizes.slice(drop));
}
}  // namespace

bool is_plain(const TensorBase& t) {
  uint64_t features = (t.keys() - kBackendKeys).bits() & local_state.mask;
  return (features | local_state.included) == 0 &&
         t.layout() == Layout::Strided;
}

TensorBase select(const TensorBase& t, int64_t dim, int64_t index) {
  if (!is_plain(t)) return ops::select(t, dim, index);
  DimVector sizes(t.sizes()), strides(t.strides());
  int64_t offset = t.storage_offset() + index * strides[dim];
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
  return make_view(t, sizes, strides, offset);
}

// A tensor without symbols that is indexed by some has none of them fixed.
bool has_symbol(PyObject* key) {
  if (PySlice_Check(key)) {
    auto* s = reinterpret_cast<PySliceObject*>(key);
    return is_symbol(s->start) || is_symbol(s->stop) || is_symbol(s->step);
  }
  if (!PyTuple_CheckExact(key)) return is_symbol(key);
  ArrayRef<PyObject*> items = items_of(key);
  return std::any_of(items.begin(), items.end(), has_symbol);
}
// self[key] as views that keep the symbols; a null reference where the key has
// more than numbers, slices, None and `...`.
Ref symbolic_item(PyObject* self, PyObject* key) {
  Ref item = imported("taeda._symbolic_indexing", "item");
  Ref view =
      checked(PyObject_CallFunctionObjArgs(item.get(), self, key, nullptr));
  return view.get() == Py_None ? Ref() : view;
}
// Where tensors of positions choose too: the view that these index.
struct Chosen {
  TensorBase view;
  SmallVector<OptionalTensor, 4> indices;
};
std::optional<Chosen> symbolic_positions(PyObject* self, PyObject* key) {
  Ref split = imported("taeda._symbolic_indexing", "positions");
  Ref found =
      checked(PyObject_CallFunctionObjArgs(split.get(), self, key, nullptr));
  if (found.get() == Py_None) return std::nullopt;
  Chosen out;
  out.view = unwrap(PyTuple_GET_ITEM(found.get(), 0));
  for (PyObject* o : items_of(PyTuple_GET_ITEM(found.get(), 1))) {
    out.indices.push_back(is_tensor(o) ? OptionalTensor(unwrap(o))
                                       : OptionalTensor());
  }
  return out;
}
bool is_symbolic(const TensorBase& t, PyObject* key) {
  if (TAEDA_LIKELY(!t.impl()->is_symbolic() && sym_int_type == nullptr)) {
    return false;
  }
  return t.impl()->is_symbolic() || has_symbol(key);
}

PyObject* get_item(PyObject* self, PyObject* key) {
  const TensorBase& t = unwrap(self);
  if (TAEDA_UNLIKELY(is_symbolic(t, key))) {
    if (Ref view = symbolic_item(self, key)) return view.release();
    if (auto chosen = symbolic_positions(self, key)) {
      return wrap(ops::index(chosen->view, chosen->indices));
    }
  }
  Plan plan(t);
  plan.parse(key);
  TensorBase view = plan.view();
  if (!plan.advanced()) return wrap(std::move(view));
  return wrap(ops::index(view, plan.indices()));
}

void set_item(PyObject* self, PyObject* key, PyObject* value) {
  const TensorBase& t = unwrap(self);
  if (TAEDA_UNLIKELY(t.layout() != Layout::Strided)) {
    raise(PyExc_TypeError, "Cannot assign to a sparse tensor");
  }
  // x[True] is all of x, x[False] nothing.
  if (key == Py_True) key = Py_Ellipsis;
  if (key == Py_False) return static_cast<void>(assigned(t, value));
  if (TAEDA_UNLIKELY(is_symbolic(t, key))) {
    if (Ref item = symbolic_item(self, key)) {
      const TensorBase& view = unwrap(item.get());
      TensorBase source = assigned(t, value);
      ops::copy_(view, without_leading_ones(source, view.dim()), false);
      return;
    }
    if (auto chosen = symbolic_positions(self, key)) {
      TensorBase source = assigned(t, value);
      if (source.dtype() != t.dtype() && source.dim() == 0) {
        source = cast(source, t.dtype());
      }
      ops::index_put_(chosen->view, chosen->indices, source, false);
      return;
    }
  }
  Plan plan(t);
  plan.parse(key);
  TensorBase view = plan.view();
  if (!plan.advanced() && is_plain(t) && is_scalar_like(value) &&
      !is_tensor(value)) {
    derived::check_writable(t);
    fill_with(view, to_scalar(value));
    t.impl()->bump_version();
    return;
  }
  TensorBase source = assigned(t, value);
  if (!plan.advanced()) {
    source = without_leading_ones(source, view.dim());
    // An element of what is written may be repeated over it.
    if (is_plain(source) && source.storage().get() == view.storage().get()) {
      source = ops::expand(source, view.sizes());
    }
    ops::copy_(view, source, false);
    return;
  }
  ArrayRef<OptionalTensor> indices = plan.indices();
  // What a single mask chooses is filled, whatever the number's dtype.
  bool fills = indices.size() == 1 && indices[0] && is_mask(*indices[0]) &&
               source.is_complex() <= t.is_complex();
  bool alone = source.dim() == 0 || fills;
  if (source.dtype() != t.dtype() && alone && source.numel() == 1) {
    source = cast(source, t.dtype());
  }
  ops::index_put_(view, indices, source, false);
}

}  // namespace taeda::python
