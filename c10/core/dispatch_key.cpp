#include <taeda/c10/core/dispatch_key.h>

#include <iterator>
#include <utility>

namespace taeda {

namespace {
constexpr std::string_view kNames[] = {"CPU",
                                       "CUDA",
                                       "Meta",
                                       "PrivateUse1",
                                       "SparseCPU",
                                       "SparseCUDA",
                                       "QuantizedCPU",
                                       "Negative",
                                       "Conjugate",
                                       "ZeroTensor",
                                       "Symbolic",
                                       "Python",
                                       "Wrapped",
                                       "Functionalize",
                                       "Autograd",
                                       "SymbolicGrad",
                                       "Autocast",
                                       "Intercept"};
static_assert(std::size(kNames) == kNumDispatchKeys);
}  // namespace

std::string_view dispatch_key_name(DispatchKey k) {
  return k < DispatchKey::NumKeys ? kNames[static_cast<int>(k)] : "Undefined";
}

bool parse_dispatch_key(std::string_view name, DispatchKey* out) {
  for (int i = 0; i < kNumDispatchKeys; ++i) {
    if (kNames[i] == name) {
      *out = static_cast<DispatchKey>(i);
      return true;
    }
  }
  for (auto [prefix, key] :
       {std::pair{std::string_view("Autograd"), DispatchKey::Autograd},
        {"Autocast", DispatchKey::Autocast},
        {"FuncTorch", DispatchKey::Intercept},
        {"PythonTLSSnapshot", DispatchKey::Intercept}}) {
    if (name.starts_with(prefix)) {
      *out = key;
      return true;
    }
  }
  return false;
}

DispatchKey backend_key(DeviceType type) {
  switch (type) {
    case DeviceType::CPU:
      return DispatchKey::CPU;
    case DeviceType::CUDA:
      return DispatchKey::CUDA;
    case DeviceType::Meta:
      return DispatchKey::Meta;
    case DeviceType::PrivateUse1:
      return DispatchKey::PrivateUse1;
    default:
      throw_error(ErrorKind::Runtime,
                  str_cat("device type ",
                          device_type_name(type),
                          " has no backend in this build"));
  }
}

}  // namespace taeda
