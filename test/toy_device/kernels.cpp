// Copies, fills and a few operators; all others go to the CPU.
#include "toy.h"

#include <cstring>

namespace toy {

namespace {

bool is_toy(const at::Tensor& t) {
  return t.device().type() == c10::DeviceType::PrivateUse1;
}

// The device's memory, seen by the CPU's operators: what a kernel's body does.
at::Tensor seen(const at::Tensor& t) {
  if (!is_toy(t)) return t;
  auto keep = [t](void*) {};
  auto whole = static_cast<int64_t>(t.storage()->nbytes()) /
               static_cast<int64_t>(t.element_size());
  at::Tensor all = torch::from_blob(const_cast<void*>(t.storage()->data()),
                                    {whole},
                                    keep,
                                    at::TensorOptions(t.dtype()));
  return all.as_strided(t.sizes(), t.strides(), t.storage_offset());
}

int device_of(const at::Tensor& t) { return t.device().index(); }

at::Tensor copy_from(const at::Tensor& self,
                     const at::Tensor& dst,
                     bool non_blocking) {
  if (!is_toy(dst)) {  // to the host, which may read at once
    drain(device_of(self));
    dst.copy_(seen(self));
    return dst;
  }
  if (is_toy(self)) {
    // Between devices: what the source waits for comes first.
    if (device_of(self) != device_of(dst)) drain(device_of(self));
    enqueue(device_of(dst), [=] { seen(dst).copy_(seen(self)); });
    return dst;
  }
  // From the host, which may write as soon as the call returns.
  at::Tensor here = non_blocking ? self : self.clone();
  enqueue(device_of(dst), [=] { seen(dst).copy_(here); });
  return dst;
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  enqueue(device_of(self), [self, value] { seen(self).fill_(value); });
  return self;
}

// A result on the device, and the work that computes it.
template <class F>
at::Tensor computed(const char* name,
                    const at::Tensor& self,
                    at::IntArrayRef sizes,
                    F work) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      self.dtype() == at::kFloat, name, ": toy computes float32 alone");
  at::Tensor out = at::empty(sizes, self.options());
  enqueue(device_of(self), [=] { seen(out).copy_(work()); });
  return out;
}

at::Tensor relu(const at::Tensor& self) {
  return computed(
      "relu", self, self.sizes(), [=] { return seen(self).clamp_min(0); });
}

at::Tensor mm(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(
      self.dim() == 2 && other.dim() == 2 && self.size(1) == other.size(0),
      "mm: toy cannot multiply ",
      self.sizes(),
      " and ",
      other.sizes());
  TORCH_CHECK(self.device() == other.device(),
              "mm: toy expects tensors of one device, got ",
              self.device(),
              " and ",
              other.device());
  int64_t sizes[] = {self.size(0), other.size(1)};
  at::Tensor a = self, b = other;
  if (a.dtype() != at::kFloat) {  // sums in float
    a = a.to(at::kFloat);
    b = b.to(at::kFloat);
  }
  at::Tensor out =
      computed("mm", a, sizes, [=] { return at::mm(seen(a), seen(b)); });
  return self.dtype() == at::kFloat ? out : out.to(self.dtype());
}

at::Tensor& add_(at::Tensor& self,
                 const at::Tensor& other,
                 const at::Scalar& alpha) {
  TORCH_CHECK(other.dim() == 0 || self.device() == other.device(),
              "add_: toy expects tensors of one device, got ",
              self.device(),
              " and ",
              other.device());
  enqueue(device_of(self), [=] { seen(self).add_(seen(other), alpha); });
  return self;
}

void to_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

// What the toy refuses even so, by name.
void refuse(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, op.operator_name(), " is not there on the device toy");
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &copy_from);
  m.impl("fill_.Scalar", &fill);
  m.impl("relu", &relu);
  m.impl("mm", &mm);
  m.impl("add_.Tensor", &add_);
  m.impl("linalg_eig", torch::CppFunction::makeFromBoxedFunction<&refuse>());
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&to_cpu>());
}

}  // namespace toy
