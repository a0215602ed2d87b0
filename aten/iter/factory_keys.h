// The keys of a call that makes a tensor from no other.
#pragma once

#include <taeda/aten/core/dispatcher.h>

namespace taeda {

// Those of a sparse backend (aten/native/sparse); of other layouts the
// device's.
TAEDA_API DispatchKeySet keys_of_layout(Layout layout, Device device);

inline DispatchKeySet keys_of_factory(const std::optional<Layout>& layout,
                                      const std::optional<Device>& device) {
  if (layout && *layout != Layout::Strided) [[unlikely]] {
    return keys_of_layout(*layout, device ? *device : default_device());
  }
  return keys_of_device(device);
}

}  // namespace taeda
