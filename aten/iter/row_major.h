// For kernels that write row-major memory of one dtype, whatever was planned.
#pragma once

#include <taeda/aten/iter/copy.h>

namespace taeda {

// The output itself where it is row-major and of the dtype, else a temporary
// that finish() copies. Undefined outputs stay undefined.
class RowMajor {
 public:
  explicit RowMajor(const TensorBase& out)
      : RowMajor(out, out.defined() ? out.dtype() : ScalarType::Undefined) {}
  RowMajor(const TensorBase& out, ScalarType dtype) : out_(out), work_(out) {
    if (!out.defined() || (out.dtype() == dtype && out.is_contiguous())) return;
    work_ = make_tensor("output", out.sizes(), dtype, out.device());
  }
  const TensorBase& tensor() const { return work_; }
  void finish() const {
    if (out_.defined() && !out_.is_same(work_)) copy_into(out_, work_);
  }

 private:
  TensorBase out_, work_;
};

}  // namespace taeda
