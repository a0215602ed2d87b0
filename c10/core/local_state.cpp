#include <taeda/c10/core/local_state.h>

#include <atomic>

namespace taeda {

constinit thread_local LocalState local_state;

namespace {
std::atomic<ScalarType> the_default_dtype{kFloat};
std::atomic<Device> the_default_device{Device(DeviceType::CPU)};
}  // namespace

ScalarType default_dtype() {
  return the_default_dtype.load(std::memory_order_relaxed);
}
void set_default_dtype(ScalarType t) {
  TAEDA_CHECK_AS(Type,
                 is_floating(t) && !is_float8(t),
                 "only floating-point types are supported as the default type, "
                 "got ",
                 dtype_name(t));
  the_default_dtype = t;
}
Device default_device() {
  return the_default_device.load(std::memory_order_relaxed);
}
void set_default_device(Device d) { the_default_device = d; }

}  // namespace taeda
