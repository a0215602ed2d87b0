#include <taeda/csrc/autograd/graph.h>

#include <taeda/aten/iter/copy.h>

#include <taeda/csrc/autograd/formulas.h>
#include <taeda/csrc/autograd/validate.h>
#include <taeda/gen/ops/ones.h>
#include <taeda/gen/ops/ones_like.h>

namespace taeda::autograd {

namespace {
Tensor one_like(const Tensor& t) {
  if (meets_python(t) || t.impl()->is_symbolic()) {
    BelowAutograd below;
    return ops::ones_like(t);
  }
  Tensor one = make_tensor_strided(
      "backward", t.sizes(), t.strides(), t.dtype(), t.device());
  if (t.is_cpu()) {
    Scalar(1).store(t.dtype(), one.mutable_raw_data());
  } else {
    fill_with(one, 1);
  }
  return one;
}

// The gradient given for an output, in the output's form.
Tensor fitted(const OutputInfo& info, Tensor grad, size_t index) {
  TAEDA_CHECK(info.has_sizes_of(grad),
              "Mismatch in shape: grad_output[",
              index,
              "] has a shape of ",
              symbolic_sizes(grad),
              " and output[",
              index,
              "] has a shape of ",
              info.symbolic_sizes(),
              ".");
  TAEDA_CHECK(grad.is_complex() == is_complex(info.dtype),
              "For complex Tensors, both grad_output and output are required "
              "to have the same dtype. Mismatch in dtype: grad_output[",
              index,
              "] has a dtype of ",
              dtype_name(grad.dtype()),
              " and output[",
              index,
              "] has a dtype of ",
              dtype_name(info.dtype),
              ".");
  fit_grad(info, grad, "backward: the gradient given");
  return grad;
}

void check_is_real(ScalarType dtype) {
  TAEDA_CHECK(!is_complex(dtype),
              "grad can be implicitly created only for real scalar outputs but "
              "got ",
              dtype_name(dtype));
}
}  // namespace

Root root_of(Edge edge, Tensor grad, size_t index) {
  TAEDA_CHECK(edge.input_nr < edge.node->num_outputs(),
              "the node of a GradientEdge has no output ",
              edge.input_nr);
  const OutputInfo& info = edge.node->output(edge.input_nr);
  if (grad.defined()) {
    if (info.known) grad = fitted(info, std::move(grad), index);
    return {std::move(edge), std::move(grad)};
  }
  TAEDA_CHECK(info.known && info.symbols.empty() &&
                  std::ranges::count(info.sizes, 1) == std::ssize(info.sizes),
              "grad can be implicitly created only for scalar outputs");
  check_is_real(info.dtype);
  Tensor one = ops::ones(IntArrayRef(info.sizes),
                         info.dtype,
                         Layout::Strided,
                         info.device,
                         std::nullopt);
  return {std::move(edge), std::move(one)};
}

Root root_of(const Tensor& t, const Tensor& grad, size_t index) {
  TAEDA_CHECK(t.defined() && t.requires_grad(),
              "element ",
              index,
              " of tensors does not require grad and does not have a grad_fn");
  Edge edge = gradient_edge(t);
  if (grad.defined()) {
    return {std::move(edge), fitted(OutputInfo(t), grad, index)};
  }
  TAEDA_CHECK(sym_numel(*t.impl()) == 1,
              "grad can be implicitly created only for scalar outputs, got "
              "an output of shape ",
              symbolic_sizes(t));
  check_is_real(t.dtype());
  return {std::move(edge), one_like(t)};
}

Edge input_edge(const Tensor& input) {
  TAEDA_CHECK(input.requires_grad(),
              "One of the differentiated Tensors does not require grad");
  return gradient_edge(input);
}

void unused_input(size_t index) {
  throw_error(
      ErrorKind::Runtime,
      str_cat("One of the differentiated Tensors appears to not have been used "
              "in the graph (input ",
              index,
              "). Set allow_unused=True if this is the desired behavior."));
}

namespace {
struct Start {
  std::vector<Edge> edges;
  std::vector<Tensor> grads;
};

Start start_of(TensorList tensors, TensorList grads) {
  Start start;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Root root = root_of(tensors[i], i < grads.size() ? grads[i] : Tensor(), i);
    start.edges.push_back(std::move(root.edge));
    start.grads.push_back(std::move(root.grad));
  }
  return start;
}
}  // namespace

void backward(TensorList tensors,
              TensorList grads,
              bool keep_graph,
              bool create_graph,
              TensorList inputs) {
  Start start = start_of(tensors, grads);
  std::vector<Edge> edges;
  for (const Tensor& input : inputs) {
    edges.push_back(input_edge(input));
    retain_grad(input);
  }
  BackwardOptions options{keep_graph || create_graph, create_graph, true};
  run_backward(start.edges, std::move(start.grads), edges, options);
}

std::vector<Tensor> grad(TensorList outputs,
                         TensorList inputs,
                         TensorList grad_outputs,
                         bool keep_graph,
                         bool create_graph,
                         bool allow_unused) {
  TAEDA_CHECK_AS(Value, !inputs.empty(), "grad requires non-empty inputs.");
  Start start = start_of(outputs, grad_outputs);
  std::vector<Edge> edges;
  for (const Tensor& input : inputs) edges.push_back(input_edge(input));
  BackwardOptions options{keep_graph || create_graph, create_graph, false};
  auto found =
      run_backward(start.edges, std::move(start.grads), edges, options);
  for (size_t i = 0; i < found.size() && !allow_unused; ++i) {
    if (!found[i].defined()) unused_input(i);
  }
  return found;
}

}  // namespace taeda::autograd
