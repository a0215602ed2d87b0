// Meta tensors that take the place of a device's tensors.
#pragma once

#include <taeda/c10/core/device.h>
#include <taeda/c10/util/macros.h>

namespace taeda {

// While it lives, texts of this thread say `device` of tensors on meta: a
// device's rules run on stand-ins, but the program has given no such tensors.
class TAEDA_API StandInScope {
 public:
  explicit StandInScope(Device device);
  ~StandInScope();
  StandInScope(const StandInScope&) = delete;
  StandInScope& operator=(const StandInScope&) = delete;

 private:
  Device before_;
};

// Of a tensor that a rule sees: where what it stands for lies.
TAEDA_API Device device_meant_by(Device seen);

}  // namespace taeda
