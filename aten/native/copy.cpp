// copy_, clone.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/gen/native/clone.h>
#include <taeda/gen/native/copy_.h>

namespace taeda::native {

void copy_(const Tensor& self, const Tensor& src, bool) {
  check_no_internal_overlap("copy_", self);
  copy_into(self, src);
}

Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  Tensor out = new_like("clone", self, {}, {}, memory_format);
  copy_into(out, self);
  return out;
}

}  // namespace taeda::native
