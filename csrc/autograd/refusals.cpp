#include <taeda/csrc/autograd/refusals.h>

namespace taeda::autograd {

void refuse_gradient(std::string_view op, std::string_view argument) {
  TAEDA_CHECK(false,
              "The function '",
              op,
              "' is not differentiable with respect to argument '",
              argument,
              "'. This input cannot have requires_grad True.");
  std::abort();
}

}  // namespace taeda::autograd
