// Sizes and exponents of hinge losses.
#pragma once

#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/argument_checks.h>

#include <string_view>

namespace taeda::native {

template <class I>
struct Rows {
  I count, classes;
};

template <class I>
Rows<I> rows_of(std::string_view op, const Spec<I>& self) {
  bool fits = self.dim() == 0 || (self.dim() == 1 && self.sizes()[0] != 0) ||
              (self.dim() == 2 && self.sizes()[1] != 0);
  TAEDA_CHECK(fits,
              op,
              ": Expected non-empty vector or matrix with optional 0-dim batch "
              "size, but got: ",
              self.sizes());
  if (self.dim() == 2) return {self.sizes()[0], self.sizes()[1]};
  return {1, self.dim() == 0 ? I(1) : self.sizes()[0]};
}

struct MarginTerms {
  int power;
  double margin;
};

MarginTerms margin_terms(const Scalar& p, const Scalar& margin);

}  // namespace taeda::native
