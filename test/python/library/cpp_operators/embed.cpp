// Fits y = 2x + 1 by gradient descent; no Python in the process.
#include <taeda/taeda.h>
#include <taeda/torch_namespace.h>

#include <cmath>
#include <cstdio>

int main() {
  torch::Tensor x = taeda::arange(-1.0, 1.0, 0.125, taeda::kDouble);
  torch::Tensor y = x * 2 + 1;
  torch::Tensor w = taeda::zeros({2}, taeda::kDouble).requires_grad_();
  for (int step = 0; step < 400; ++step) {
    torch::Tensor error = x * w.select(0, 0) + w.select(0, 1) - y;
    (error * error).mean().backward();
    torch::GradModeGuard off(false);
    w -= w.grad() * 0.5;
    torch::autograd::set_grad(w, {});
  }
  double a = w.select(0, 0).item<double>(), b = w.select(0, 1).item<double>();
  std::printf("%.6f %.6f\n", a, b);
  return std::fabs(a - 2) < 1e-6 && std::fabs(b - 1) < 1e-6 ? 0 : 1;
}
