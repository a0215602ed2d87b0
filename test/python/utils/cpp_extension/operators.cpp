#include <torch/all.h>
#include <torch/library.h>

namespace {

at::Tensor fused_cpu(at::Tensor a, const at::Tensor& b, double c) {
  TORCH_CHECK(a.sizes() == b.sizes());
  TORCH_CHECK_TYPE(a.dtype() == at::kFloat, "fused: not float32: ", a.dtype());
  TORCH_INTERNAL_ASSERT(b.device().type() == at::DeviceType::CPU);
  at::Tensor a_dense = a.contiguous(), b_dense = b.contiguous();
  at::Tensor result = torch::empty(a_dense.sizes(), a_dense.options());
  const float* x = a_dense.data_ptr<float>();
  const float* y = b_dense.const_data_ptr<float>();
  float* out = result.data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); ++i) out[i] = x[i] * y[i] + c;
  return result;
}

void add_into(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  out.copy_(a + b);
}

// The schema is the C++ function's.
std::tuple<torch::Tensor, int64_t> counted(torch::Tensor x,
                                           std::optional<double> scale) {
  return {x * scale.value_or(2.0), x.numel()};
}

struct Squared : torch::autograd::Function<Squared> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx,
                               torch::Tensor x) {
    at::AutoDispatchBelowAutograd guard;
    ctx->save_for_backward({x});
    static auto op = torch::Dispatcher::singleton()
                         .findSchemaOrThrow("ported::squared", "")
                         .typed<torch::Tensor(const torch::Tensor&)>();
    return op.call(x);
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* ctx,
      torch::autograd::variable_list grads) {
    return {grads[0] * ctx->get_saved_variables()[0] * 2};
  }
};
torch::Tensor squared_cpu(const torch::Tensor& x) { return x * x; }
torch::Tensor squared_autograd(const torch::Tensor& x) {
  return Squared::apply(x);
}

}  // namespace

TORCH_LIBRARY(ported, m) {
  m.def("fused(Tensor a, Tensor b, float c) -> Tensor");
  m.def("add_into(Tensor a, Tensor b, Tensor(a!) out) -> ()");
  m.def("counted", counted);
  m.def("squared(Tensor x) -> Tensor");
  m.def("thrice", [](torch::Tensor x) { return x * 3; });
}
TORCH_LIBRARY_IMPL(ported, CPU, m) {
  m.impl("fused", &fused_cpu);
  m.impl("add_into", TORCH_FN(add_into));
  m.impl("squared", squared_cpu);
}
TORCH_LIBRARY_IMPL(ported, Autograd, m) { m.impl("squared", squared_autograd); }
