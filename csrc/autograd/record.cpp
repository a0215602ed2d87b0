#include <taeda/csrc/autograd/record.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros.h>

namespace taeda::autograd {

void add_edges(Node& node, const Tensor& t) {
  node.add_next_edge(gradient_edge(t));
}
void add_edges(Node& node, TensorList list) {
  for (const Tensor& t : list) add_edges(node, t);
}
void add_edges(Node& node, ArrayRef<OptionalTensor> list) {
  for (const OptionalTensor& t : list) add_edges(node, t);
}

Tensors ZeroNode::apply(Tensors&&) {
  Tensors out(next_edges().size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!should_compute(i)) continue;
    const OutputInfo& to = next_edge(i).node->output(next_edge(i).input_nr);
    out[i] = ops::zeros(
        to.sizes, to.dtype, Layout::Strided, to.device, std::nullopt);
  }
  return out;
}

std::vector<Dims<SymInt>> sizes_of(TensorList list) {
  std::vector<Dims<SymInt>> out;
  out.reserve(list.size());
  for (const Tensor& t : list) out.push_back(kept_sizes(t));
  return out;
}
std::vector<ScalarType> dtypes_of(TensorList list) {
  std::vector<ScalarType> out;
  out.reserve(list.size());
  for (const Tensor& t : list) out.push_back(t.dtype());
  return out;
}

Tensor where_used(const Tensor& unused,
                  const Tensor& operand,
                  const Tensor& grad) {
  Tensor used = ops::where(unused, Scalar(2), operand);
  // A tensor of no dims does not widen the dtype of those it is computed with.
  bool widens = operand.dim() == 0 && used.dim() > 0;
  return widens && is_floating(used.dtype()) ? cast_to(used, grad.dtype())
                                             : used;
}

void missing_derivative(const char* op, const char* what) {
  throw_error(ErrorKind::NotImplemented,
              str_cat(op,
                      ": the derivative needs ",
                      what,
                      ", which this build does not have"));
}

void set_result_history(const Tensor& t, const IntrusivePtr<Node>& node) {
  if (t.defined() && meta_or_null(t) != nullptr) {
    node->add_undefined_output();
    return;
  }
  set_history(t, node);
}

void set_history_if(const std::vector<Tensor>& list,
                    const IntrusivePtr<Node>& node) {
  if (!node) return;
  for (const Tensor& t : list) set_result_history(t, node);
}

}  // namespace taeda::autograd
