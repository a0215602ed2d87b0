// What moves entries or chooses among them: results are sparse tensors of their
// own, no views.
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/kernels.h>
#include <taeda/gen/native/_sparse_broadcast_to.h>
#include <taeda/gen/native/_spdiags.h>
#include <taeda/gen/ops/_to_sparse.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/bitwise_and.h>
#include <taeda/gen/ops/cumsum.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/flatten.h>
#include <taeda/gen/ops/ge.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/lt.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/nonzero.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/remainder.h>
#include <taeda/gen/ops/repeat_interleave.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/searchsorted.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sort.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/view_as_complex.h>
#include <taeda/gen/ops/view_as_real.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace taeda::native {

namespace {

Tensor count_up(int64_t n, const Tensor& beside) {
  return ops::arange(Scalar(n), kLong, std::nullopt, beside.device());
}
// Places where a condition of one dim holds.
Tensor where_true(const Tensor& condition) {
  return ops::reshape(ops::nonzero(condition), {-1});
}
std::vector<Tensor> rows_of(const Tensor& indices) {
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < indices.size(0); ++d) {
    rows.push_back(ops::select(indices, 0, d));
  }
  return rows;
}
Tensor stacked(const std::vector<Tensor>& rows, const Tensor& like) {
  if (rows.empty()) return ops::narrow(like, 0, 0, 0);
  return ops::stack(rows);
}

// Permutations
// -----------------------------------------------------------------

Tensor permute_sparse(const Tensor& self, IntArrayRef dims) {
  TAEDA_CHECK(static_cast<int64_t>(dims.size()) == self.dim(),
              "permute(sparse_coo): number of dimensions in the tensor input "
              "does not match the length of the desired ordering of dimensions "
              "i.e. input.dim() = ",
              self.dim(),
              " is not equal to len(dims) = ",
              dims.size());
  TAEDA_CHECK_AS(NotImplemented,
                 is_coo(self),
                 "permute: tensors of layout ",
                 layout_word(self.layout()));
  const SparseParts& p = parts_of(self);
  int64_t sparse = sparse_dims(self);
  DimVector places, values{0}, sizes;
  std::vector<char> taken(dims.size());
  bool in_order = true;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim(dims[i], self.dim());
    TAEDA_CHECK(std::exchange(taken[static_cast<size_t>(d)], 1) == 0,
                "permute(sparse_coo): duplicate dims are not allowed: ",
                dims);
    bool named = static_cast<int64_t>(i) < sparse;
    TAEDA_CHECK(named == (d < sparse),
                "permute(sparse_coo): transpositions between sparse and dense "
                "dimensions are not allowed. Got dims ",
                dims);
    sizes.push_back(self.size(d));
    if (named) {
      in_order &= d == static_cast<int64_t>(i);
      places.push_back(d);
    } else {
      values.push_back(d - sparse + 1);
    }
  }
  std::vector<Tensor> rows;
  for (int64_t d : places) rows.push_back(ops::select(p.indices, 0, d));
  Tensor moved = make_coo(in_order ? p.indices : stacked(rows, p.indices),
                          ops::permute(p.values, values),
                          sizes,
                          /*coalesced=*/false);
  // As in PyTorch, which asks for the first dim as it is written.
  bool first = in_order && (dims.empty() || dims[0] == 0);
  return with_order(moved, p.coalesced && (first || p.values.size(0) == 0));
}

Layout transposed_layout(Layout l) {
  switch (l) {
    case Layout::SparseCsr:
      return Layout::SparseCsc;
    case Layout::SparseCsc:
      return Layout::SparseCsr;
    case Layout::SparseBsr:
      return Layout::SparseBsc;
    default:
      return Layout::SparseBsr;
  }
}

Tensor transpose_sparse(const Tensor& self, int64_t dim0, int64_t dim1) {
  int64_t a = wrap_dim(dim0, self.dim()), b = wrap_dim(dim1, self.dim());
  DimVector dims(static_cast<size_t>(self.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  std::swap(dims[static_cast<size_t>(a)], dims[static_cast<size_t>(b)]);
  if (is_coo(self)) return permute_sparse(self, dims);
  int64_t batch = batch_dims(self);
  if (a == b) return with_values(self, parts_of(self).values);
  TAEDA_CHECK_AS(NotImplemented,
                 std::min(a, b) == batch && std::max(a, b) == batch + 1,
                 "transpose: of the dims of a compressed tensor only the rows "
                 "and the columns can be transposed, got dims ",
                 dim0,
                 " and ",
                 dim1);
  const SparseParts& p = parts_of(self);
  DimVector sizes(self.sizes());
  std::swap(sizes[static_cast<size_t>(a)], sizes[static_cast<size_t>(b)]);
  Tensor values = is_blocked(self.layout())
                      ? ops::transpose(p.values, batch + 1, batch + 2)
                      : p.values;
  return make_compressed(
      transposed_layout(self.layout()), p.offsets, p.indices, values, sizes);
}

Tensor t_sparse(const Tensor& self) {
  TAEDA_CHECK(
      self.dim() <= 2 && sparse_dims(self) <= 2 && dense_dims(self) == 0,
      "t() expects a tensor with <= 2 sparse and 0 dense dimensions, "
      "but got ",
      sparse_dims(self),
      " sparse and ",
      dense_dims(self),
      " dense dimensions");
  return self.dim() < 2 ? with_values(self, parts_of(self).values)
                        : transpose_sparse(self, 0, 1);
}

void transpose_sparse_(const Tensor& self, int64_t dim0, int64_t dim1) {
  set_parts(self, transpose_sparse(self, dim0, dim1));
}
void t_sparse_(const Tensor& self) { set_parts(self, t_sparse(self)); }

Tensor view_as_real_sparse(const Tensor& self) {
  TAEDA_CHECK(is_complex(self.dtype()),
              "view_as_real is only supported for complex tensors");
  TAEDA_CHECK_AS(NotImplemented,
                 is_coo(self),
                 "view_as_real: tensors of layout ",
                 layout_word(self.layout()));
  DimVector sizes(self.sizes());
  sizes.push_back(2);
  const SparseParts& p = parts_of(self);
  return make_coo(p.indices, ops::view_as_real(p.values), sizes, p.coalesced);
}
Tensor view_as_complex_sparse(const Tensor& self) {
  TAEDA_CHECK_AS(NotImplemented,
                 is_coo(self),
                 "view_as_complex: tensors of layout ",
                 layout_word(self.layout()));
  TAEDA_CHECK(dense_dims(self) > 0 && self.size(-1) == 2,
              "view_as_complex: the last dim of a sparse tensor must be dense "
              "and have two elements, got sizes ",
              self.sizes());
  const SparseParts& p = parts_of(self);
  IntArrayRef sizes = first_sizes(self, self.dim() - 1);
  return make_coo(
      p.indices, ops::view_as_complex(p.values), sizes, p.coalesced);
}

Tensor unsqueeze_sparse(const Tensor& self, int64_t dim) {
  TAEDA_CHECK_AS(NotImplemented,
                 is_coo(self),
                 "unsqueeze: tensors of layout ",
                 layout_word(self.layout()));
  int64_t d = wrap_dim(dim, self.dim() + 1), sparse = sparse_dims(self);
  const SparseParts& p = parts_of(self);
  DimVector sizes(self.sizes());
  sizes.insert(sizes.begin() + d, 1);
  if (d > sparse) {
    return make_coo(p.indices,
                    ops::unsqueeze(p.values, d - sparse + 1),
                    sizes,
                    p.coalesced);
  }
  std::vector<Tensor> rows = rows_of(p.indices);
  Tensor zeros =
      ops::zeros({p.values.size(0)}, kLong, std::nullopt, p.values.device());
  rows.insert(rows.begin() + d, zeros);
  return make_coo(ops::stack(rows), p.values, sizes, p.coalesced);
}

// Choices
// ----------------------------------------------------------------------

Tensor select_coo(const Tensor& self, int64_t d, int64_t index) {
  const SparseParts& p = parts_of(self);
  int64_t sparse = sparse_dims(self);
  DimVector sizes(self.sizes());
  sizes.erase(sizes.begin() + d);
  if (d >= sparse) {
    return make_coo(p.indices,
                    ops::select(p.values, d - sparse + 1, index),
                    sizes,
                    p.coalesced);
  }
  std::vector<Tensor> rows = rows_of(p.indices);
  Tensor entries =
      where_true(ops::eq(rows[static_cast<size_t>(d)], Scalar(index)));
  if (sparse == 1) {
    return ops::to(
        ops::sum(ops::index_select(p.values, 0, entries), IntArrayRef{0}),
        self.dtype());
  }
  rows.erase(rows.begin() + d);
  return make_coo(ops::index_select(ops::stack(rows), 1, entries),
                  ops::index_select(p.values, 0, entries),
                  sizes,
                  p.coalesced);
}

// A batch of a compressed tensor, or a place along its dense dims: compressed.
Tensor select_compressed(const Tensor& self, int64_t d, int64_t index) {
  const SparseParts& p = parts_of(self);
  DimVector sizes(self.sizes());
  sizes.erase(sizes.begin() + d);
  if (d < batch_dims(self)) {
    return make_compressed(self.layout(),
                           ops::select(p.offsets, d, index),
                           ops::select(p.indices, d, index),
                           ops::select(p.values, d, index),
                           sizes);
  }
  // Dense dims come last in the values, too.
  Tensor values = ops::select(p.values, d - self.dim(), index);
  return make_compressed(self.layout(), p.offsets, p.indices, values, sizes);
}

Tensor select_sparse(const Tensor& self, int64_t dim, int64_t index) {
  TAEDA_CHECK_AS(
      Index, self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  int64_t d = wrap_dim(dim, self.dim()), size = self.size(d);
  TAEDA_CHECK_AS(Index,
                 index >= -size && index < size,
                 "select(): index ",
                 index,
                 " out of range for tensor of size ",
                 self.sizes(),
                 " at dimension ",
                 d);
  if (index < 0) index += size;
  if (is_coo(self)) return select_coo(self, d, index);
  int64_t batch = batch_dims(self);
  if (d < batch || d >= batch + 2) return select_compressed(self, d, index);
  TAEDA_CHECK(batch == 0,
              "select(): selecting sparse dimensions is not supported for "
              "batched sparse compressed tensors.");
  // Each place is named once: what is left needs to be put in order alone.
  return coalesced(select_coo(to_coo(self), d, index));
}

std::vector<Tensor> unbind_sparse(const Tensor& self, int64_t dim) {
  TAEDA_CHECK_AS(
      Index, self.dim() > 0, "unbind: a tensor without dims has no parts");
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < self.size(dim); ++i) {
    parts.push_back(select_sparse(self, dim, i));
  }
  return parts;
}

// Places along a dim of `size`, counted from its beginning.
Tensor wrapped_places(const Tensor& index, int64_t size, int64_t dim) {
  Tensor places = ops::to(ops::reshape(index, {-1}), kLong);
  if (places.size(0) == 0) return places;
  int64_t first = ops::item(ops::amin(places, {})).to_int();
  int64_t last = ops::item(ops::amax(places, {})).to_int();
  TAEDA_CHECK_AS(Index,
                 first >= -size && last < size,
                 "index_select(): index contains ",
                 last < size ? first : last,
                 " that is out of range for tensor of size ",
                 size,
                 " at dimension ",
                 dim);
  return first < 0 ? ops::remainder(places, Scalar(size)) : places;
}

Tensor index_select_sparse(const Tensor& self,
                           int64_t dim,
                           const Tensor& index) {
  TAEDA_CHECK_AS(NotImplemented,
                 is_coo(self),
                 "index_select: tensors of layout ",
                 layout_word(self.layout()));
  TAEDA_CHECK_AS(Index,
                 index.dim() <= 1,
                 "index_select(): Index is supposed to be a vector, but got ",
                 index.dim(),
                 " dims");
  int64_t d = wrap_dim(dim, self.dim()), sparse = sparse_dims(self);
  const SparseParts& p = parts_of(self);
  DimVector sizes(self.sizes());
  Tensor wanted = wrapped_places(index, self.size(d), d);
  sizes[static_cast<size_t>(d)] = wanted.size(0);
  if (d >= sparse) {
    return make_coo(p.indices,
                    ops::index_select(p.values, d - sparse + 1, wanted),
                    sizes,
                    p.coalesced);
  }
  // Each entry once for every time that its place is wanted.
  auto [ordered, origin] = ops::sort(wanted, std::optional<bool>(true), 0);
  std::vector<Tensor> rows = rows_of(p.indices);
  const Tensor& row = rows[static_cast<size_t>(d)];
  Tensor from = ops::searchsorted(ordered, row);
  Tensor to = ops::searchsorted(ordered, row, false, /*right=*/true);
  Tensor counts = ops::sub(to, from);
  Tensor entries = ops::repeat_interleave(counts);
  Tensor before = ops::sub(ops::cumsum(counts, 0), counts);
  Tensor at = ops::sub(count_up(entries.size(0), row),
                       ops::index_select(before, 0, entries));
  at = ops::add(at, ops::index_select(from, 0, entries));
  std::vector<Tensor> moved;
  for (const Tensor& r : rows)
    moved.push_back(ops::index_select(r, 0, entries));
  moved[static_cast<size_t>(d)] = ops::index_select(origin, 0, at);
  return make_coo(ops::stack(moved),
                  ops::index_select(p.values, 0, entries),
                  sizes,
                  /*coalesced=*/false);
}

// Entries of [start, end) along a dim that indices name.
Tensor narrow_sparse(const Tensor& self,
                     int64_t dim,
                     int64_t start,
                     int64_t length) {
  TAEDA_CHECK_AS(NotImplemented,
                 is_coo(self),
                 "narrow_copy: tensors of layout ",
                 layout_word(self.layout()));
  int64_t d = wrap_dim(dim, self.dim()), sparse = sparse_dims(self);
  TAEDA_CHECK(length >= 0 && start >= 0 && start + length <= self.size(d),
              "Invalid range to narrow. range(start, start+length) must be a "
              "subset of range(0, ",
              self.size(d),
              ").");
  const SparseParts& p = parts_of(self);
  DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(d)] = length;
  if (d >= sparse) {
    Tensor values = ops::narrow(p.values, d - sparse + 1, start, length);
    return make_coo(p.indices, values, sizes, p.coalesced);
  }
  std::vector<Tensor> rows = rows_of(p.indices);
  Tensor& row = rows[static_cast<size_t>(d)];
  Tensor entries = where_true(ops::bitwise_and(
      ops::ge(row, Scalar(start)), ops::lt(row, Scalar(start + length))));
  row = ops::sub(row, Scalar(start));
  return make_coo(ops::index_select(ops::stack(rows), 1, entries),
                  ops::index_select(p.values, 0, entries),
                  sizes,
                  p.coalesced);
}

// Every entry `count` times, with 0 to count - 1 in row `d` of its place.
Tensor repeat_along(const Tensor& t, int64_t d, int64_t count) {
  const SparseParts& p = parts_of(t);
  int64_t n = p.values.size(0);
  Tensor number = count_up(n * count, p.values);
  Tensor entries =
      ops::reshape(ops::expand(count_up(n, p.values), {count, n}), {-1});
  Tensor steps = ops::repeat_interleave(count_up(count, p.values), n);
  std::vector<Tensor> rows = rows_of(ops::index_select(p.indices, 1, entries));
  rows[static_cast<size_t>(d)] = steps;
  DimVector sizes(t.sizes());
  sizes[static_cast<size_t>(d)] = count;
  return make_coo(ops::stack(rows),
                  ops::index_select(p.values, 0, entries),
                  sizes,
                  p.coalesced && d == 0);
}

}  // namespace

Tensor sparse_broadcast_to(const Tensor& self, IntArrayRef size) {
  TAEDA_CHECK_AS(NotImplemented,
                 is_coo(self),
                 "_sparse_broadcast_to: tensors of layout ",
                 layout_word(self.layout()));
  Tensor t = self;
  while (t.dim() < static_cast<int64_t>(size.size()))
    t = unsqueeze_sparse(t, 0);
  int64_t sparse = sparse_dims(t);
  for (int64_t d = t.dim(); d-- > 0;) {
    int64_t wanted = size[static_cast<size_t>(d)];
    if (wanted == t.size(d)) continue;
    TAEDA_CHECK(t.size(d) == 1,
                "_sparse_broadcast_to: the length ",
                t.size(d),
                " does not broadcast to ",
                wanted,
                " at dimension ",
                d);
    if (d < sparse) {
      t = repeat_along(t, d, wanted);
      continue;
    }
    const SparseParts& p = parts_of(t);
    DimVector values(p.values.sizes()), sizes(t.sizes());
    values[static_cast<size_t>(d - sparse + 1)] = wanted;
    sizes[static_cast<size_t>(d)] = wanted;
    t = make_coo(p.indices, ops::expand(p.values, values), sizes, p.coalesced);
  }
  return t;
}

Tensor spdiags(const Tensor& diagonals,
               const Tensor& offsets,
               IntArrayRef shape,
               std::optional<Layout> layout) {
  Tensor lines =
      diagonals.dim() == 1 ? ops::unsqueeze(diagonals, 0) : diagonals;
  Tensor which = offsets.dim() == 0 ? ops::unsqueeze(offsets, 0) : offsets;
  TAEDA_CHECK(lines.dim() == 2, "Diagonals must be vector or matrix");
  TAEDA_CHECK(shape.size() == 2, "Output shape must be 2d");
  TAEDA_CHECK(which.dim() == 1, "Offsets must be scalar or vector");
  TAEDA_CHECK(lines.size(0) == which.size(0),
              "Number of diagonals (",
              lines.size(0),
              ") does not match the number of offsets (",
              which.size(0),
              ")");
  int64_t n = lines.size(0), length = lines.size(1);
  // Element j of a line is in column j, `offset` rows further up.
  Tensor column = ops::expand(count_up(length, lines), {n, length});
  Tensor row = ops::sub(column, ops::unsqueeze(ops::to(which, kLong), 1));
  Tensor inside =
      ops::bitwise_and(ops::ge(row, Scalar(0)), ops::lt(row, Scalar(shape[0])));
  inside = ops::bitwise_and(inside, ops::lt(column, Scalar(shape[1])));
  Tensor entries = where_true(ops::flatten(inside));
  Tensor places = ops::stack({ops::flatten(row), ops::flatten(column)});
  Tensor coo =
      make_coo(ops::index_select(places, 1, entries),
               ops::index_select(ops::reshape(lines, {-1}), 0, entries),
               shape,
               /*coalesced=*/false);
  if (!layout || *layout == Layout::Sparse) return coo;
  return ops::_to_sparse(coo, layout);
}

void add_views(Library& m) {
  m.impl("permute", permute_sparse);
  m.impl("transpose.int", transpose_sparse);
  m.impl("t", t_sparse);
  m.impl("transpose_", transpose_sparse_);
  m.impl("t_", t_sparse_);
  m.impl("view_as_real", view_as_real_sparse);
  m.impl("view_as_complex", view_as_complex_sparse);
  m.impl("unsqueeze", unsqueeze_sparse);
  m.impl("select.int", select_sparse);
  m.impl("unbind.int", unbind_sparse);
  m.impl("index_select", index_select_sparse);
  m.impl("narrow_copy", narrow_sparse);
}

}  // namespace taeda::native
