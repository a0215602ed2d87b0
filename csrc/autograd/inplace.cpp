#include <taeda/csrc/autograd/inplace.h>

#include <taeda/csrc/autograd/fields.h>

#include <taeda/csrc/autograd/formulas_views.h>
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/fill.h>
#include <taeda/gen/ops/zeros.h>

namespace taeda::autograd {

// Note [Views]
// A view knows the tensor that it is a view of, from its creation and below
// autograd. An in-place operation on a view is, for the base, an operation that
// replaces a slice: CopySlices stands for it in the base's history. The view,
// like every other view of that base, then finds by the version that its own
// grad_fn is outdated, and gets a new one that takes it out of the base.

namespace {
std::string view_error(const Tensor& t, const Node* node) {
  return str_cat(
      "Output ",
      output_nr(t),
      " of ",
      node == nullptr ? std::string("a view function") : operator_name(*node),
      " is a view and is being modified inplace. ");
}

std::string made_under(const Tensor& t,
                       const Node* node,
                       const char* mode,
                       const char* block,
                       const char* where) {
  // A node is that of a view which was made of such a view since.
  std::string what = node == nullptr
                         ? "A view was"
                         : str_cat("Output ",
                                   output_nr(t),
                                   " of ",
                                   operator_name(*node),
                                   " is a view of a view which was");
  return str_cat(
      what,
      " created in ",
      mode,
      " and is being modified inplace",
      where,
      ". Given that this use case is ambiguous and error-prone, it is "
      "forbidden. You can clarify your code by moving both the view and the "
      "inplace either both inside the ",
      block,
      " (if you don't want the inplace to be tracked) or both outside (if you "
      "want the inplace to be tracked).");
}

void check_view_creation(const Tensor& t) {
  ViewCreation how = t.impl()->view_creation();
  if (how == ViewCreation::Default) return;
  AutogradMeta* meta = meta_or_null(t);
  const Node* node = meta == nullptr ? nullptr : meta->grad_fn.get();
  std::string text = view_error(t, node);
  switch (how) {
    case ViewCreation::NoGrad:
      text = made_under(
          t, node, "no_grad mode", "no_grad block", " with grad mode enabled");
      break;
    case ViewCreation::Inference:
      text = made_under(t, node, "inference mode", "inference_mode block", "");
      break;
    case ViewCreation::MultiOutput:
      text +=
          "This view is the output of a function that returns multiple views. "
          "Such functions do not allow the output views to be modified "
          "inplace. You should replace the inplace operation by an "
          "out-of-place one.";
      break;
    case ViewCreation::CustomFunction:
      text +=
          "This view was created inside a custom Function (or because an "
          "input was returned as-is) and the autograd logic to handle "
          "view+inplace would override the custom backward associated with "
          "the custom Function, leading to incorrect gradients. This behavior "
          "is forbidden. You can fix this by cloning the output of the custom "
          "Function.";
      break;
    case ViewCreation::Default:
      break;
  }
  throw_error(ErrorKind::Runtime, std::move(text));
}
}  // namespace

void check_inplace(const Tensor& self, bool recorded) {
  if (!recorded || !grad_enabled()) return;
  if (self.is_view()) {
    Tensor base(self.impl()->base());
    if (self.requires_grad() || base.requires_grad() || recorded) {
      check_view_creation(self);
    }
    TAEDA_CHECK(!base.requires_grad() || !is_leaf(base),
                "a view of a leaf Variable that requires grad is being used in "
                "an in-place operation.");
  }
  TAEDA_CHECK(!self.requires_grad() || !is_leaf(self),
              "a leaf Variable that requires grad is being used in an "
              "in-place operation.");
}

namespace {
// The view of `base` that `geometry` and `replay` describe.
Tensor slice_of(const Tensor& base,
                int64_t base_offset,
                const TensorGeometry& geometry,
                const std::shared_ptr<ViewReplay>& replay) {
  Tensor from = base;
  int64_t offset = geometry.storage_offset - base_offset;
  if (replay) {
    from = Tensor(replay->replay(base.impl_ptr()));
    offset = geometry.storage_offset - base_offset + from.storage_offset();
    if (from.sizes() == IntArrayRef(geometry.sizes) &&
        from.strides() == IntArrayRef(geometry.strides)) {
      return from;
    }
  } else {
    offset += base.storage_offset();
  }
  return ops::as_strided(from, geometry.sizes, geometry.strides, offset);
}

// The gradient with the base's strides, so that a slice of it is where the
// slice of the base was. Holes of the base's storage are never read.
Tensor laid_out_like(const TensorGeometry& g, const Tensor& grad) {
  Tensor shaped = empty_beside(grad, g.sizes, g.strides);
  ops::copy_(shaped, grad);
  return shaped;
}

class CopySlices final : public Node {
 public:
  CopySlices() = default;
  CopySlices(const Tensor& base, const Tensor& view, IntrusivePtr<Node> fn)
      : base_(base), view_(view), fn_(std::move(fn)) {
    if (const TensorExtra* extra = view.impl()->extra_or_null()) {
      replay_ = extra->replay;
    }
    add_next_edge(gradient_edge(base));
    for (size_t i = 1; i < fn_->next_edges().size(); ++i) {
      add_next_edge(fn_->next_edge(i));
    }
    add_output(base);
  }
  ~CopySlices() override { release_node(std::move(fn_)); }

  std::string name() const override { return "CopySlices"; }
  void release_variables() override {
    auto guard = lock();
    if (fn_) fn_->release_variables();
    released_ = true;
  }
  Tensors apply(Tensors&& grads) override;
  bool list_fields(NodeFields& fields) override {
    // What a replay does is its own.
    if (!fn_ || released_ || replay_) return false;
    fields.add_kind(typeid(*fn_));
    fields.add(base_, view_);
    return fn_->list_fields(fields);
  }
  IntrusivePtr<Node> blank() const override {
    auto out = make_intrusive<CopySlices>();
    out->fn_ = fn_->blank();
    // Of the sizes that these know, none differs without the view's.
    for (size_t i = 0; i < fn_->num_outputs(); ++i) {
      out->fn_->add_output(fn_->output(i));
    }
    for (const Edge& edge : fn_->next_edges()) out->fn_->add_next_edge(edge);
    return out;
  }

 private:
  TensorGeometry base_;
  TensorGeometry view_;
  std::shared_ptr<ViewReplay> replay_;
  IntrusivePtr<Node> fn_;
  bool released_ = false;
};

Tensors CopySlices::apply(Tensors&& grads) {
  Tensors out(next_edges().size());
  if (!grads[0].defined()) return out;
  Tensor result = laid_out_like(base_, grads[0]);
  Tensor slice = slice_of(result, base_.storage_offset, view_, replay_);
  Tensors inner;
  inner.push_back(ops::clone(slice));
  for (size_t i = 1; i < fn_->num_outputs(); ++i) inner.emplace_back();
  Tensors found = fn_->apply(std::move(inner));
  for (size_t i = 0; i < found.size() && i < out.size(); ++i) {
    if (!should_compute(i)) continue;
    if (i > 0) {
      out[i] = std::move(found[i]);
      continue;
    }
    Tensor value = found[0];
    if (!value.defined()) {
      value = ops::zeros(slice.sizes(),
                         slice.dtype(),
                         slice.layout(),
                         slice.device(),
                         std::nullopt);
    }
    ops::copy_(slice, value);
    out[0] = result;
  }
  return out;
}

// The grad_fn of a regenerated view.
class AsStridedBackward final : public Node {
 public:
  AsStridedBackward() = default;
  AsStridedBackward(const Tensor& base, const Tensor& view)
      : base_(base), view_(view) {
    add_next_edge(gradient_edge(base));
  }
  std::string name() const override { return "AsStridedBackward0"; }
  bool list_fields(NodeFields& fields) override {
    fields.add(base_, view_);
    return true;
  }
  IntrusivePtr<Node> blank() const override {
    return make_intrusive<AsStridedBackward>();
  }
  Tensors apply(Tensors&& grads) override {
    Tensors out(1);
    if (!grads[0].defined()) return out;
    out[0] = scatter_strided(grads[0], base_, view_);
    return out;
  }

 private:
  static Tensor scatter_strided(const Tensor& grad,
                                const TensorGeometry& base,
                                const TensorGeometry& view);
  TensorGeometry base_;
  TensorGeometry view_;
};

// The base was written, by this view or by another one.
Tensor AsStridedBackward::scatter_strided(const Tensor& grad,
                                          const TensorGeometry& base,
                                          const TensorGeometry& view) {
  if (may_overlap(view.sizes, view.strides)) {
    return as_strided_grad(grad,
                           base,
                           as_symbolic(view.sizes),
                           as_symbolic(view.strides),
                           view.storage_offset);
  }
  // Beside the gradient, which may be a batch of them.
  Tensor shaped = empty_beside(grad, base.sizes, base.strides);
  ops::fill_(shaped, 0);
  ops::copy_(slice_of(shaped, base.storage_offset, view, nullptr), grad);
  return shaped;
}
}  // namespace

void rebase_history(const Tensor& self, const IntrusivePtr<Node>& node) {
  if (!node || !is_differentiable(self.dtype())) return;
  if (!self.is_view()) {
    set_history(self, node);
    return;
  }
  // Gives the node its output: a saved result becomes an output of it.
  node->add_output(self);
  Tensor base(self.impl()->base());
  set_gradient_edge(base, {make_intrusive<CopySlices>(base, self, node), 0});
  AutogradMeta& meta = meta_of(self);
  meta.view_version = self.version() - 1;
  self.impl()->add_key(DispatchKey::Autograd);
  view_grad_fn(self);
}

IntrusivePtr<Node> view_grad_fn(const Tensor& view) {
  AutogradMeta& meta = meta_of(view);
  Tensor base(view.impl()->base());
  if (meta.grad_fn && meta.view_version == view.version()) return meta.grad_fn;
  if (!base.requires_grad()) return meta.grad_fn;
  if (!meta.grad_fn && view.impl()->view_creation() != ViewCreation::Default) {
    return {};  // made under no_grad: a leaf
  }
  const TensorExtra* extra = view.impl()->extra_or_null();
  if (extra != nullptr && extra->replay) {
    GradModeGuard on(true);
    Tensor fresh = slice_of(
        base, base.storage_offset(), TensorGeometry(view), extra->replay);
    set_gradient_edge(view, {grad_fn(fresh), output_nr(fresh)});
    return meta.grad_fn;
  }
  auto node = make_intrusive<AsStridedBackward>(base, view);
  set_history(view, node);
  return node;
}

void mark_multi_output_views(const std::vector<Tensor>& views) {
  for (const Tensor& view : views) {
    if (view.is_view() &&
        view.impl()->view_creation() == ViewCreation::Default) {
      view.impl()->set_view_creation(ViewCreation::MultiOutput);
    }
  }
}

}  // namespace taeda::autograd
