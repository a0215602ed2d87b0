// A gated unit: tanh(a) * sigmoid(b), where a and b are halves of x w^T + bias.
#include <torch/extension.h>

#include <vector>

std::vector<torch::Tensor> forward(torch::Tensor x,
                                   torch::Tensor w,
                                   torch::Tensor bias) {
  auto both = torch::addmm(bias, x, w.transpose(0, 1)).chunk(2, /*dim=*/1);
  auto value = torch::tanh(both[0]);
  auto gate = at::sigmoid(both[1]);
  return {value * gate, value, gate};
}

std::vector<at::Tensor> backward(torch::Tensor grad,
                                 const torch::Tensor& value,
                                 const torch::Tensor& gate,
                                 torch::Tensor x,
                                 torch::Tensor w) {
  auto d_value = grad * gate * (1 - value.pow(2));
  auto d_gate = grad * value;
  d_gate *= (1 - gate) * gate;
  auto d_both = torch::cat({d_value, d_gate}, /*dim=*/1);
  return {d_both.mm(w), d_both.t().mm(x), d_both.sum(0)};
}

torch::Tensor elu_slope(torch::Tensor z, torch::Scalar alpha = 1.0) {
  auto e = z.exp();
  auto low = (alpha * (e - 1)) < 0;
  return (z > 0).type_as(z) + low.type_as(z) * (alpha * e);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, "The gated unit");
  m.def("backward", &backward, "Its gradients");
  m.def("elu_slope", &elu_slope, py::arg("z"), py::arg("alpha") = 1.0);
}
