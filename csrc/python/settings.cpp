// The switches of aten/settings.h, for backends, nn.attention and
// utils.deterministic.
#include <taeda/aten/native/sparse/sparse_tensor.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/core/allocator.h>
#include <taeda/c10/core/gpu.h>
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

std::vector<int64_t> attention_order() {
  auto order = settings::attention_order();
  std::vector<int64_t> out;
  for (Attention way : order) out.push_back(static_cast<int64_t>(way));
  return out;
}
// Takes a permutation of all ways: a list of their numbers.
void set_attention_order(const std::vector<int64_t>& ways) {
  settings::AttentionOrder order;
  unsigned seen = 0;
  TAEDA_CHECK_AS(
      Value,
      ways.size() == order.size(),
      message("attention: the order is a list of {} kernels", order.size()));
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = to_way(ways[i]);
    seen |= 1U << static_cast<unsigned>(order[i]);
  }
  TAEDA_CHECK_AS(Value,
                 seen == (1U << order.size()) - 1,
                 "attention: the order names a kernel twice");
  settings::set_attention_order(order);
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
  m.def("_attention_order", attention_order);
  m.def("_reset_cpu_peak", [] { cpu_allocator().reset_peak(); });
  m.def("_gpu_is_in_use",
        [] { return gpu_is_loaded() && !gpu_is_lost_in_fork(); });
  // Of the CPU: bytes in use, the most there were, bytes kept, allocations.
  m.def("_cpu_memory", [] {
    AllocatorStats stats = cpu_allocator().stats();
    return std::tuple(
        stats.allocated, stats.peak_allocated, stats.cached, stats.allocations);
  });
  m.def("_set_attention_order", set_attention_order);
  add_switch(m, "_dnn_enabled", "_enable_dnn", settings::dnn_enabled);
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
