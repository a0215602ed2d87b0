// Programs as graphs: what they call below autograd, forward and backward.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>
#include <taeda/csrc/functorch/functional_views.h>

#include <functional>
#include <memory>
#include <span>

namespace taeda::compiler {

// Note [Tracing]
// A program is called with wrappers of a FunctionalLevel around wrappers of a
// TraceLevel around meta tensors. Autograd records the outermost ones; what
// comes out of the FunctionalLevel writes nothing; the TraceLevel notes it and
// lets the meta tensors say what sizes come of it. Wrappers have the device of
// the inputs, so that programs and composites take the way that they take
// eagerly. The backward pass is the engine's run over the outermost wrappers.
// A tensor from elsewhere is a constant of the graph.
using Program =
    std::function<std::vector<TensorBase>(std::span<const TensorBase>)>;

// Sizes of a program's inputs as expressions over symbols of one ShapeEnv. The
// program may ask for the symbols themselves: what is so decided about them,
// and what the trace decides, are guards of the env.
struct SymbolicInputs {
  struct Geometry {
    std::vector<SymInt> sizes, strides;
  };
  IntrusivePtr<ShapeEnv> env;
  // Whose values calls get; those that are known to be something else by now
  // are that.
  std::vector<SymInt> symbols;
  // By input; nothing where its sizes and strides are those that it has.
  std::vector<std::optional<Geometry>> inputs;
};

// How a result of the program is had from what the graph computes.
struct Result {
  enum Kind : uint8_t {
    None,      // no tensor
    Output,    // output `index` of the graph
    Input,     // the program's input `index`, after what is written to it
    OfInput,   // a view of that, made by `steps`
    OfOutput,  // a view of output `index`
    Constant,
  };
  Kind kind = None;
  size_t index = 0;
  functorch::ViewSteps steps;
  TensorBase constant;
};
// Output `output` is what input `input` holds afterwards.
struct Mutation {
  size_t input = 0;
  size_t output = 0;
  bool recorded = false;  // in grad mode
};

// What is left of a trace, to trace other backward passes of the same program.
class Tape {
 public:
  virtual ~Tape() = default;
  // The pass in which only these tangents arrive. The traced graph with further
  // calls behind it, its outputs the gradients alone. Not by several threads at
  // once.
  virtual Graph backward(const std::vector<bool>& arrived) = 0;
  // Whether guards were left since `settle` was called last.
  virtual bool has_decided() const = 0;
  virtual void settle() = 0;
};

// Of a program with backward passes of its own: Note [Passes inside].
struct InnerPasses {
  size_t own = 0;  // inputs of the program; the others are their grads
  std::vector<size_t> holders;  // by grad: whose it is
};

struct Traced {
  // Inputs: the program's, then a tangent for each differentiable output.
  // Outputs: `outputs` of the forward part, then a gradient for each input.
  Graph graph;
  size_t inputs = 0;
  size_t outputs = 0;
  // The tangent of an output: a place among the graph's inputs, -1 where it is
  // not differentiated.
  std::vector<int32_t> tangents;
  // The program's, then a grad for each of the inputs that `graded` names.
  std::vector<Result> results;
  std::vector<size_t> graded;
  // Outputs whose backward pass raises, and what it says.
  std::vector<std::pair<size_t, std::string>> released;
  std::vector<Mutation> mutations;
  bool joint = false;
  std::unique_ptr<Tape> tape;  // where there are two tangents or more
};

// Whether calls have to be seen by somebody: levels, modes of Python. What is
// traced would be seen too.
bool is_watched();

// With `joint`, gradients of inputs that require grad are traced too. An Error
// where the program cannot be one graph: it reads what tensors hold, or
// changes what an input is.
Traced trace(const Program& program,
             std::span<const TensorBase> inputs,
             bool joint,
             const SymbolicInputs* symbolic = nullptr,
             const InnerPasses* passes = nullptr);

}  // namespace taeda::compiler
