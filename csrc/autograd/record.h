// What generated wrappers are made of: recording a call as a node.
#pragma once

#include <taeda/csrc/autograd/engine.h>
#include <taeda/csrc/autograd/fields.h>
#include <taeda/csrc/autograd/formulas.h>
#include <taeda/csrc/autograd/formulas_sparse.h>
#include <taeda/csrc/autograd/inplace.h>
#include <taeda/csrc/autograd/saved_variable.h>
#include <taeda/csrc/autograd/scalar_math.h>
#include <taeda/csrc/autograd/variable.h>

#include <taeda/aten/core/op_types.h>
#include <taeda/aten/iter/pointwise.h>

#include <type_traits>
#include <utility>

namespace taeda::autograd {

// Whether some tensor among the arguments is to be differentiated.
inline bool needs_grad(const Tensor& t) {
  return t.defined() && t.requires_grad();
}
inline bool needs_grad(const OptionalTensor& t) { return t && needs_grad(*t); }
inline bool needs_grad(TensorList list) {
  for (const Tensor& t : list) {
    if (needs_grad(t)) return true;
  }
  return false;
}
inline bool needs_grad(ArrayRef<OptionalTensor> list) {
  for (const OptionalTensor& t : list) {
    if (needs_grad(t)) return true;
  }
  return false;
}
inline bool needs_grad(const std::optional<TensorList>& list) {
  return list && needs_grad(*list);
}

template <class... A>
bool any_needs_grad(const A&... arguments) {
  return (needs_grad(arguments) || ...);
}

TAEDA_API void add_edges(Node& node, const Tensor& t);
TAEDA_API void add_edges(Node& node, TensorList list);
TAEDA_API void add_edges(Node& node, ArrayRef<OptionalTensor> list);
inline void add_edges(Node& node, const OptionalTensor& t) {
  if (t) {
    add_edges(node, *t);
  } else {
    node.add_next_edge({});
  }
}
inline void add_edges(Node& node, const std::optional<TensorList>& list) {
  if (list) add_edges(node, *list);
}

// A node with edges for the differentiable arguments, null when none of them
// needs a gradient or grad mode is off.
template <class N, class... A>
IntrusivePtr<N> record(const A&... arguments) {
  if (!grad_enabled() || !any_needs_grad(arguments...)) return {};
  IntrusivePtr<N> node = make_intrusive<N>();
  (add_edges(*node, arguments), ...);
  return node;
}
// The same for calls that have no derivative: raises in backward.
template <class... A>
IntrusivePtr<Node> record_missing(const char* op, const A&... arguments) {
  if (!grad_enabled() || !any_needs_grad(arguments...)) return {};
  auto node = make_intrusive<NotImplementedNode>(op);
  (add_edges(*node, arguments), ...);
  return node;
}

// Of a changed tensor whose new values do not depend on anything (comparisons
// in place): its gradients are zeros.
class TAEDA_API ZeroNode final : public Node {
 public:
  explicit ZeroNode(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  Tensors apply(Tensors&& grads) override;

 private:
  std::string name_;
};
template <class... A>
IntrusivePtr<Node> record_zero(const char* name, const A&... arguments) {
  if (!grad_enabled() || !any_needs_grad(arguments...)) return {};
  auto node = make_intrusive<ZeroNode>(name);
  (add_edges(*node, arguments), ...);
  return node;
}

// A functional form's result becomes an output of the node. One that has an
// autograd state already is no new tensor but an argument that was handed
// through; its own history stands.
TAEDA_API void set_result_history(const Tensor& t,
                                  const IntrusivePtr<Node>& node);
inline void set_history_if(const Tensor& t, const IntrusivePtr<Node>& node) {
  if (node) set_result_history(t, node);
}
TAEDA_API void set_history_if(const std::vector<Tensor>& list,
                              const IntrusivePtr<Node>& node);

// out= forms take no part in differentiation.
template <class... A>
void check_out(const char* op, const A&... arguments) {
  if (!grad_enabled() || !any_needs_grad(arguments...)) return;
  TAEDA_CHECK(false,
              op,
              "(): functions with out=... arguments don't support automatic "
              "differentiation, but one of the arguments requires grad.");
}

// Pieces of generated apply functions.
inline bool any_defined(const Tensors& grads) {
  for (const Tensor& g : grads) {
    if (g.defined()) return true;
  }
  return false;
}
inline void put_list(Tensors& out, size_t start, std::vector<Tensor> grads) {
  for (size_t i = 0; i < grads.size(); ++i)
    out[start + i] = std::move(grads[i]);
}
inline bool is_given(const Tensor& t) { return t.defined(); }
inline bool is_given(const OptionalTensor& t) { return t && t->defined(); }
TAEDA_API std::vector<Dims<SymInt>> sizes_of(TensorList list);
TAEDA_API std::vector<ScalarType> dtypes_of(TensorList list);
[[noreturn]] TAEDA_API void missing_derivative(const char* op,
                                               const char* what);
inline Tensor no_complex_derivative(const char* op, const char* what) {
  missing_derivative(op, what);
}

// What nodes keep of sizes and of integers that may be symbols.
inline Dims<SymInt> kept_sizes(const Tensor& t) {
  return t.defined() ? Dims<SymInt>(symbolic_sizes(t)) : Dims<SymInt>();
}
inline SymInt kept_symbols(int64_t v) { return v; }
inline SymInt kept_symbols(const SymInt& v) { return v; }
inline Dims<SymInt> kept_symbols(IntArrayRef list) { return as_symbolic(list); }
inline Dims<SymInt> kept_symbols(SymIntArrayRef list) { return list; }
template <class T>
auto kept_symbols(const std::optional<T>& v) {
  return v ? std::optional(kept_symbols(*v)) : std::nullopt;
}

// The sizes that the gradient of an edge is brought to; of fused kernels, which
// compute on plain tensors, integers.
inline IntArrayRef sizes_of_edge(const Node& node, size_t index) {
  const Edge& edge = node.next_edge(index);
  return edge.node->output(edge.input_nr).sizes;
}
inline SymIntArrayRef symbolic_sizes_of_edge(const Node& node, size_t index) {
  const Edge& edge = node.next_edge(index);
  return edge.node->output(edge.input_nr).symbolic_sizes();
}

// Whether a derivative may run as one fused CPU kernel: no graph over it is
// wanted, and the tensors are plain ones of the CPU.
inline bool is_plain_cpu(const Tensor& t) {
  constexpr DispatchKeySet kPlain{DispatchKey::CPU, DispatchKey::Autograd};
  return t.defined() && (t.keys() - kPlain).empty();
}
template <class... T>
bool can_fuse(const Tensor& grad, const T&... others) {
  if (grad_enabled() || local_state.included != 0) return false;
  if (!is_plain_cpu(grad)) return false;
  [[maybe_unused]] bool complex_grad = grad.is_complex();
  return ((is_plain_cpu(others) && (complex_grad || !others.is_complex())) &&
          ...);
}

// Note [Derivatives of 16 bits]
// A fused kernel computes a derivative in float and rounds it once. The calls
// that say the same under transforms, in traces and for second derivatives
// would round between them, so that a compiled program's gradient would not be
// the eager one's: they get floats, and their result is rounded. Wider floating
// operands promote the calls anyway, and those stay as they are.
inline bool is_small_float(const Tensor& t) {
  return t.defined() && (t.dtype() == kHalf || t.dtype() == kBFloat16);
}
inline bool is_compressed(const Tensor& t) {
  return t.defined() && t.layout() != Layout::Strided;
}
// The same calls give no result where they meet sparse tensors (1 + self has no
// zeros): those are computed for the entries of the gradient.
template <class F, class... T>
Tensor rounded_once(F&& derivative, const Tensor& grad, const T&... others) {
  bool compressed = (is_compressed(others) || ...);
  if (compressed && holds_entries(grad, {&others...})) [[unlikely]] {
    auto again = [](void* f, const Tensor& g, const Tensor* o) {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return rounded_once(
            *static_cast<std::remove_reference_t<F>*>(f), g, o[I]...);
      }(std::index_sequence_for<T...>());
    };
    return at_entries(grad,
                      {&others...},
                      again,
                      const_cast<void*>(static_cast<const void*>(&derivative)));
  }
  bool narrow = is_small_float(grad) &&
                ((!others.defined() || others.dtype() == grad.dtype() ||
                  is_integral(others.dtype(), /*include_bool=*/true)) &&
                 ...);
  if (!narrow) return derivative(grad, others...);
  auto widened = [](const Tensor& t) {
    return is_small_float(t) ? cast_to(t, kFloat) : t;
  };
  return cast_to(derivative(widened(grad), widened(others)...), grad.dtype());
}
// See Note [Arms of selects]: 2 where `unused`, a number at which no logarithm,
// power, root or inverse is infinite.
TAEDA_API Tensor where_used(const Tensor& unused,
                            const Tensor& operand,
                            const Tensor& grad);
template <class... T>
bool any_complex(const T&... tensors) {
  return ((tensors.defined() && tensors.is_complex()) || ...);
}

}  // namespace taeda::autograd
