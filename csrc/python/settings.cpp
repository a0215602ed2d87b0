// The switches of aten/settings.h, for backends, nn.attention and
// utils.deterministic.
#include <taeda/aten/native/attention_choice.h>
#include <taeda/aten/native/sparse/sparse_tensor.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/core/allocator.h>
#include <taeda/c10/core/program_device.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>

namespace taeda::python {

namespace {
using settings::Attention;

Attention to_way(int64_t way) {
  TAEDA_CHECK_AS(
      Value,
      way >= 0 && way < static_cast<int64_t>(settings::kAttentionWays),
      "attention: no kernel has the number ",
      way);
  return static_cast<Attention>(way);
}

using Ways = std::array<int64_t, settings::kAttentionWays>;
Ways attention_order() {
  Ways out;
  std::ranges::transform(settings::attention_order(),
                         out.begin(),
                         [](Attention a) { return static_cast<int64_t>(a); });
  return out;
}
// A permutation of all ways.
void set_attention_order(const Ways& ways) {
  settings::AttentionOrder order;
  std::ranges::transform(ways, order.begin(), to_way);
  settings::set_attention_order(order);
}

// Why a way does not compute the call; None where it may.
std::optional<std::string> attention_refusal(int64_t way,
                                             const Tensor& query,
                                             const Tensor& key,
                                             const Tensor& value,
                                             const OptionalTensor& mask,
                                             double dropout_p,
                                             bool is_causal,
                                             bool shares) {
  Attention asked = to_way(way);
  if (!settings::attention_enabled(asked)) return "it is switched off";
  Tensor given = mask ? *mask : Tensor();
  const char* reason = native::attention_refusal(
      asked, {query, key, value, given, dropout_p, is_causal, shares});
  if (reason == nullptr) return std::nullopt;
  return reason;
}

void add_switch(py::module_ m,
                const char* get,
                const char* set,
                std::atomic<bool>& flag,
                const char* doc = "") {
  m.def(get, [&flag] { return flag.load(); }, doc);
  m.def(set, [&flag](bool on) { flag.store(on); });
}
}  // namespace

void bind_settings(PyObject* module) {
  py::module_ m = as_module(module);
  m.def("_check_sparse_tensor_invariants", native::checks_sparse_invariants);
  m.def("_set_check_sparse_tensor_invariants",
        native::set_checks_sparse_invariants);
  m.def("_attention_enabled",
        [](int64_t way) { return settings::attention_enabled(to_way(way)); });
  m.def("_enable_attention", [](int64_t way, bool on) {
    settings::enable_attention(to_way(way), on);
  });
  m.def("_attention_refusal", attention_refusal);
  m.def("_real_type", real_type_of);
  m.def("_complex_type", complex_type_of);
  m.def("_attention_order", attention_order);
  m.def("_reset_cpu_peak", [] { cpu_allocator().reset_peak(); });
  m.def("_gpu_is_in_use",
        [] { return gpu_is_loaded() && !gpu_is_lost_in_fork(); });
  m.def("_program_device_count", [] {
    ProgramDevice* device = program_device_or_null();
    return device == nullptr ? 0 : device->device_count();
  });
  m.def("_get_privateuse1_backend_name", privateuse1_name);
  // Of the CPU: bytes in use, the most there were, bytes kept, allocations.
  m.def("_cpu_memory", [] {
    AllocatorStats stats = cpu_allocator().stats();
    return std::tuple(
        stats.allocated, stats.peak_allocated, stats.cached, stats.allocations);
  });
  m.def("_set_attention_order", set_attention_order);
  add_switch(m, "_dnn_enabled", "_enable_dnn", settings::dnn_enabled);
  add_switch(
      m, "_is_deterministic", "_set_deterministic", settings::deterministic);
  add_switch(m,
             "_fills_uninitialized",
             "_fill_uninitialized",
             settings::fill_uninitialized);
  add_switch(m,
             "is_warn_always_enabled",
             "_set_warn_always",
             settings::warn_always,
             "Whether warnings that appear once appear every time.");
  m.def("_set_flush_denormal", settings::set_flush_denormal);
}

}  // namespace taeda::python
