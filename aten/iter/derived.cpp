#include <taeda/aten/iter/derived.h>

#include <taeda/aten/core/memory.h>
#include <taeda/aten/iter/exact_out.h>
#include <taeda/c10/core/gpu.h>

#include <cstring>

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

namespace {

bool gpu_is_there() {
  try {
    gpu();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

bool pins(std::string_view op, Device device) {
  if (device.is_cpu()) {
    TAEDA_CHECK(gpu_is_there(),
                op,
                ": pin_memory=True requires a CUDA or other accelerator "
                "backend, which this build does not have");
    return true;
  }
  TAEDA_CHECK(!device.is_cuda(), op, ": Only dense CPU tensors can be pinned");
  return false;
}

TensorBase pinned(const TensorBase& t) {
  size_t bytes = t.storage() ? t.storage()->nbytes() : 0;
  void* data = gpu().allocate_host(bytes);
  if (bytes > 0) std::memcpy(data, t.storage()->data(), bytes);
  auto free = [](void* block, size_t) { gpu().free_host(block); };
  return over_memory(
      DataPtr{data, data, free}, bytes, t.dtype(), t.sizes(), t.strides());
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
    write_exact(op, computed[i], out[i]);
  }
}

}  // namespace taeda::derived
