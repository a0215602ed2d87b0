// Calls that the host computes. See Note [Calls on the device].
#include <taeda/aten/core/level.h>
#include <taeda/aten/core/observe.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/host.h>
#include <taeda/c10/util/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace taeda::cuda {

namespace {

// What LAPACK does one step after the other, and no library of a device.
constexpr std::string_view kOnHost[] = {
    "linalg_ldl_factor_ex",
    "linalg_ldl_solve",
};

// Results on top of the stack, moved to the device.
void move_results(const OperatorEntry& op, Stack& stack, Device device) {
  std::span<IValue> results(stack.data() + stack.size() - op.info->results,
                            op.info->results);
  each_tensor(results,
              [&](TensorBase& here) { here = moved_to(here, device); });
}

}  // namespace

TensorBase moved_to(const TensorBase& here, Device device) {
  TensorBase there = make_tensor_strided(
      "to", here.sizes(), here.strides(), here.dtype(), device);
  copy_into(there, here);
  return there;
}

bool is_of_host(const OperatorEntry& op) {
  return *op.overload == '\0' &&
         std::find(std::begin(kOnHost), std::end(kOnHost), op.name) !=
             std::end(kOnHost);
}

void compute_on_host(const OperatorEntry& op, Stack& stack, Device device) {
  void* on_host = observe::kernel_at(op, DispatchKey::CPU);
  TAEDA_INTERNAL_ASSERT(on_host != nullptr, op.name, ": no kernel of the CPU");
  each_tensor(arguments_on(op, stack), [](TensorBase& t) { t = on_cpu(t); });
  op.from_stack(op, on_host, stack);
  move_results(op, stack, device);
}

bool make_on_host(const OperatorEntry& op, Stack& stack) {
  ArrayRef<ArgInfo> arguments = arguments_of(*op.info);
  size_t first = stack.size() - arguments.size();
  IValue* device = nullptr;
  bool reads = op.info->has(OpTag::NondeterministicSeeded);
  for (size_t i = 0; i < arguments.size(); ++i) {
    reads = reads || arguments[i].is_tensor();
    if (arguments[i].type == ValueType::Device) device = &stack[first + i];
  }
  void* on_host = observe::kernel_at(op, DispatchKey::CPU);
  if (reads || device == nullptr || on_host == nullptr) return false;
  Device wanted = device->is_none() ? default_device() : device->get<Device>();
  *device = Device();
  op.from_stack(op, on_host, stack);
  move_results(op, stack, wanted);
  return true;
}

}  // namespace taeda::cuda
