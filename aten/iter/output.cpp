#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/repeats.h>
#include <taeda/aten/iter/resize_warning.h>
#include <taeda/aten/iter/type_words.h>

#include <algorithm>
#include <cstdio>

namespace taeda {

void (*warning_handler)(const std::string&) = nullptr;

void warn(const std::string& message) {
  if (warning_handler != nullptr) {
    warning_handler(message);
  } else {
    std::fprintf(stderr, "Warning: %s\n", message.c_str());
  }
}

namespace {
// A rule leaves out what is not wanted (a gradient that a mask excludes).
bool is_planned(const Plan<int64_t>& plan, size_t index) {
  return index < plan.size() && plan[index].dtype != ScalarType::Undefined;
}
}  // namespace

TensorBase allocate(const Plan<int64_t>& plan, size_t index, Device device) {
  if (!is_planned(plan, index)) return {};
  PlannedOutput<int64_t> o = plan[index];
  if (o.strides.empty()) {
    return make_tensor(plan.op(), o.sizes, o.dtype, device);
  }
  return make_tensor_strided(plan.op(), o.sizes, o.strides, o.dtype, device);
}

// The storage only ever grows: views of it elsewhere stay valid, and shrinking
// and growing again costs nothing.
void resize_tensor_strided(const TensorBase& t,
                           IntArrayRef sizes,
                           IntArrayRef strides) {
  TensorImpl& impl = *t.impl();
  checked_numel("resize_", sizes);
  size_t bytes =
      required_bytes(sizes, strides, impl.storage_offset(), impl.itemsize());
  if (bytes > impl.storage()->nbytes()) impl.storage()->resize(bytes);
  impl.set_sizes_and_strides(sizes, strides);
}

void resize_tensor(const TensorBase& t, IntArrayRef sizes) {
  if (t.sizes() == sizes) return;
  resize_tensor_strided(t, sizes, contiguous_strides(sizes));
}

void warn_of_resize(const TensorBase& out, IntArrayRef sizes) {
  if (out.numel() == 0) return;
  warn(
      str_cat("An output with one or more elements was resized since it had "
              "shape ",
              out.sizes(),
              ", which does not match the required output shape ",
              sizes,
              ". This behavior is deprecated, and in a future release "
              "outputs will not be resized unless they have zero "
              "elements."));
}

bool resize_output(const TensorBase& out, IntArrayRef sizes) {
  if (out.sizes() == sizes) return false;
  warn_of_resize(out, sizes);
  TAEDA_CHECK(!out.requires_grad(),
              "cannot resize variables that require grad");
  resize_tensor(out, sizes);
  return true;
}

void check_castable(std::string_view op,
                    ScalarType computed,
                    ScalarType wanted) {
  TAEDA_CHECK(can_cast(computed, wanted),
              op,
              ": result type ",
              computed,
              " can't be cast to the desired output type ",
              wanted);
}

void check_same_device(std::string_view op,
                       const TensorBase& expected,
                       const TensorBase& got) {
  TAEDA_CHECK(expected.device() == got.device(),
              op,
              ": Expected all tensors to be on the same device, but found at "
              "least two devices, ",
              expected.device(),
              " and ",
              got.device(),
              "!");
}

// Definitely overlapping: an expanded dim. Otherwise strides in rising order
// that each clear the block below cannot overlap; anything else is unknown and,
// as in PyTorch, let through.
int64_t repeated_dim(const TensorBase& t) {
  if (t.is_non_overlapping_and_dense()) return -1;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.strides()[d] == 0 && t.sizes()[d] > 1) return d;
  }
  return -1;
}

void check_no_internal_overlap(std::string_view op, const TensorBase& t) {
  TAEDA_CHECK(repeated_dim(t) < 0,
              op,
              ": unsupported operation: more than one element of the "
              "written-to tensor refers to a single memory location. Please "
              "clone() the tensor before performing the operation.");
}

bool takes_repeats(std::string_view op, const TensorBase& t, Repeats repeats) {
  if (repeated_dim(t) < 0) return false;
  if (repeats == Repeats::Refused || t.is_conj() || t.is_neg()) {
    check_no_internal_overlap(op, t);
  }
  if (repeats == Repeats::Warned) {
    warn(str_cat("Use of ",
                 op,
                 "_ on expanded tensors is deprecated: each element in memory "
                 "is written several times. clone() the tensor first. This "
                 "also applies to assignments to tensor[indices]."));
  }
  return true;
}

// Exact for dense tensors, by their first and last byte. Of others only equal
// geometry is told apart from `Unknown`, which checks let through, as PyTorch
// does, and does with tensors that have no memory.
Overlap overlap_of(const TensorBase& a, const TensorBase& b) {
  if (a.is_same(b)) return Overlap::Full;
  if (a.numel() == 0 || b.numel() == 0) return Overlap::None;
  if (a.storage().get() != b.storage().get()) return Overlap::None;
  bool dense =
      a.is_non_overlapping_and_dense() && b.is_non_overlapping_and_dense();
  if (!dense) {
    bool same = a.storage_offset() == b.storage_offset() &&
                a.sizes() == b.sizes() && a.strides() == b.strides();
    return same ? Overlap::Full : Overlap::Unknown;
  }
  auto begin = [](const TensorBase& t) {
    return static_cast<size_t>(t.storage_offset()) * t.itemsize();
  };
  size_t a0 = begin(a), b0 = begin(b);
  size_t a1 = a0 + a.nbytes(), b1 = b0 + b.nbytes();
  Overlap partial = a.device().is_meta() ? Overlap::Unknown : Overlap::Partial;
  if (a0 == b0 && a1 == b1) {
    return a.strides() == b.strides() ? Overlap::Full : partial;
  }
  return a0 < b1 && b0 < a1 ? partial : Overlap::None;
}

void check_no_partial_overlap(std::string_view op,
                              const TensorBase& out,
                              const TensorBase& in) {
  TAEDA_CHECK(overlap_of(out, in) != Overlap::Partial,
              op,
              ": unsupported operation: some elements of the input tensor and "
              "the written-to tensor refer to a single memory location. "
              "Please clone() the tensor before performing the operation.");
}

void check_no_overlap(std::string_view op,
                      const TensorBase& out,
                      const TensorBase& in) {
  check_no_partial_overlap(op, out, in);
  TAEDA_CHECK(overlap_of(out, in) != Overlap::Full,
              op,
              ": unsupported operation: the input tensor and the written-to "
              "tensor refer to a single memory location. Please clone() the "
              "tensor before performing the operation.");
}

// The strides of the result are those of what was computed where `out` had to
// be resized anyway; else `out` keeps its own.
void write_out(std::string_view op,
               const TensorBase& computed,
               const TensorBase& out) {
  check_castable(op, computed.dtype(), out.dtype());
  check_same_device(op, computed, out);
  check_no_internal_overlap(op, out);
  if (resize_output(out, computed.sizes()) && !computed.is_contiguous() &&
      computed.is_non_overlapping_and_dense()) {
    resize_tensor_strided(out, computed.sizes(), computed.strides());
  }
  copy_into(out, computed);
}

void write_inplace(std::string_view op,
                   const TensorBase& computed,
                   const TensorBase& self) {
  check_castable(op, computed.dtype(), self.dtype());
  check_no_internal_overlap(op, self);
  TAEDA_CHECK(self.sizes() == computed.sizes(),
              op,
              ": output with shape ",
              self.sizes(),
              " doesn't match the broadcast shape ",
              computed.sizes());
  copy_into(self, computed);
}

namespace {

// A rule says how many of its inputs, from the left, may not even be the output
// itself; the others may, but not overlap in part.
void check_apart(const Plan<int64_t>& plan,
                 const TensorBase& out,
                 TensorBaseList inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    if (i < *plan.refuses_overlap()) {
      check_no_overlap(plan.op(), out, inputs[i]);
    } else {
      check_no_partial_overlap(plan.op(), out, inputs[i]);
    }
  }
}

}  // namespace

OutputTarget OutputTarget::for_out(const Plan<int64_t>& plan,
                                   size_t index,
                                   const TensorBase& out,
                                   TensorBaseList inputs) {
  if (!is_planned(plan, index)) return {};
  PlannedOutput<int64_t> planned = plan[index];
  if (planned.exact_dtype) {
    TAEDA_CHECK(out.dtype() == planned.dtype,
                plan.op(),
                ": Expected out tensor to have dtype ",
                derived::type_words(planned.dtype),
                ", but got ",
                derived::type_words(out.dtype()),
                " instead");
  }
  check_castable(plan.op(), planned.dtype, out.dtype());
  for (const TensorBase& in : inputs) {
    if (!in.defined() || in.dim() == 0) continue;
    check_same_device(plan.op(), in, out);
  }
  check_no_internal_overlap(plan.op(), out);
  OutputTarget target;
  target.wanted_ = target.work_ = out;
  bool is_input =
      std::any_of(inputs.begin(), inputs.end(), [&](const TensorBase& in) {
        return in.is_same(out);
      });
  if (plan.refuses_overlap()) {
    // The geometry that counts is the new one.
    if (!is_input) target.resize_wanted(planned);
    check_apart(plan, out, inputs);
  }
  if (is_input && out.sizes() != IntArrayRef(planned.sizes)) {
    target.resize_last_ = planned;
    target.work_ = allocate(plan, index, out.device());
    return target;
  }
  target.resize_wanted(planned);
  // The kernel writes into `out` itself only if that lies exactly as planned
  // and no input can see it change.
  bool direct = out.dtype() == planned.dtype && !out.is_conj() && !out.is_neg();
  if (planned.strides.empty()) {
    direct = direct && out.is_contiguous();
  } else {
    direct = direct && out.strides() == IntArrayRef(planned.strides);
  }
  for (const TensorBase& in : inputs) {
    if (!in.defined()) continue;
    direct = direct && overlap_of(out, in) == Overlap::None;
  }
  if (!direct && !plan.leaves_unset()) {
    target.work_ = allocate(plan, index, out.device());
  }
  return target;
}

OutputTarget OutputTarget::for_inplace(const Plan<int64_t>& plan,
                                       const TensorBase& self) {
  PlannedOutput<int64_t> planned = plan[0];
  check_castable(plan.op(), planned.dtype, self.dtype());
  check_no_internal_overlap(plan.op(), self);
  TAEDA_CHECK(self.sizes() == IntArrayRef(planned.sizes),
              plan.op(),
              ": output with shape ",
              self.sizes(),
              " doesn't match the broadcast shape ",
              IntArrayRef(planned.sizes));
  OutputTarget target;
  target.wanted_ = self;
  target.work_ = allocate(plan, 0, self.device());
  return target;
}

OutputTarget OutputTarget::for_inplace(const Plan<int64_t>& plan,
                                       const TensorBase& self,
                                       TensorBaseList others) {
  OutputTarget target;
  target.wanted_ = target.work_ = self;
  bool direct = self.dtype() == plan[0].dtype && !self.is_conj() &&
                !self.is_neg() && self.sizes() == IntArrayRef(plan[0].sizes);
  for (const TensorBase& other : others) {
    check_no_overlap(plan.op(), self, other);
    direct = direct && overlap_of(self, other) == Overlap::None;
  }
  if (!direct) return for_inplace(plan, self);
  check_no_internal_overlap(plan.op(), self);
  return target;
}

void OutputTarget::begin_with(const TensorBase& source) const {
  if (!work_.is_same(source)) copy_into(work_, source);
}

void OutputTarget::resize_wanted(const PlannedOutput<int64_t>& planned) const {
  // Where both sizes are the same, what had no elements takes the strides.
  bool strided = planned.made_as == planned.sizes && wanted_.numel() == 0;
  if (!planned.made_as.empty() && !strided) {
    resize_output(wanted_, planned.made_as);
    resize_tensor(wanted_, planned.sizes);
  } else if (resize_output(wanted_, planned.sizes) &&
             !planned.strides.empty() && !planned.row_major_out) {
    resize_tensor_strided(wanted_, planned.sizes, planned.strides);
  }
}

void OutputTarget::finish() const {
  if (resize_last_) resize_wanted(*resize_last_);
  if (!wanted_.is_same(work_)) copy_into(wanted_, work_);
}

}  // namespace taeda
