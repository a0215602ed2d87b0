// What a shape rule sees of its tensors, and where it writes what it decides.
#pragma once

#include <taeda/aten/core/promotion.h>
#include <taeda/c10/core/symbolic_geometry.h>

namespace taeda {

// Note [Shape rules]
// The `shape:` of a record is a function template over the integer type I of
// sizes: int64_t in calls, SymInt where a program is traced for many sizes. It
// sees no memory, checks the arguments and plans the outputs; everything that
// needs to know the outputs before they are computed (allocation, out=,
// in-place and meta forms, tracing) asks it. With SymInt, each comparison in an
// `if` or a TAEDA_CHECK leaves a guard: the same text gives errors and the
// facts under which a traced program holds.

// The facts of a tensor that do not need its memory. A view: the arrays belong
// to the tensor.
template <class I>
class Spec {
 public:
  Spec() = default;  // an optional tensor that is not given
  Spec(ArrayRef<I> sizes, ArrayRef<I> strides, ScalarType dtype, Device device)
      : sizes_(sizes), strides_(strides), device_(device), dtype_(dtype) {}
  Spec(const TensorBase& t)
    requires std::is_same_v<I, int64_t>
  {
    if (!t.defined()) return;
    sizes_ = t.sizes();
    strides_ = t.strides();
    device_ = t.device();
    dtype_ = t.dtype();
    is_wrapped_number_ = t.impl()->is_wrapped_number;
  }
  explicit Spec(const TensorBase& t)
    requires std::is_same_v<I, SymInt>
  {
    if (!t.defined()) return;
    sizes_ = sym_sizes(*t.impl());
    strides_ = sym_strides(*t.impl());
    device_ = t.device();
    dtype_ = t.dtype();
    is_wrapped_number_ = t.impl()->is_wrapped_number;
  }
  Spec(const OptionalTensor& t)
    requires std::is_same_v<I, int64_t>
      : Spec(t ? *t : TensorBase()) {}

  bool defined() const { return dtype_ != ScalarType::Undefined; }
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  ArrayRef<I> sizes() const { return sizes_; }
  ArrayRef<I> strides() const { return strides_; }
  // Negative dims count from the end; IndexError outside the range.
  const I& size(int64_t d) const {
    return sizes_[static_cast<size_t>(wrap_dim(d, dim()))];
  }
  I numel() const {
    I product = 1;
    for (const I& size : sizes_) product = strides::product(product, size);
    return product;
  }
  ScalarType dtype() const { return dtype_; }
  Device device() const { return device_; }
  bool is_floating_point() const { return is_floating(dtype_); }
  bool is_complex() const { return taeda::is_complex(dtype_); }
  bool is_wrapped_number() const { return is_wrapped_number_; }
  bool is_non_overlapping_and_dense() const {
    return strides::dense(sizes_, strides_);
  }
  MemoryFormat suggest_memory_format() const {
    if (!strides::channels_last_like(sizes_, strides_))
      return MemoryFormat::Contiguous;
    return dim() == 4 ? MemoryFormat::ChannelsLast
                      : MemoryFormat::ChannelsLast3d;
  }

 private:
  ArrayRef<I> sizes_;
  ArrayRef<I> strides_;
  Device device_;
  ScalarType dtype_ = ScalarType::Undefined;
  bool is_wrapped_number_ = false;
};

template <class I>
ScalarType result_type(const Spec<I>& a, const Scalar& b) {
  ResultType r;
  r.add(a);
  r.add(b);
  return r.get();
}

template <class I>
using SpecList = ArrayRef<Spec<I>>;

// "[3, 5] f32", as tensors in messages.
template <class I>
void append_to(std::string& out, const Spec<I>& spec) {
  append_tensor_text(out, str_cat(spec.sizes()), spec.dtype(), spec.device());
}

// The lists belong to the plan, which must live on unchanged.
template <class I>
struct PlannedOutput {
  ArrayRef<I> sizes;
  ArrayRef<I> strides;  // empty: row-major
  // Not empty: an out= tensor takes these sizes first, and loses its strides if
  // it had others (PyTorch computes vector times matrix as a one-row product).
  ArrayRef<I> made_as;
  ScalarType dtype = ScalarType::Undefined;
  bool exact_dtype = false;    // out= tensors of other dtypes are refused
  bool row_major_out = false;  // out= tensors do not take the strides
};

// What a shape rule decides.
template <class I>
class Plan {
 public:
  explicit Plan(std::string_view op) : op_(op) {}
  std::string_view op() const { return op_; }

  void set(size_t index, ArrayRef<I> sizes, ScalarType dtype) {
    set(index, sizes, ArrayRef<I>(), dtype);
  }
  void set(size_t index,
           ArrayRef<I> sizes,
           ArrayRef<I> strides,
           ScalarType dtype) {
    if (outputs_.size() <= index) outputs_.resize(index + 1);
    outputs_[index] = {keep(sizes), keep(strides), {}, dtype};
  }
  void set(size_t index,
           ArrayRef<I> sizes,
           MemoryFormat format,
           ScalarType dtype) {
    if (format == MemoryFormat::Contiguous) {
      set(index, sizes, ArrayRef<I>(), dtype);
    } else {
      set(index, sizes, strides::of_format(sizes, format), dtype);
    }
  }
  // Sizes and the order of dims in memory as those of `model`.
  void set_like(size_t index, const Spec<I>& model, ScalarType dtype) {
    if (row_major(model)) return set(index, model.sizes(), dtype);
    set(index,
        model.sizes(),
        strides::preserved(model.sizes(), model.strides()),
        dtype);
  }
  void made_as(size_t index, ArrayRef<I> sizes) {
    outputs_[index].made_as = keep(sizes);
  }

  // The strides are those of a new result: an out= tensor of other sizes
  // becomes row-major.
  void make_out_row_major(size_t index) {
    outputs_[index].row_major_out = true;
  }

  // An out= tensor must have the planned dtype.
  void refuse_other_dtypes(size_t index) { outputs_[index].exact_dtype = true; }
  // An out= tensor must not share memory with one of the first `count` inputs,
  // and with the others all of it or nothing.
  void refuse_overlap(size_t count) { refuses_overlap_ = count; }
  std::optional<size_t> refuses_overlap() const { return refuses_overlap_; }
  // The results have no definite values: an out= tensor keeps its own, however
  // it lies.
  void leave_unset() { leaves_unset_ = true; }
  bool leaves_unset() const { return leaves_unset_; }

  PlannedOutput<I> operator[](size_t i) const {
    const Output& o = outputs_[i];
    return {list(o.sizes),
            list(o.strides),
            list(o.made_as),
            o.dtype,
            o.exact_dtype,
            o.row_major_out};
  }
  size_t size() const { return outputs_.size(); }

 private:
  // A part of numbers_. One list for all outputs: a plan is made in every call
  // of an operator, and lists of their own would be as many constructions.
  struct Part {
    uint32_t begin = 0, size = 0;
  };
  struct Output {
    Part sizes, strides, made_as;
    ScalarType dtype = ScalarType::Undefined;
    bool exact_dtype = false, row_major_out = false;
  };

  Part keep(ArrayRef<I> values) {
    Part part{static_cast<uint32_t>(numbers_.size()),
              static_cast<uint32_t>(values.size())};
    for (const I& value : values) numbers_.emplace_back(value);
    return part;
  }
  ArrayRef<I> list(Part part) const {
    return {numbers_.data() + part.begin, part.size};
  }

  static bool row_major(const Spec<I>& model) {
    I block = 1;
    for (size_t d = model.sizes().size(); d-- > 0;) {
      if (model.strides()[d] != block) return false;
      block = strides::product(block, sym_max(model.sizes()[d], I(1)));
    }
    return true;
  }

  std::string_view op_;
  SmallVector<Output, 3> outputs_;
  SmallVector<I, 16> numbers_;
  std::optional<size_t> refuses_overlap_;
  bool leaves_unset_ = false;
};

}  // namespace taeda

// After the definition of a shape rule: makes both of its functions.
#define TAEDA_SHAPE(rule)                                 \
  [[gnu::used]] static void* const rule##_functions[] = { \
      (void*)&rule<int64_t>, (void*)&rule<::taeda::SymInt>}
