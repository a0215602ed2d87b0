#include <taeda/taeda.h>

using taeda::Tensor;
using taeda::autograd::AutogradContext;
using taeda::autograd::variable_list;

namespace {

struct ScaledCube : taeda::autograd::Function<ScaledCube> {
  static Tensor forward(AutogradContext* ctx, Tensor x, double scale) {
    ctx->save_for_backward({x});
    ctx->saved_data["scale"] = scale;
    return x * x * x * scale;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    Tensor x = ctx->get_saved_variables()[0];
    double scale = ctx->saved_data["scale"].to_double();
    return {grads[0] * x * x * (3 * scale), Tensor()};
  }
};

Tensor scaled_cube(const Tensor& x, double scale) {
  return ScaledCube::apply(x, scale);
}

// Written with a loop of its own, per device.
Tensor twice_on_cpu(const Tensor& x) {
  TAEDA_CHECK(
      x.dtype() == taeda::kFloat, "twice: expected float32, got ", x.dtype());
  Tensor in = x.contiguous(), out = taeda::empty_like(in);
  for (int64_t i = 0; i < in.numel(); ++i) {
    out.data_ptr<float>()[i] = 2 * in.const_data<float>()[i];
  }
  return out;
}
Tensor twice_on_meta(const Tensor& x) { return taeda::empty_like(x); }

std::vector<Tensor> parts(const Tensor& x, std::optional<int64_t> count) {
  return x.chunk(count.value_or(2));
}

}  // namespace

TAEDA_LIBRARY(cpp_operators, m) {
  m.def("scaled_cube(Tensor x, float scale) -> Tensor", scaled_cube);
  m.def("twice(Tensor x) -> Tensor");
  m.def("parts(Tensor x, int? count=None) -> Tensor[]", parts);
}
TAEDA_LIBRARY_IMPL(cpp_operators, CPU, m) { m.impl("twice", twice_on_cpu); }
TAEDA_LIBRARY_IMPL(cpp_operators, Meta, m) { m.impl("twice", twice_on_meta); }
