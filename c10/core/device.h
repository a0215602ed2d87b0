#pragma once

#include <taeda/c10/util/check.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace taeda {

// The numbers are PyTorch's; names without a backend here still parse.
enum class DeviceType : int8_t {
  CPU = 0,
  CUDA = 1,
  MKLDNN = 2,
  OPENGL = 3,
  OPENCL = 4,
  IDEEP = 5,
  HIP = 6,
  FPGA = 7,
  MAIA = 8,
  XLA = 9,
  Vulkan = 10,
  Metal = 11,
  XPU = 12,
  MPS = 13,
  Meta = 14,
  HPU = 15,
  VE = 16,
  Lazy = 17,
  IPU = 18,
  MTIA = 19,
  PrivateUse1 = 20,
};

struct TAEDA_API Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current device of that type

  constexpr Device() = default;
  constexpr Device(DeviceType t, int8_t i = -1) : type(t), index(i) {}
  // "cuda:1"; RuntimeError for an unknown name or a malformed index.
  static Device parse(std::string_view text);
  bool has_index() const { return index >= 0; }
  bool is_cpu() const { return type == DeviceType::CPU; }
  bool is_cuda() const { return type == DeviceType::CUDA; }
  bool is_meta() const { return type == DeviceType::Meta; }
  std::string str() const;
  constexpr bool operator==(const Device&) const = default;
};

TAEDA_API std::string_view device_type_name(DeviceType t);
TAEDA_API void append_to(std::string& out, const Device& d);
// What the privateuse1 backend calls itself.
TAEDA_API void rename_privateuse1(std::string name);

}  // namespace taeda
