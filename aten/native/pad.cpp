// Frames around a tensor: constant, reflected, replicated, circular.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/_pad_circular.h>
#include <taeda/gen/native/constant_pad_nd.h>
#include <taeda/gen/native/pad.h>
#include <taeda/gen/native/pad_sequence.h>
#include <taeda/gen/native/reflection_pad1d.h>
#include <taeda/gen/native/reflection_pad2d.h>
#include <taeda/gen/native/reflection_pad3d.h>
#include <taeda/gen/native/replication_pad1d.h>
#include <taeda/gen/native/replication_pad2d.h>
#include <taeda/gen/native/replication_pad3d.h>
#include <taeda/gen/ops/_pad_circular.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/constant_pad_nd.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/lift_fresh.h>
#include <taeda/gen/ops/reflection_pad1d.h>
#include <taeda/gen/ops/reflection_pad2d.h>
#include <taeda/gen/ops/reflection_pad3d.h>
#include <taeda/gen/ops/replication_pad1d.h>
#include <taeda/gen/ops/replication_pad2d.h>
#include <taeda/gen/ops/replication_pad3d.h>
#include <taeda/gen/ops/stack.h>

namespace taeda::native {

namespace {

// Places that were written on the host, as a tensor where a GPU can read them.
Tensor beside(const Tensor& self, const Tensor& places) {
  if (!self.device().is_cuda()) return places;
  Tensor there =
      make_tensor("pad", places.sizes(), places.dtype(), self.device());
  copy_into(there, places);
  return there;
}

}  // namespace

template <class I>
void constant_pad_nd_shape(const Spec<I>& self,
                           ArrayRef<I> pad,
                           const Scalar&,
                           Plan<I>& plan) {
  TAEDA_CHECK(pad.size() % 2 == 0,
              "Length of pad must be even but instead it equals ",
              pad.size());
  size_t rank = self.sizes().size(), padded = pad.size() / 2;
  TAEDA_CHECK(padded <= rank,
              "Length of pad should be no more than twice the number of "
              "dimensions of the input. Pad length is ",
              pad.size(),
              " while the input has ",
              rank,
              " dimensions.");
  Dims<I> sizes(self.sizes());
  for (size_t i = 0; i < padded; ++i) {
    size_t d = rank - 1 - i;
    sizes[d] += pad[2 * i] + pad[2 * i + 1];
    TAEDA_CHECK(sizes[d] >= 0,
                "The input size ",
                self.sizes()[d],
                ", plus negative padding ",
                pad[2 * i],
                " and ",
                pad[2 * i + 1],
                " resulted in a negative output size, which is invalid. Check "
                "dimension ",
                d,
                " of your input.");
  }
  bool cut = std::all_of(pad.begin(), pad.end(), [](I p) { return p <= 0; });
  if (cut) {  // a clone of a part of self
    auto strides = strides::preserved(ArrayRef<I>(sizes), self.strides());
    plan.set(0, sizes, strides, self.dtype());
    return;
  }
  plan.set(0, sizes, self.suggest_memory_format(), self.dtype());
}
TAEDA_SHAPE(constant_pad_nd_shape);

namespace {

enum class Mode { Reflect, Replicate };

template <class I>
void check_shape(const Spec<I>& self, int64_t dims, std::string_view op) {
  bool batch = self.dim() == dims + 2;
  bool fits = batch || self.dim() == dims + 1;
  for (int64_t d = batch ? 1 : 0; fits && d < self.dim(); ++d) {
    fits = self.sizes()[d] != 0;
  }
  TAEDA_CHECK(fits,
              op,
              ": Expected ",
              dims + 1,
              "D or ",
              dims + 2,
              "D (batch mode) tensor with possibly 0 batch size and other "
              "non-zero dimensions for input, but got: ",
              self.sizes());
}

template <class I>
I padded(const I& size, const I& before, const I& after) {
  if constexpr (std::is_same_v<I, int64_t>) {
    int64_t wide = 0;
    TAEDA_CHECK(!__builtin_add_overflow(before, after, &wide) &&
                    !__builtin_add_overflow(wide, size, &wide),
                "pad: the padding (",
                before,
                ", ",
                after,
                ") is too large");
    return wide;
  } else {
    return size + before + after;
  }
}

template <class I>
void plan_framed(Mode mode,
                 const Spec<I>& self,
                 ArrayRef<I> padding,
                 int64_t dims,
                 Plan<I>& plan) {
  TAEDA_CHECK(static_cast<int64_t>(padding.size()) == 2 * dims,
              "padding size is expected to be ",
              2 * dims,
              ", but got: ",
              padding.size());
  check_shape(self, dims, plan.op());
  Dims<I> sizes(self.sizes());
  for (int64_t i = 0; i < dims; ++i) {
    int64_t d = self.dim() - 1 - i;
    const I& size = self.sizes()[d];
    const I &before = padding[2 * i], &after = padding[2 * i + 1];
    TAEDA_CHECK(mode == Mode::Replicate || (before < size && after < size),
                "Argument #",
                2 * (dims - i) + 2,
                ": Padding size should be less than the corresponding input "
                "dimension, but got: padding (",
                before,
                ", ",
                after,
                ") at dimension ",
                d,
                " of input ",
                self.sizes());
    I wide = padded(size, before, after);
    TAEDA_CHECK(wide >= 1,
                "input (size: ",
                size,
                ") is too small. Calculated output size: ",
                wide,
                " (",
                plan.op(),
                ")");
    sizes[d] = wide;
  }
  plan.set(0, sizes, self.suggest_memory_format(), self.dtype());
}

}  // namespace

template <class I>
void reflection_pad1d_shape(const Spec<I>& self,
                            ArrayRef<I> padding,
                            Plan<I>& plan) {
  plan_framed(Mode::Reflect, self, padding, 1, plan);
}
TAEDA_SHAPE(reflection_pad1d_shape);
template <class I>
void reflection_pad2d_shape(const Spec<I>& self,
                            ArrayRef<I> padding,
                            Plan<I>& plan) {
  plan_framed(Mode::Reflect, self, padding, 2, plan);
}
TAEDA_SHAPE(reflection_pad2d_shape);
template <class I>
void reflection_pad3d_shape(const Spec<I>& self,
                            ArrayRef<I> padding,
                            Plan<I>& plan) {
  plan_framed(Mode::Reflect, self, padding, 3, plan);
}
TAEDA_SHAPE(reflection_pad3d_shape);
template <class I>
void replication_pad1d_shape(const Spec<I>& self,
                             ArrayRef<I> padding,
                             Plan<I>& plan) {
  plan_framed(Mode::Replicate, self, padding, 1, plan);
}
TAEDA_SHAPE(replication_pad1d_shape);
template <class I>
void replication_pad2d_shape(const Spec<I>& self,
                             ArrayRef<I> padding,
                             Plan<I>& plan) {
  plan_framed(Mode::Replicate, self, padding, 2, plan);
}
TAEDA_SHAPE(replication_pad2d_shape);
template <class I>
void replication_pad3d_shape(const Spec<I>& self,
                             ArrayRef<I> padding,
                             Plan<I>& plan) {
  plan_framed(Mode::Replicate, self, padding, 3, plan);
}
TAEDA_SHAPE(replication_pad3d_shape);

// What negative padding leaves of the input is repeated on both sides.
Tensor _pad_circular(const Tensor& self, ArrayRef<int64_t> pad) {
  int64_t dims = static_cast<int64_t>(pad.size()) / 2;
  int64_t rest = self.dim() - dims;
  TAEDA_CHECK(rest == 1 || rest == 2,
              "Invalid padding size, expected 1 or 2 non-padded dimensions, "
              "which would be equivalent to padding of length ",
              2 * (self.dim() - 2),
              " or ",
              2 * (self.dim() - 1),
              " respectively but got ",
              pad.size());
  Tensor out = self;
  for (int64_t i = 0; i < dims; ++i) {
    int64_t d = self.dim() - 1 - i, size = self.size(d);
    int64_t before = pad[2 * i], after = pad[2 * i + 1];
    TAEDA_CHECK(before <= size && after <= size,
                "Padding value causes wrapping around more than once.");
    int64_t wide = padded(size, before, after);
    TAEDA_CHECK(wide >= 0,
                "Negative padding value is resulting in an empty dimension");
    if (before == 0 && after == 0) continue;
    int64_t first = std::max<int64_t>(-before, 0);
    int64_t kept = size - first - std::max<int64_t>(-after, 0);
    TAEDA_CHECK(kept > 0 || wide == 0,
                "_pad_circular: negative padding ",
                pad,
                " leaves nothing to repeat of dimension ",
                d);
    Tensor index = make_tensor("_pad_circular", {wide}, kLong);
    int64_t* at = index.mutable_data<int64_t>();
    for (int64_t k = 0; k < wide; ++k) {
      int64_t place = (k - std::max<int64_t>(before, 0)) % kept;
      at[k] = first + (place < 0 ? place + kept : place);
    }
    out = ops::index_select(out, d, ops::lift_fresh(beside(self, index)));
  }
  return out.is_same(self) ? ops::clone(self) : out;
}

namespace {

Tensor bordered(const Tensor& self, ArrayRef<int64_t> pad, Mode mode) {
  bool reflect = mode == Mode::Reflect;
  int64_t rank = self.dim();
  if (pad.size() == 2 && (rank == 2 || rank == 3)) {
    return reflect ? ops::reflection_pad1d(self, pad)
                   : ops::replication_pad1d(self, pad);
  }
  if (pad.size() == 4 && (rank == 3 || rank == 4)) {
    return reflect ? ops::reflection_pad2d(self, pad)
                   : ops::replication_pad2d(self, pad);
  }
  TAEDA_CHECK_AS(
      NotImplemented,
      pad.size() == 6 && (rank == 4 || rank == 5),
      "pad: Padding size ",
      pad.size(),
      " is not supported for ",
      rank,
      "D input tensor. Padding that is not constant takes 2 numbers for 2D and "
      "3D input, 4 for 3D and 4D, 6 for 4D and 5D.");
  return reflect ? ops::reflection_pad3d(self, pad)
                 : ops::replication_pad3d(self, pad);
}

}  // namespace

Tensor pad(const Tensor& self,
           ArrayRef<int64_t> pad,
           std::string_view mode,
           std::optional<double> value) {
  TAEDA_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  TAEDA_CHECK(static_cast<int64_t>(pad.size()) <= 2 * self.dim(),
              "Padding length should be less than or equal to two times the "
              "input dimension but got padding length ",
              pad.size(),
              " and input of dimension ",
              self.dim());
  if (mode == "constant") {
    return ops::constant_pad_nd(self, pad, Scalar(value.value_or(0.0)));
  }
  TAEDA_CHECK(!value || *value == 0,
              "Padding mode \"",
              mode,
              "\" doesn't take in value argument");
  if (mode == "reflect") return bordered(self, pad, Mode::Reflect);
  if (mode == "replicate") return bordered(self, pad, Mode::Replicate);
  TAEDA_CHECK_AS(
      NotImplemented, mode == "circular", "Unrecognised padding mode ", mode);
  return ops::_pad_circular(self, pad);
}

Tensor pad_sequence(TensorList sequences,
                    bool batch_first,
                    double padding_value,
                    std::string_view padding_side) {
  TAEDA_CHECK(!sequences.empty(), "received an empty list of sequences");
  TAEDA_CHECK(padding_side == "left" || padding_side == "right",
              "Expected padding_side to be one of left or right, but got ",
              padding_side,
              ".");
  const Tensor& first = sequences[0];
  int64_t longest = 0;
  for (const Tensor& t : sequences) {
    TAEDA_CHECK(t.dim() > 0, "pad_sequence: expected (length, ...), got 0-d");
    TAEDA_CHECK(t.sizes().slice(1) == first.sizes().slice(1),
                "pad_sequence: dims after the first must agree, got ",
                first.sizes(),
                " and ",
                t.sizes());
    longest = std::max(longest, t.sizes()[0]);
  }
  std::vector<Tensor> rows;
  for (const Tensor& t : sequences) {
    Tensor same =
        t.dtype() == first.dtype() ? t : ops::_to_copy(t, first.dtype());
    DimVector frame(static_cast<size_t>(2 * t.dim()), 0);
    frame[2 * t.dim() - (padding_side == "left" ? 2 : 1)] =
        longest - t.sizes()[0];
    rows.push_back(ops::constant_pad_nd(same, frame, Scalar(padding_value)));
  }
  return ops::stack(rows, batch_first ? 0 : 1);
}

}  // namespace taeda::native
