// Tensors one behind another: shapes of cat and stack, and what is made of
// them.
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/derived.h>
#include <taeda/aten/native/joining.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/block_diag.h>
#include <taeda/gen/native/cartesian_prod.h>
#include <taeda/gen/native/cat.h>
#include <taeda/gen/native/column_stack.h>
#include <taeda/gen/native/combinations.h>
#include <taeda/gen/native/dstack.h>
#include <taeda/gen/native/hstack.h>
#include <taeda/gen/native/stack.h>
#include <taeda/gen/native/vstack.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/atleast_1d.h>
#include <taeda/gen/ops/atleast_2d.h>
#include <taeda/gen/ops/atleast_3d.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/meshgrid.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/sym/constant_pad_nd.h>

namespace taeda::native {

namespace {

template <class I>
const Spec<I>& check_cat(SpecList<I> tensors) {
  TAEDA_CHECK_AS(Value,
                 !tensors.empty(),
                 "torch.cat(): expected a non-empty list of Tensors");
  const Spec<I>* model = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TAEDA_CHECK(tensors[i].dim() > 0,
                "zero-dimensional tensor (at position ",
                i,
                ") cannot be concatenated");
    if (model == nullptr && !is_skipped(tensors[i])) model = &tensors[i];
  }
  return model == nullptr ? tensors[0] : *model;
}

template <class I>
void check_fits(const Spec<I>& model, const Spec<I>& t, size_t i, int64_t dim) {
  TAEDA_CHECK(t.dim() == model.dim(),
              "Tensors must have same number of dimensions: got ",
              model.dim(),
              " and ",
              t.dim());
  for (int64_t d = 0; d < t.dim(); ++d) {
    TAEDA_CHECK(d == dim || t.sizes()[d] == model.sizes()[d],
                "Sizes of tensors must match except in dimension ",
                dim,
                ". Expected size ",
                model.sizes()[d],
                " but got size ",
                t.sizes()[d],
                " for tensor number ",
                i,
                " in the list.");
  }
}

template <class I>
MemoryFormat common_format(SpecList<I> tensors) {
  MemoryFormat format = tensors[0].suggest_memory_format();
  for (const Spec<I>& t : tensors) {
    if (t.suggest_memory_format() != format) return MemoryFormat::Contiguous;
  }
  return format;
}

}  // namespace

template <class I>
void cat_shape(SpecList<I> tensors, int64_t dim, Plan<I>& plan) {
  const Spec<I>& model = check_cat(tensors);
  // Where all are empty vectors, which fit anything, so is the result.
  dim = is_skipped(model) ? 0 : wrap_dim(dim, model.dim());
  Dims<I> sizes(model.sizes());
  sizes[dim] = 0;
  ResultType type;
  for (size_t i = 0; i < tensors.size(); ++i) {
    type.add(tensors[i]);
    if (is_skipped(tensors[i])) continue;
    check_fits(model, tensors[i], i, dim);
    sizes[dim] += tensors[i].sizes()[dim];
  }
  plan.set(0, sizes, common_format(tensors), type.get());
}
TAEDA_SHAPE(cat_shape);

template <class I>
void stack_shape(SpecList<I> tensors, int64_t dim, Plan<I>& plan) {
  TAEDA_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const Spec<I>& first = tensors[0];
  dim = wrap_dim(dim, first.dim() + 1);
  ResultType type;
  for (size_t i = 0; i < tensors.size(); ++i) {
    type.add(tensors[i]);
    TAEDA_CHECK(tensors[i].sizes() == first.sizes(),
                "stack expects each tensor to be equal size, but got ",
                first.sizes(),
                " at entry 0 and ",
                tensors[i].sizes(),
                " at entry ",
                i);
  }
  Dims<I> sizes(first.sizes());
  sizes.insert(sizes.begin() + dim, static_cast<int64_t>(tensors.size()));
  plan.set(0, sizes, type.get());
}
TAEDA_SHAPE(stack_shape);

namespace {

using ShapeRule = void (*)(SpecList<int64_t>, int64_t, Plan<int64_t>&);
using Writer = void (*)(TensorList, int64_t, const Tensor&);

// out= of cat and stack: PyTorch's refusal is a TypeError here.
void write_joined(const char* op,
                  ShapeRule shape,
                  Writer write,
                  TensorList tensors,
                  int64_t dim,
                  const Tensor& out) {
  Plan<int64_t> plan(op);
  shape(derived::specs_of(tensors), dim, plan);
  TAEDA_CHECK_AS(Type,
                 can_cast(plan[0].dtype, out.dtype()),
                 "torch.cat(): input types can't be cast to the desired output "
                 "type ",
                 out.dtype());
  for (const Tensor& t : tensors) check_no_overlap("torch.cat()", out, t);
  OutputTarget target = OutputTarget::for_out(plan, 0, out, tensors);
  if (out.is_cpu()) write(tensors, dim, target.tensor());
  target.finish();
}

template <class F>
std::vector<Tensor> mapped(TensorList tensors, F&& f) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}

void check_some(TensorList tensors, const char* op) {
  TAEDA_CHECK(!tensors.empty(), op, " expects a non-empty TensorList");
}

struct Joined {
  std::vector<Tensor> parts;
  int64_t dim;
  Tensor make() const { return ops::cat(parts, dim); }
  void write(const Tensor& out) const { ops::cat(parts, dim, out); }
};

Joined beside(TensorList tensors, const char* op) {
  check_some(tensors, op);
  auto parts =
      mapped(tensors, [](const Tensor& t) { return ops::atleast_1d(t); });
  int64_t dim = parts[0].dim() == 1 ? 0 : 1;
  return {std::move(parts), dim};
}
Joined below(TensorList tensors) {
  check_some(tensors, "vstack");
  return {mapped(tensors, [](const Tensor& t) { return ops::atleast_2d(t); }),
          0};
}
Joined behind(TensorList tensors) {
  check_some(tensors, "dstack");
  return {mapped(tensors, [](const Tensor& t) { return ops::atleast_3d(t); }),
          2};
}
Joined columns(TensorList tensors) {
  auto parts = mapped(tensors, [](const Tensor& t) {
    return t.dim() <= 1 ? ops::reshape(t, {t.numel(), 1}) : t;
  });
  return beside(parts, "column_stack");
}

}  // namespace

void cat_out(TensorList tensors, int64_t dim, const Tensor& out) {
  write_joined("cat", cat_shape<int64_t>, cat_cpu, tensors, dim, out);
}
void stack_out(TensorList tensors, int64_t dim, const Tensor& out) {
  write_joined("stack", stack_shape<int64_t>, stack_cpu, tensors, dim, out);
}

Tensor hstack(TensorList tensors) { return beside(tensors, "hstack").make(); }
Tensor vstack(TensorList tensors) { return below(tensors).make(); }
Tensor dstack(TensorList tensors) { return behind(tensors).make(); }
Tensor column_stack(TensorList tensors) { return columns(tensors).make(); }
void hstack_out(TensorList tensors, const Tensor& out) {
  beside(tensors, "hstack").write(out);
}
void vstack_out(TensorList tensors, const Tensor& out) {
  below(tensors).write(out);
}
void dstack_out(TensorList tensors, const Tensor& out) {
  behind(tensors).write(out);
}
void column_stack_out(TensorList tensors, const Tensor& out) {
  columns(tensors).write(out);
}

Tensor block_diag(TensorList tensors) {
  SymInt cols = 0;
  std::vector<Tensor> blocks = mapped(tensors, [&](const Tensor& t) {
    TAEDA_CHECK(t.dim() <= 2,
                "torch.block_diag: Input tensors must have 2 or fewer "
                "dimensions. Input has ",
                t.dim(),
                " dimensions");
    Tensor block = ops::atleast_2d(t);
    cols += symbolic_sizes(block)[1];
    return block;
  });
  if (blocks.empty()) return make_tensor("block_diag", {1, 0}, default_dtype());
  // A number among matrices promotes as one.
  ScalarType common = result_type(tensors);
  SymInt before = 0;
  for (Tensor& block : blocks) {
    if (block.dtype() != common) block = ops::_to_copy(block, common);
    SymInt width = symbolic_sizes(block)[1];
    block = sym::constant_pad_nd(
        block, {before, cols - before - width}, int64_t{0});
    before += width;
  }
  return ops::cat(blocks, 0);
}

Tensor cartesian_prod(TensorList tensors) {
  check_some(tensors, "cartesian_prod");
  for (const Tensor& t : tensors) {
    TAEDA_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
  }
  if (tensors.size() == 1) return tensors[0];
  auto grids = ops::meshgrid(tensors, "ij");
  for (Tensor& g : grids) g = ops::reshape(g, {-1});
  return ops::stack(grids, 1);
}

namespace {

// The next rising (or with repetition: not falling) tuple of positions.
bool advance(SmallVector<int64_t, 8>& tuple, int64_t n, bool repeat) {
  int64_t r = static_cast<int64_t>(tuple.size());
  for (int64_t i = r; i-- > 0;) {
    int64_t limit = repeat ? n - 1 : n - r + i;
    if (tuple[i] >= limit) continue;
    ++tuple[i];
    for (int64_t j = i + 1; j < r; ++j) tuple[j] = tuple[j - 1] + !repeat;
    return true;
  }
  return false;
}

}  // namespace

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  TAEDA_CHECK(
      self.dim() == 1, "Expect a 1D vector, but got shape ", self.sizes());
  TAEDA_CHECK(r >= 0, "Expect a non-negative number, but got ", r);
  int64_t n = self.sizes()[0];
  if (r == 0) return make_tensor("combinations", {0}, self.dtype());
  std::vector<int64_t> flat;
  int64_t count = 0;
  SmallVector<int64_t, 8> tuple(static_cast<size_t>(r), 0);
  if (!with_replacement) {
    for (int64_t i = 0; i < r; ++i) tuple[i] = i;
  }
  if (with_replacement ? n > 0 : n >= r) {
    do {
      flat.insert(flat.end(), tuple.begin(), tuple.end());
      ++count;
    } while (advance(tuple, n, with_replacement));
  }
  Tensor index =
      make_tensor("combinations", {static_cast<int64_t>(flat.size())}, kLong);
  std::copy(flat.begin(), flat.end(), index.mutable_data<int64_t>());
  if (self.device().is_cuda()) {
    Tensor there =
        make_tensor("combinations", index.sizes(), kLong, self.device());
    copy_into(there, index);
    index = there;
  }
  return ops::reshape(ops::index_select(self, 0, index), {count, r});
}

}  // namespace taeda::native
