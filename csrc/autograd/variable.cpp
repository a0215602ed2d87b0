#include <taeda/csrc/autograd/variable.h>

#include <taeda/aten/core/level.h>
#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/inplace.h>
#include <taeda/gen/ops/detach.h>

#include <mutex>

namespace taeda::autograd {

namespace {
// Accumulators are made lazily, maybe by several threads at once.
std::mutex accumulator_mutex;

const Tensor kUndefined;
}  // namespace

AutogradMeta::~AutogradMeta() { release_node(std::move(grad_fn)); }

AutogradMeta& meta_of(const Tensor& t) {
  TensorImpl* impl = t.impl();
  if (impl->autograd_meta() == nullptr) {
    impl->set_autograd_meta(std::make_unique<AutogradMeta>());
  }
  return *static_cast<AutogradMeta*>(impl->autograd_meta());
}

const Tensor& grad_of(const Tensor& t) {
  AutogradMeta* meta = meta_or_null(t);
  return meta == nullptr ? kUndefined : meta->grad;
}

void set_grad(const Tensor& t, Tensor grad) {
  if (!grad.defined()) {
    if (AutogradMeta* meta = meta_or_null(t)) meta->grad.reset();
    return;
  }
  TAEDA_CHECK(!grad.is_same(t), "can't assign Variable as its own grad");
  ScalarType wanted = grad_dtype(t);
  TAEDA_CHECK(grad.dtype() == wanted || wanted == ScalarType::Undefined,
              "attempting to assign a gradient with dtype '",
              dtype_name(grad.dtype()),
              "' to a tensor with grad_dtype '",
              wanted,
              "': they must be the same; t.grad_dtype = None allows any");
  TAEDA_CHECK(grad.device().type == t.device().type,
              "assigned grad has data located on a different device: expected ",
              t.device(),
              ", got ",
              grad.device());
  TAEDA_CHECK(OutputInfo(t).has_sizes_of(grad),
              "attempting to assign a gradient of size '",
              sym_sizes(*grad.impl()),
              "' to a tensor of size '",
              sym_sizes(*t.impl()),
              "': the sizes must be the same");
  meta_of(t).grad = std::move(grad);
}

IntrusivePtr<Node> grad_fn(const Tensor& t) {
  AutogradMeta* meta = meta_or_null(t);
  if (t.is_view() && t.requires_grad()) return view_grad_fn(t);
  return meta == nullptr ? IntrusivePtr<Node>() : meta->grad_fn;
}

uint32_t output_nr(const Tensor& t) {
  AutogradMeta* meta = meta_or_null(t);
  return meta == nullptr ? 0 : meta->output_nr;
}

void set_requires_grad(const Tensor& t, bool on) {
  if (on == t.requires_grad() && (on || !t.is_view())) return;
  if (on) {
    TAEDA_CHECK(is_differentiable(t.dtype()),
                "only Tensors of floating point and complex dtype can require "
                "gradients, got ",
                dtype_name(t.dtype()));
    TAEDA_CHECK(!t.impl()->is_inference || inference_mode(),
                "Setting requires_grad=True on inference tensor outside "
                "InferenceMode is not allowed.");
    // Made here because leaves are what threads share: afterwards their forward
    // passes only read.
    meta_of(t);
    t.impl()->share_version();
    t.impl()->add_key(DispatchKey::Autograd);
    return;
  }
  TAEDA_CHECK(is_leaf(t),
              "you can only change requires_grad flags of leaf variables. If "
              "you want to use a computed variable in a subgraph that doesn't "
              "require differentiation use var_no_grad = var.detach().");
  t.impl()->remove_key(DispatchKey::Autograd);
}

IntrusivePtr<Node> grad_accumulator_or_null(const Tensor& t) {
  AutogradMeta* meta = meta_or_null(t);
  if (meta == nullptr) return {};
  std::lock_guard<std::mutex> lock(accumulator_mutex);
  return meta->accumulator.lock();
}

void forget_accumulator(const Tensor& t) {
  std::lock_guard<std::mutex> lock(accumulator_mutex);
  if (AutogradMeta* meta = meta_or_null(t)) meta->accumulator = WeakPtr<Node>();
}

IntrusivePtr<Node> grad_accumulator(const Tensor& t) {
  TAEDA_INTERNAL_ASSERT(t.requires_grad(), "the leaf requires no grad");
  std::lock_guard<std::mutex> lock(accumulator_mutex);
  AutogradMeta& meta = meta_of(t);
  TAEDA_INTERNAL_ASSERT(!meta.grad_fn, "grad_accumulator of a non-leaf");
  IntrusivePtr<Node> found = meta.accumulator.lock();
  // set_() may have given the leaf another shape since.
  if (!found || TAEDA_UNLIKELY(!found->output(0).has_sizes_of(t))) {
    found = make_intrusive<AccumulateGrad>(t);
    meta.accumulator = WeakPtr<Node>(found.get());
  }
  return found;
}

Edge gradient_edge(const Tensor& t) {
  if (!t.defined() || !t.requires_grad()) return {};
  if (IntrusivePtr<Node> node = grad_fn(t)) {
    return {std::move(node), output_nr(t)};
  }
  return {grad_accumulator(t), 0};
}

namespace {
// Keeps `retain_grad` working after an in-place change.
void move_retained_grad(const Node* from,
                        uint32_t from_nr,
                        Node& to,
                        uint32_t to_nr) {
  if (from == nullptr || from->extra_or_null() == nullptr) return;
  auto& hooks = from->extra_or_null()->retain_hooks;
  for (auto* h = hooks.begin(); h != hooks.end(); ++h) {
    if (h->output_nr != from_nr) continue;
    to.extra().retain_hooks.push_back({to_nr, std::move(h->hook)});
    hooks.erase(h);
    return;
  }
}
}  // namespace

void set_gradient_edge(const Tensor& t, Edge edge) {
  AutogradMeta& meta = meta_of(t);
  if (TAEDA_UNLIKELY(meta.retains_grad)) {
    move_retained_grad(
        meta.grad_fn.get(), meta.output_nr, *edge.node, edge.input_nr);
  }
  if (meta.grad_fn) release_node(std::move(meta.grad_fn));
  meta.python_hooks.reset();  // they belong to the gradient of what t was
  meta.grad_fn = std::move(edge.node);
  meta.output_nr = edge.input_nr;
  meta.view_version = t.version();
  t.impl()->add_key(DispatchKey::Autograd);
}

void set_history(const Tensor& t, const IntrusivePtr<Node>& node) {
  if (!t.defined() || !is_differentiable(t.dtype())) {
    node->add_undefined_output();
    return;
  }
  uint32_t nr = node->add_output(t);
  set_gradient_edge(t, {node, nr});
}

void register_hook(const Tensor& t, std::shared_ptr<TensorHook> hook) {
  TAEDA_CHECK(t.requires_grad(),
              "cannot register a hook on a tensor that doesn't require "
              "gradient");
  if (IntrusivePtr<Node> node = grad_fn(t)) {
    node->extra().tensor_hooks.push_back({output_nr(t), std::move(hook)});
    return;
  }
  AutogradMeta& meta = meta_of(t);
  if (!meta.leaf_hooks) meta.leaf_hooks = std::make_unique<LeafHooks>();
  meta.leaf_hooks->before.push_back(std::move(hook));
}

void remove_leaf_hook(const Tensor& t, const TensorHook* hook) {
  AutogradMeta* meta = meta_or_null(t);
  if (meta == nullptr || !meta->leaf_hooks) return;
  std::erase_if(meta->leaf_hooks->before,
                [&](const auto& h) { return h.get() == hook; });
}

void set_accumulate_hook(const Tensor& t,
                         std::shared_ptr<AccumulateHook> hook) {
  TAEDA_CHECK(t.requires_grad(),
              "cannot register a hook on a tensor that doesn't require "
              "gradient");
  TAEDA_CHECK(is_leaf(t),
              "post accumulate grad hooks cannot be registered on non-leaf "
              "tensors");
  AutogradMeta& meta = meta_of(t);
  if (!meta.leaf_hooks) meta.leaf_hooks = std::make_unique<LeafHooks>();
  std::shared_ptr<AccumulateHook>& place = meta.leaf_hooks->after;
  auto* hooks = dynamic_cast<AccumulateHooks*>(place.get());
  (hooks == nullptr ? place : hooks->first) = std::move(hook);
}

namespace {
// Stores the gradient that reaches a tensor; holds it weakly, since the tensor
// holds the node that holds this.
struct RetainGrad final : TensorHook {
  explicit RetainGrad(const Tensor& t) : variable(t.impl()) {}
  void call(Tensor& grad) override {
    IntrusivePtr<TensorImpl> impl = variable.lock();
    if (!impl || !grad.defined()) return;
    Tensor t(std::move(impl));
    Tensor& stored = meta_of(t).grad;
    // A pass over a batch of gradients left one that ended with it.
    const Level* level = level_of(stored);
    bool ended = level != nullptr && !level->is_alive();
    if (!stored.defined() || ended) {
      stored = clone_for_grad(grad, grad);
    } else {
      stored = sum_of(stored, grad);
    }
  }
  WeakPtr<TensorImpl> variable;
};
}  // namespace

void retain_grad(const Tensor& t) {
  TAEDA_CHECK(t.requires_grad(),
              "can't retain_grad on Tensor that has requires_grad=False");
  TAEDA_CHECK(!in_transform(),
              "You are attempting to call Tensor.retain_grad() inside of a "
              "function being transformed by a functorch transform (shape ",
              t.sizes(),
              "). Please use the transforms (grad, vjp, jacrev, jacfwd, "
              "hessian) or call retain_grad() outside of the function.");
  if (is_leaf(t)) return;
  AutogradMeta& meta = meta_of(t);
  if (meta.retains_grad) return;
  IntrusivePtr<Node> node = grad_fn(t);
  node->extra().retain_hooks.push_back(
      {output_nr(t), std::make_shared<RetainGrad>(t)});
  meta.retains_grad = true;
}

bool retains_grad(const Tensor& t) {
  AutogradMeta* meta = meta_or_null(t);
  return meta != nullptr && meta->retains_grad && !is_leaf(t);
}

namespace {
// Below autograd, so that a class or mode of Python makes the copy.
Tensor detached_by_python(const Tensor& t) {
  BelowAutograd below;
  return ops::detach(t);
}
}  // namespace

Tensor detach(const Tensor& t) {
  if (TAEDA_UNLIKELY(meets_python(t))) return detached_by_python(t);
  return Tensor(t.impl()->shallow_copy(/*share_version=*/true));
}

Tensor variable_data(const Tensor& t) {
  if (TAEDA_UNLIKELY(meets_python(t))) {
    Tensor out = detached_by_python(t);
    if (!out.is_same(t)) {
      out.impl()->set_version_counter(make_intrusive<VersionCounter>(0));
    }
    return out;
  }
  return Tensor(t.impl()->shallow_copy(/*share_version=*/false));
}

void detach_inplace(const Tensor& t) {
  TAEDA_CHECK(!t.is_view() || !t.requires_grad(),
              "Can't detach views in-place. Use detach() instead. If you are "
              "using DistributedDataParallel (DDP) for training, and "
              "gradient_as_bucket_view is set as True, gradients are views of "
              "DDP buckets, and hence detach_() cannot be called on these "
              "gradients.");
  t.impl()->remove_key(DispatchKey::Autograd);
  if (t.impl()->extra_or_null() != nullptr) t.impl()->extra().tangents.reset();
  AutogradMeta* meta = meta_or_null(t);
  if (meta == nullptr) return;
  release_node(std::move(meta->grad_fn));
  meta->output_nr = 0;
  meta->retains_grad = false;
}

void set_data(const Tensor& t, const Tensor& value) {
  TAEDA_CHECK(t.layout() == value.layout() && !value.impl()->is_inference,
              "Attempted to call `variable.set_data(tensor)`, but `variable` "
              "and `tensor` have incompatible tensor type.");
  TAEDA_CHECK(!t.requires_grad() || is_differentiable(value.dtype()),
              "data set to a tensor that requires gradients must be floating "
              "point or complex dtype");
  // An accumulator remembers the old geometry.
  if (AutogradMeta* meta = meta_or_null(t)) {
    std::lock_guard<std::mutex> lock(accumulator_mutex);
    IntrusivePtr<Node> node = meta->accumulator.lock();
    bool chosen = grad_dtype(t) != t.dtype();
    if (node && (value.dtype() != t.dtype() || value.device() != t.device() ||
                 chosen)) {
      meta->accumulator = WeakPtr<Node>();
    } else if (node) {
      node->replace_output(0, value);
    }
  }
  t.impl()->shallow_copy_from(*value.impl());
}

}  // namespace taeda::autograd
