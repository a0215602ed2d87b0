#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/csrc/autograd/function.h>
#include <taeda/csrc/autograd/inplace.h>
#include <taeda/csrc/autograd/variable.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

namespace taeda::autograd {

namespace {
bool among(const Tensor& t, const std::vector<Tensor>& list) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& other) {
    return other.is_same(t);
  });
}

// A tensor of a transform's level, see aten/core/level.h.
bool is_wrapper(const Tensor& t) { return wrapped_or_null(t) != nullptr; }
// Another wrapper of the value: wrappers have no memory to make a view of.
Tensor fresh_wrapper(const Tensor& t) {
  const Wrapped& w = *wrapped_or_null(t);
  return make_wrapper(w.level, w.value, t.sizes(), t.strides(), w.batch_dim);
}
}  // namespace

FunctionContext::~FunctionContext() = default;

bool FunctionContext::needs_input_grad(size_t i) const {
  TAEDA_CHECK_AS(Index,
                 i < node_->inputs_.size(),
                 "needs_input_grad: forward has ",
                 node_->inputs_.size(),
                 " arguments, got index ",
                 i);
  return node_->inputs_[i].needs_grad;
}

std::vector<Tensor> FunctionContext::saved() const {
  auto guard = node_->lock();
  return unpack_list(saved_, *node_);
}

FunctionNode::FunctionNode(std::string name,
                           std::unique_ptr<FunctionContext> context,
                           Backward backward)
    : name_(std::move(name)),
      context_(std::move(context)),
      backward_(backward) {
  context_->node_ = this;
}

void FunctionNode::add_argument(const Tensor& t) {
  bool needs = grad_enabled() && t.defined() && t.requires_grad();
  inputs_.push_back({t, /*is_tensor=*/true, needs});
  add_next_edge(needs ? gradient_edge(t) : Edge());
}

// Results get their history here, after forward has run, since only then the
// context says which were changed in place (dirty) and which have no
// derivative. An argument that is returned as it came needs a view, for one
// tensor has one place in the graph.
void FunctionNode::record(ArrayRef<Tensor*> results) {
  bool any = std::any_of(inputs_.begin(), inputs_.end(), [](const Input& in) {
    return in.needs_grad;
  });
  if (any) {
    auto self = IntrusivePtr<Node>::share(this);
    for (Tensor* t : results) {
      bool dirty = among(*t, context_->dirty_);
      bool given = std::any_of(inputs_.begin(), inputs_.end(), [&](auto& in) {
        return in.tensor.is_same(*t);
      });
      bool fixed = among(*t, context_->non_differentiable_);
      record_result(
          self, *t, {dirty, given && !dirty, fixed, results.size() == 1});
    }
    save(results);
  }
  // The node must not keep its arguments alive, nor hold a result, which holds
  // the node.
  for (Input& in : inputs_) in.tensor.reset();
  for (auto* list : {&context_->to_save_,
                     &context_->dirty_,
                     &context_->non_differentiable_}) {
    list->clear();
  }
}

void record_result(const IntrusivePtr<Node>& node, Tensor& t, ResultKind kind) {
  if (!t.defined()) {
    node->add_undefined_output();
    return;
  }
  if (kind.non_differentiable || !is_differentiable(t.dtype())) {
    TAEDA_CHECK(!kind.dirty,
                node->name(),
                ": a tensor that is marked dirty cannot be marked "
                "non-differentiable");
    node->add_undefined_output();
    if (kind.through) t = is_wrapper(t) ? fresh_wrapper(t) : detach(t);
    return;
  }
  if (kind.dirty) {
    TAEDA_CHECK(
        kind.alone || !t.is_view(),
        "If your Function modifies inplace an input that is a view of "
        "another Tensor, your Function cannot return more than one "
        "Tensor. Either the input is no view (a clone, for example), or "
        "the Function returns one Tensor.");
    check_inplace(t, /*recorded=*/true);
    rebase_history(t, node);
    return;
  }
  if (kind.through) {
    t = is_wrapper(t)
            ? fresh_wrapper(t)
            : make_view(t, t.sizes(), t.strides(), t.storage_offset());
  }
  if (t.is_view()) mark_function_view(t, kind.alone);
  set_history(t, node);
}

void mark_function_view(const Tensor& view, bool alone) {
  view.impl()->set_view_creation(alone ? ViewCreation::CustomFunction
                                       : ViewCreation::MultiOutput);
}

void FunctionNode::save(ArrayRef<Tensor*> results) {
  for (const Tensor& t : context_->to_save_) {
    bool is_output = std::any_of(results.begin(),
                                 results.end(),
                                 [&](Tensor* r) { return r->is_same(t); });
    context_->saved_.emplace_back(t, is_output);
  }
}

// Missing gradients become zeros unless the function asked to see them as they
// are (set_materialize_grads). Results of unknown size stay undefined.
Tensors FunctionNode::apply(Tensors&& grads) {
  std::vector<Tensor> given(grads.begin(), grads.end());
  for (size_t i = 0; context_->materialize_ && i < given.size(); ++i) {
    const OutputInfo& info = output(i);
    if (given[i].defined() || !info.known) continue;
    given[i] = make_tensor(name_, info.sizes, info.dtype, info.device);
    if (!info.device.is_meta()) fill_with(given[i], 0);
  }
  std::vector<Tensor> found = backward_(*context_, std::move(given));
  TAEDA_CHECK(found.size() == inputs_.size(),
              name_,
              ": backward returned an incorrect number of gradients (expected ",
              inputs_.size(),
              ", got ",
              found.size(),
              ")");
  Tensors out;
  for (size_t i = 0; i < found.size(); ++i) {
    if (inputs_[i].is_tensor) {
      out.push_back(std::move(found[i]));
      continue;
    }
    TAEDA_CHECK(!found[i].defined(),
                name_,
                ": backward returned a gradient at position ",
                i,
                ", but forward's argument there is no tensor");
  }
  return out;
}

void FunctionNode::release_variables() {
  auto guard = lock();
  release_list(context_->saved_);
  context_->saved_data.clear();
}

std::string class_name(const char* mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 ? text : mangled;
  std::free(text);
  return name;
}

}  // namespace taeda::autograd
