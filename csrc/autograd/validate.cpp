#include <taeda/csrc/autograd/validate.h>

#include <taeda/csrc/autograd/formulas.h>

#include <taeda/gen/ops/clone.h>

#include <cmath>

namespace taeda::autograd {

namespace {
// Whether a tensor of shape `small` broadcasts to `large`.
bool expands_to(SymIntArrayRef small, SymIntArrayRef large) {
  if (small.size() > large.size()) return false;
  for (size_t i = 1; i <= small.size(); ++i) {
    const SymInt& s = small[small.size() - i];
    if (s != large[large.size() - i] && s != 1) return false;
  }
  return true;
}

bool has_nan(const Tensor& t) {
  if (!is_floating(t.dtype()) && !is_complex(t.dtype())) return false;
  if (!t.is_cpu() || t.layout() != Layout::Strided) return false;
  GradModeGuard off(false);
  Tensor flat = ops::clone(t, MemoryFormat::Contiguous);
  const char* p = static_cast<const char*>(flat.const_raw_data());
  for (int64_t i = 0; i < flat.numel(); ++i, p += flat.itemsize()) {
    complex<double> v = Scalar::load(flat.dtype(), p).to_complex();
    if (std::isnan(v.real()) || std::isnan(v.imag())) return true;
  }
  return false;
}
}  // namespace

void fit_grad(const OutputInfo& info, Tensor& grad, const std::string& what) {
  if (!info.known) return;
  if (TAEDA_UNLIKELY(!info.has_sizes_of(grad))) {
    SymIntArrayRef wanted = info.symbolic_sizes();
    TAEDA_CHECK(expands_to(wanted, symbolic_sizes(grad)),
                what,
                " - got ",
                symbolic_sizes(grad),
                " but expected shape compatible with ",
                wanted);
    grad = sum_to(grad, wanted);
  }
  bool any_dtype = info.dtype == ScalarType::Undefined;
  if (TAEDA_UNLIKELY(grad.dtype() != info.dtype) && !any_dtype) {
    bool inexact = is_floating(grad.dtype()) || is_complex(grad.dtype());
    TAEDA_CHECK(inexact || !is_complex(info.dtype),
                what,
                " - expected a floating dtype compatible with ",
                dtype_name(info.dtype),
                " but got ",
                dtype_name(grad.dtype()));
    grad = cast_to(real_if_needed(grad, info.dtype), info.dtype);
  }
  TAEDA_CHECK(grad.device() == info.device,
              what,
              " - expected device ",
              info.device,
              " but got ",
              grad.device());
}

void validate_grads(const Node& node, Tensors& grads) {
  size_t edges = node.next_edges().size();
  if (TAEDA_UNLIKELY(grads.size() > edges)) {
    for (size_t i = edges; i < grads.size(); ++i) {
      TAEDA_CHECK(!grads[i].defined(),
                  "Function ",
                  node.name(),
                  " returned an incorrect number of gradients (expected ",
                  edges,
                  ", got ",
                  grads.size(),
                  ")");
    }
    grads.resize(edges);
  }
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    const Edge& edge = node.next_edge(i);
    if (!edge.valid()) {
      grads[i].reset();
      continue;
    }
    const OutputInfo& info = edge.node->output(edge.input_nr);
    bool fits = info.has_sizes_of(grads[i]) && grads[i].dtype() == info.dtype &&
                grads[i].device() == info.device;
    if (TAEDA_UNLIKELY(!fits)) {
      fit_grad(info,
               grads[i],
               str_cat("Function ",
                       node.name(),
                       " returned an invalid gradient at index ",
                       i));
    }
  }
  if (TAEDA_LIKELY(!anomaly_mode().enabled) || !anomaly_mode().check_nan) {
    return;
  }
  for (size_t i = 0; i < grads.size(); ++i) {
    TAEDA_CHECK(!grads[i].defined() || !has_nan(grads[i]),
                "Function '",
                node.name(),
                "' returned nan values in its ",
                i,
                "th output.");
  }
}

}  // namespace taeda::autograd
