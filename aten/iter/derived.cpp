#include <taeda/aten/iter/derived.h>

namespace taeda::derived {

std::vector<TensorBase> allocate_all(const Plan<int64_t>& plan, Device device) {
  std::vector<TensorBase> all;
  for (size_t i = 0; i < plan.size(); ++i) {
    all.push_back(allocate(plan, i, device));
  }
  return all;
}

Device device_of_tensors(const Tensors& tensors) {
  for (const TensorBase& t : tensors) {
    if (t.dim() > 0) return t.device();
  }
  return tensors.empty() ? default_device() : tensors[0].device();
}

void refuse_inference_tensor() {
  throw_error(ErrorKind::Runtime,
              "Inplace update to inference tensor outside InferenceMode is not "
              "allowed. Change a clone of it instead.");
}

void check_pinned(std::string_view op, Device device) {
  TAEDA_CHECK(!device.is_cpu(),
              op,
              ": pin_memory=True requires a CUDA or other accelerator backend, "
              "which this build does not have");
}

void check_inplace(std::string_view op,
                   const TensorBase& computed,
                   const TensorBase& self) {
  check_castable(op, computed.dtype(), self.dtype());
  TAEDA_CHECK(self.sizes() == computed.sizes(),
              op,
              ": output with shape ",
              self.sizes(),
              " doesn't match the broadcast shape ",
              computed.sizes());
}

void write_out_list(std::string_view op,
                    const std::vector<TensorBase>& computed,
                    TensorBaseList out) {
  TAEDA_CHECK(computed.size() == out.size(),
              op,
              ": expected ",
              computed.size(),
              " out tensors, got ",
              out.size());
  for (size_t i = 0; i < computed.size(); ++i) {
    write_out(op, computed[i], out[i]);
  }
}

}  // namespace taeda::derived
