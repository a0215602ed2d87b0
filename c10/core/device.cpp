#include <taeda/c10/core/program_device.h>

#include <atomic>
#include <charconv>

namespace taeda {

namespace {
constexpr std::string_view kNames[] = {
    "cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
    "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
    "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone"};
// Null as long as it has its first name. Set once and never freed: other
// threads may be reading.
constinit std::atomic<const std::string*> new_name{nullptr};
}  // namespace

std::string_view privateuse1_name() {
  const std::string* name = new_name.load(std::memory_order_acquire);
  return name == nullptr ? kNames[static_cast<int>(DeviceType::PrivateUse1)]
                         : std::string_view(*name);
}

void rename_privateuse1(std::string name) {
  for (std::string_view known : kNames) {
    bool other = known != kNames[static_cast<int>(DeviceType::PrivateUse1)];
    TAEDA_CHECK(!other || known != name,
                "rename_privateuse1_backend: ",
                known,
                " is a device of another kind");
  }
  bool is_word = !name.empty();
  for (char c : name) {
    is_word = is_word && (c == '_' || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'));
  }
  TAEDA_CHECK(is_word,
              "rename_privateuse1_backend: expected a name of letters, digits "
              "and _, got '",
              name,
              "'");
  const auto* made = new std::string(std::move(name));
  const std::string* none = nullptr;
  if (new_name.compare_exchange_strong(none, made)) return;
  TAEDA_CHECK(*none == *made,
              "rename_privateuse1_backend: the name has already been set, to ",
              *none);
  delete made;
}

std::string_view device_type_name(DeviceType t) {
  if (t == DeviceType::PrivateUse1) return privateuse1_name();
  return kNames[static_cast<int>(t)];
}

std::string Device::str() const {
  std::string out(device_type_name(type));
  if (has_index()) append_to(out, str_cat(":", int{index}));
  return out;
}

void append_to(std::string& out, const Device& d) { out.append(d.str()); }

Device Device::parse(std::string_view text) {
  TAEDA_CHECK(!text.empty(), "Device string must not be empty");
  size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  Device device;
  bool known = name == privateuse1_name();
  if (known) device.type = DeviceType::PrivateUse1;
  for (int i = 0; !known && i <= static_cast<int>(DeviceType::MTIA); ++i) {
    known = kNames[i] == name;
    if (known) device.type = static_cast<DeviceType>(i);
  }
  TAEDA_CHECK(known,
              "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, "
              "ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, "
              "mtia, privateuseone device type at start of device string: ",
              text);
  if (colon == std::string_view::npos) return device;
  std::string_view digits = text.substr(colon + 1);
  int index = -1;
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), index);
  bool whole = error == std::errc() && end == digits.data() + digits.size();
  bool leading_zero = digits.size() > 1 && digits[0] == '0';
  TAEDA_CHECK(whole && !leading_zero && index >= 0 && index < 128,
              "Invalid device string: '",
              text,
              "'");
  device.index = static_cast<int8_t>(index);
  return device;
}

}  // namespace taeda
