// For ported C++ programs that say torch::, at:: and c10:::  opt-in, because a
// program that also includes PyTorch's own headers must not see them.
#pragma once

#include <taeda/aten/parallel/parallel.h>
#include <taeda/taeda.h>

#include <optional>

namespace taeda::front {
// Nothing that autograd would record is recorded while one lives.
struct NoGradGuard {
  GradModeGuard off{false};
};
struct AutoGradMode {
  explicit AutoGradMode(bool on) : mode(on) {}
  GradModeGuard mode;
};
// Calls go to the kernels below autograd while one lives.
struct AutoDispatchBelowAutograd {
  ExcludeKeysGuard keys{{DispatchKey::Autograd, DispatchKey::SymbolicGrad}};
};
}  // namespace taeda::front

// Declarations of these namespaces go before what they use of taeda, which is
// how torch::Device is the one with type() and index().
#define TAEDA_PORTED_NAMES                         \
  using namespace ::taeda;                         \
  using Device = ::taeda::front::Device;           \
  using TensorList = ::taeda::ArrayRef<Tensor>;    \
  template <class T>                               \
  using optional = ::std::optional<T>;             \
  using ::std::nullopt;                            \
  using ::taeda::front::AutoDispatchBelowAutograd; \
  using ::taeda::front::AutoGradMode;              \
  using ::taeda::front::NoGradGuard;
namespace c10 {
TAEDA_PORTED_NAMES
}
namespace at {
TAEDA_PORTED_NAMES
}
namespace torch {
TAEDA_PORTED_NAMES
namespace autograd {
using namespace ::taeda::autograd;
}
}  // namespace torch
#undef TAEDA_PORTED_NAMES
