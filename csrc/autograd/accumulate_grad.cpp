#include <taeda/csrc/autograd/accumulate_grad.h>

#include <taeda/csrc/autograd/formulas.h>
#include <taeda/csrc/autograd/inplace.h>

#include <taeda/gen/ops/_indices.h>
#include <taeda/gen/ops/_values.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/detach.h>

namespace taeda::autograd {

AccumulateGrad::AccumulateGrad(const Tensor& variable)
    : Node(UINT64_MAX), variable_(variable) {
  OutputInfo info(variable);
  info.dtype = grad_dtype(variable);
  add_output(std::move(info));
}

namespace {
// Nobody else can reach the tensor's memory, but for `others` who hold the same
// tensor; a view may be all that is left of its base.
bool is_sole_owner(const Tensor& t, size_t others = 0) {
  if (t.impl()->use_count() != 1 + others) return false;
  const IntrusivePtr<TensorImpl>& base = t.impl()->base();
  if (!base) return t.storage()->use_count() == 1;
  return base->use_count() == 1 && t.storage()->use_count() == 2 &&
         t.nbytes() == t.storage()->nbytes();
}

// The value of a level, which may have a dim more than its fellow.
bool is_wrapped(const Tensor& t) { return t.keys().has(DispatchKey::Wrapped); }
bool is_symbolic(const Tensor& t) { return t.impl()->is_symbolic(); }
}  // namespace

bool has_wanted_strides(const Tensor& grad, const Tensor& variable) {
  // Whether symbols agree would be a question that leaves guards.
  if (is_symbolic(grad) || is_symbolic(variable)) return false;
  if (!variable.is_non_overlapping_and_dense()) return grad.is_contiguous();
  return grad.strides() == variable.strides() ||
         (grad.is_contiguous() && variable.is_contiguous());
}

Tensor clone_for_grad(const Tensor& grad, const Tensor& variable) {
  if (grad.layout() != Layout::Strided || is_symbolic(grad)) {
    return ops::clone(grad);
  }
  bool dense = variable.is_non_overlapping_and_dense();
  DimVector rows = dense ? DimVector() : contiguous_strides(grad.sizes());
  Tensor out = empty_beside(
      grad, grad.sizes(), dense ? variable.strides() : IntArrayRef(rows));
  ops::copy_(out, grad);
  return out;
}

// A sparse gradient is added to a strided one, never the other way round.
static bool goes_second(const Tensor& a, const Tensor& b) {
  return a.layout() != Layout::Strided && b.layout() == Layout::Strided;
}

Tensor sum_of(Tensor a, const Tensor& b) {
  bool in_place =
      !meets_python(a) && !meets_python(b) && !grad_enabled() &&
      !is_wrapped(a) && !is_wrapped(b) && !is_symbolic(a) && !is_symbolic(b) &&
      is_sole_owner(a) && a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
      a.is_non_overlapping_and_dense() && a.layout() == Layout::Strided &&
      b.layout() == Layout::Strided;
  if (in_place) {
    ops::add_(a, b);
    return a;
  }
  // A strided gradient goes first; entries of sparse ones stand in the order of
  // the calls that made them, of which the last one's gradient comes first.
  return a.layout() == Layout::Strided ? ops::add(a, b) : ops::add(b, a);
}

// Whether the parts of a sparse gradient may become those of a grad.
static bool gives_parts(const Tensor& grad, size_t others) {
  return !grad_enabled() && grad.impl()->use_count() == 1 + others &&
         ops::_indices(grad).is_contiguous() &&
         ops::_values(grad).is_contiguous();
}

// What becomes the grad of a variable that has none; `others` hold the gradient
// too, but will only read it.
static Tensor first_grad(Tensor grad, const Tensor& variable, size_t others) {
  bool fits = !grad_enabled() && has_wanted_strides(grad, variable);
  if (meets_python(grad)) {
    // Whether others hold the memory is known to the class alone.
    bool alone = fits && grad.impl()->use_count() == 1;
    return alone ? ops::detach(grad) : ops::clone(grad);
  }
  if (grad.layout() == Layout::Sparse) {
    return gives_parts(grad, others) ? ops::detach(grad) : ops::clone(grad);
  }
  bool steal = fits && is_sole_owner(grad, others) &&
               grad.impl()->python_object() == nullptr;
  if (!steal) return clone_for_grad(grad, variable);
  return grad.is_view() || others > 0 ? variable_data(grad) : grad;
}

// A hook may remove itself.
void AccumulateHooks::call_others(const Tensor& variable) {
  for (size_t i = 0; i < others.size(); ++i) {
    std::shared_ptr<AccumulateHook> hook = others[i];
    hook->call(variable);
  }
}
void AccumulateHooks::call(const Tensor& variable) {
  if (std::shared_ptr<AccumulateHook> hook = first) hook->call(variable);
  call_others(variable);
}

static AccumulateHooks* hooks_or_null(const AutogradMeta* meta) {
  if (meta == nullptr || !meta->leaf_hooks) return nullptr;
  return dynamic_cast<AccumulateHooks*>(meta->leaf_hooks->after.get());
}

std::shared_ptr<AccumulateHook> accumulate_hook(const Tensor& t) {
  AutogradMeta* meta = meta_or_null(t);
  if (meta == nullptr || !meta->leaf_hooks) return nullptr;
  AccumulateHooks* hooks = hooks_or_null(meta);
  return hooks == nullptr ? meta->leaf_hooks->after : hooks->first;
}

static AccumulateHooks& hooks_of(const Tensor& t) {
  AutogradMeta& meta = meta_of(t);
  if (hooks_or_null(&meta) == nullptr) {
    auto hooks = std::make_shared<AccumulateHooks>();
    hooks->first = accumulate_hook(t);
    if (!meta.leaf_hooks) meta.leaf_hooks = std::make_unique<LeafHooks>();
    meta.leaf_hooks->after = std::move(hooks);
  }
  return *hooks_or_null(&meta);
}

void add_leaf_end_hook(const Tensor& t, std::shared_ptr<AccumulateHook> hook) {
  hooks_of(t).others.push_back(std::move(hook));
}

void remove_leaf_end_hook(const Tensor& t, const AccumulateHook* hook) {
  AutogradMeta* meta = meta_or_null(t);
  AccumulateHooks* hooks = hooks_or_null(meta);
  if (hooks == nullptr) return;
  std::erase_if(hooks->others,
                [&](const auto& other) { return other.get() == hook; });
  if (!hooks->others.empty() || hooks->grad_dtype) return;
  meta->leaf_hooks->after = accumulate_hook(t);
}

ScalarType grad_dtype(const Tensor& leaf) {
  AccumulateHooks* hooks = hooks_or_null(meta_or_null(leaf));
  bool chosen = hooks != nullptr && hooks->grad_dtype;
  return chosen ? *hooks->grad_dtype : leaf.dtype();
}

void set_grad_dtype(const Tensor& leaf, ScalarType dtype) {
  const Tensor& grad = grad_of(leaf);
  TAEDA_CHECK(!grad.defined() || dtype == ScalarType::Undefined ||
                  grad.dtype() == dtype,
              "Cannot set grad_dtype to '",
              dtype,
              "' because there is already a gradient with dtype '",
              dtype_name(grad.dtype()),
              "'. Please clear the gradient (.grad = None) first");
  hooks_of(leaf).grad_dtype = dtype;
  forget_accumulator(leaf);
}

bool is_plain_leaf(const Tensor& t) {
  if (!is_leaf(t)) return false;
  AutogradMeta* meta = meta_or_null(t);
  if (meta == nullptr) return true;
  if (meta->leaf_hooks || meta->python_hooks) return false;
  // Hooks of the node are those of programs that keep it.
  IntrusivePtr<Node> node = grad_accumulator_or_null(t);
  return !node || node->extra_or_null() == nullptr;
}

Tensors AccumulateGrad::apply(Tensors&& grads) {
  Tensor grad = std::move(grads[0]);
  AutogradMeta& meta = meta_of(variable_);
  if (!grad.defined() || !variable_.requires_grad()) {
    if (auto* hooks = hooks_or_null(&meta)) hooks->call_others(variable_);
    return {};
  }
  // The dtype may have been chosen after the graph was recorded.
  ScalarType wanted = grad_dtype(variable_);
  if (TAEDA_UNLIKELY(wanted != grad.dtype() &&
                     wanted != ScalarType::Undefined)) {
    grad = cast_to(real_if_needed(grad, wanted), wanted);
  }
  std::unique_lock<std::mutex> guard = lock();
  if (!meta.grad.defined()) {
    NodeExtra* extra = extra_or_null();
    bool watched = extra != nullptr && !extra->post_hooks.empty();
    meta.grad = first_grad(std::move(grad), variable_, watched ? 1 : 0);
  } else if (!grad_enabled() && !goes_second(meta.grad, grad)) {
    ops::add_(meta.grad, grad);
  } else {
    // A graph over the sum is wanted, so the old grad stays what it was.
    meta.grad = goes_second(meta.grad, grad) ? ops::add(grad, meta.grad)
                                             : ops::add(meta.grad, grad);
  }
  guard.unlock();
  if (meta.leaf_hooks && meta.leaf_hooks->after) {
    // The hook may replace itself.
    std::shared_ptr<AccumulateHook> hook = meta.leaf_hooks->after;
    hook->call(variable_);
  }
  return {};
}

}  // namespace taeda::autograd
