// The operator detach_: what it changes is autograd's own.
#include <taeda/csrc/autograd/variable.h>
#include <taeda/gen/native/detach_.h>

namespace taeda::native {

void detach_(const Tensor& self) { autograd::detach_inplace(self); }

}  // namespace taeda::native
