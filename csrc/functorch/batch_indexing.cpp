// Reading and writing at places that differ within the batch.
#include <taeda/csrc/functorch/batch_helpers.h>

#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/embedding_dense_backward.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/full.h>
#include <taeda/gen/ops/index.h>
#include <taeda/gen/ops/index_put.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/scatter_reduce.h>
#include <taeda/gen/ops/searchsorted.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/unflatten.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/where.h>

#include <algorithm>

namespace taeda::functorch {

namespace {

using Indices = std::vector<OptionalTensor>;

// Indices of all dims of `self` with the batch in front, which an index of its
// own walks through.
struct Places {
  Indices indices;
  int64_t rank = 0;    // of what the indices say together
  int64_t before = 0;  // dims of the result before those, without the batch

  // Where the dims of a result [batch, places, dims before, rest] belong, or of
  // values on the way to it.
  std::vector<int64_t> order(int64_t dims, bool to_result) const {
    std::vector<int64_t> to{0};
    int64_t first = to_result ? rank : before,
            second = to_result ? before : rank;
    for (int64_t d = 0; d < second; ++d) to.push_back(1 + first + d);
    for (int64_t d = 0; d < first; ++d) to.push_back(1 + d);
    while (static_cast<int64_t>(to.size()) < dims) {
      to.push_back(static_cast<int64_t>(to.size()));
    }
    return to;
  }
};

// Nothing where a mask is among the indices: how many places it means depends
// on the element of the batch.
std::optional<Places> places_of(const BatchLevel& level, const Indices& given) {
  Places p;
  std::vector<int64_t> at;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i] || !given[i]->defined()) continue;
    if (given[i]->dtype() == kBool || given[i]->dtype() == kByte) return {};
    at.push_back(static_cast<int64_t>(i));
    p.rank = std::max(p.rank, given[i]->dim());
  }
  if (at.empty()) return {};
  bool adjacent = at.back() - at.front() + 1 == static_cast<int64_t>(at.size());
  p.before = adjacent ? at.front() : 0;
  Device device = given[static_cast<size_t>(at[0])]->device();
  TensorBase all = ops::arange(
      Scalar(level.size()), kLong, std::nullopt, device, std::nullopt);
  DimVector column(static_cast<size_t>(p.rank + 1), 1);
  column[0] = level.size();
  p.indices.push_back(ops::reshape(all, column));
  for (const OptionalTensor& t : given) {
    if (!t || !t->defined()) {
      p.indices.emplace_back();
    } else if (level.has_batch(*t)) {
      p.indices.push_back(padded(level.inside(*t), p.rank));
    } else {
      p.indices.push_back(*t);
    }
  }
  return p;
}

std::optional<Stack> read(BatchCall& call,
                          const TensorBase& self,
                          const Indices& given) {
  auto places = places_of(call.level, given);
  if (!places) return std::nullopt;
  TensorBase out = ops::index(call.level.unwrap(self, 0), places->indices);
  return Stack{ops::permute(out, places->order(out.dim(), true))};
}

// Values have the result's sizes, or fewer dims, or sizes of 1.
std::optional<Stack> write(BatchCall& call,
                           const TensorBase& self,
                           const Indices& given,
                           const TensorBase& values,
                           bool accumulate) {
  auto places = places_of(call.level, given);
  if (!places) return std::nullopt;
  int64_t indexed = 0;
  for (const OptionalTensor& t : given) indexed += t && t->defined() ? 1 : 0;
  int64_t rank = self.dim() - indexed + places->rank;
  TensorBase v = padded(call.level.unwrap(values, 0), rank);
  v = ops::permute(v, places->order(v.dim(), false));
  TensorBase to = call.level.unwrap(self, 0);
  if (!call.in_place()) {
    return Stack{ops::index_put(to, places->indices, v, accumulate)};
  }
  if (!call.level.has_batch(self)) return std::nullopt;
  ops::index_put_(to, places->indices, v, accumulate);
  return Stack{to};
}

const Indices& indices_in(const BatchCall& call) {
  return call.args[1].get<Indices>();
}

std::optional<Stack> indexed(BatchCall& call) {
  return read(call, call.args[0].get<TensorBase>(), indices_in(call));
}

std::optional<Stack> put(BatchCall& call) {
  return write(call,
               call.args[0].get<TensorBase>(),
               indices_in(call),
               call.args[2].get<TensorBase>(),
               call.args[3].to_bool());
}

// Numbers at these places count as rows of one element.
void make_rows(BatchCall& call, std::initializer_list<size_t> places) {
  for (size_t i : places) {
    if (rank_of(call, i) > 0) continue;
    call.args[i] = call.level.wrap(ops::unsqueeze(batched(call, i), 1));
  }
}

// `rule` on rows, where the tensor that is read or written is a number.
template <class F>
std::optional<Stack> of_rows(BatchCall& call,
                             std::initializer_list<size_t> places,
                             F&& rule) {
  bool number = rank_of(call, 0) == 0;
  if (number && call.in_place() && !call.is_batched(0)) return std::nullopt;
  std::vector<IValue> args(call.args.begin(), call.args.end());
  BatchCall rows{call.level, call.op, args};
  make_rows(rows, places);
  std::optional<Stack> found = rule(rows);
  if (!found || !number) return found;
  TensorBase& t = (*found)[0].get<TensorBase>();
  t = call.in_place() ? batched(call, 0) : ops::squeeze(t, 1);
  return found;
}

// One index, a row of places, for the dim that argument 1 names.
std::optional<Indices> along(const BatchCall& call) {
  const TensorBase& self = call.args[0].get<TensorBase>();
  const TensorBase& index = call.args[2].get<TensorBase>();
  if (self.dim() == 0 || index.dim() != 1) return std::nullopt;
  Indices found(
      static_cast<size_t>(wrap_dim(call.args[1].to_int(), self.dim())));
  found.emplace_back(index);
  return found;
}

std::optional<Stack> selected(BatchCall& call) {
  if (!call.is_batched(2)) return kernel_batch(call);
  return of_rows(call, {0, 2}, [](BatchCall& c) -> std::optional<Stack> {
    auto indices = along(c);
    if (!indices) return std::nullopt;
    return read(c, c.args[0].get<TensorBase>(), *indices);
  });
}

std::optional<Stack> add_rows(BatchCall& call) {
  auto indices = along(call);
  if (!indices) return std::nullopt;
  TensorBase source = call.args[3].get<TensorBase>();
  if (!call.args[4].to_scalar().equal(1.0)) {
    TensorBase scaled = ops::mul(batched(call, 3), call.args[4].to_scalar());
    source = call.level.wrap(scaled);
  }
  return write(call,
               call.args[0].get<TensorBase>(),
               *indices,
               source,
               /*accumulate=*/true);
}
std::optional<Stack> rows_added(BatchCall& call) {
  if (!call.is_batched(2)) return kernel_batch(call);
  return of_rows(call, {0, 2, 3}, add_rows);
}

std::optional<Stack> copy_rows(BatchCall& call) {
  auto indices = along(call);
  if (!indices) return std::nullopt;
  return write(call,
               call.args[0].get<TensorBase>(),
               *indices,
               call.args[3].get<TensorBase>(),
               /*accumulate=*/false);
}
std::optional<Stack> rows_copied(BatchCall& call) {
  if (!call.is_batched(2)) return kernel_batch(call);
  return of_rows(call, {0, 2, 3}, copy_rows);
}

// A number, or a tensor of one for each call.
std::optional<Stack> fill_rows(BatchCall& call) {
  const TensorBase& self = call.args[0].get<TensorBase>();
  auto indices = along(call);
  if (!indices) return std::nullopt;
  TensorBase value;
  if (!call.args[3].is<TensorBase>()) {
    value = ops::full({},
                      call.args[3].to_scalar(),
                      self.dtype(),
                      std::nullopt,
                      self.device(),
                      std::nullopt);
  } else {
    value = ops::_to_copy(batched(call, 3), self.dtype());
    value = call.level.wrap(value);
  }
  return write(call, self, *indices, value, /*accumulate=*/false);
}
std::optional<Stack> rows_filled(BatchCall& call) {
  if (!call.is_batched(2) && !call.is_batched(3)) return kernel_batch(call);
  return of_rows(call, {0, 2}, fill_rows);
}

// An index of its own for each element, as scatter_reduce takes it.
std::optional<Stack> reduce_rows(BatchCall& call) {
  const TensorBase& self = call.args[0].get<TensorBase>();
  if (rank_of(call, 2) != 1) return std::nullopt;
  int64_t dim = behind_batch(call.args[1].to_int(), self.dim());
  TensorBase source = batched(call, 3), index = batched(call, 2);
  std::vector<int64_t> line(source.sizes().size(), 1);
  line[0] = call.level.size();
  line[static_cast<size_t>(dim)] = index.size(1);
  index = ops::_to_copy(ops::reshape(index, line), kLong);
  index = ops::expand(index, source.sizes());
  const auto& reduce = call.args[4].get<std::string>();
  bool with_self = call.args[5].to_bool();
  TensorBase to = batched(call, 0);
  if (!call.in_place()) {
    return Stack{
        ops::scatter_reduce(to, dim, index, source, reduce, with_self)};
  }
  if (!call.is_batched(0)) return std::nullopt;
  ops::scatter_reduce_(to, dim, index, source, reduce, with_self);
  return Stack{to};
}
std::optional<Stack> rows_reduced(BatchCall& call) {
  if (!call.is_batched(2)) return kernel_batch(call);
  return of_rows(call, {0, 2, 3}, reduce_rows);
}

// Each element of the batch has numbers of its own.
std::optional<Stack> embedding_gradient(BatchCall& call) {
  if (!call.is_batched(1)) return kernel_batch(call);
  int64_t size = call.level.size(), count = call.args[2].to_int();
  int64_t padding = call.args[3].to_int();
  TensorBase indices = batched(call, 1);
  std::vector<int64_t> column(indices.sizes().size(), 1);
  column[0] = size;
  TensorBase first = ops::reshape(ops::mul(ops::arange(Scalar(size),
                                                       indices.dtype(),
                                                       std::nullopt,
                                                       indices.device(),
                                                       std::nullopt),
                                           Scalar(count)),
                                  column);
  // What is left out belongs to a row behind all others.
  TensorBase rows = ops::masked_fill(ops::add(indices, first),
                                     ops::eq(indices, Scalar(padding)),
                                     Scalar(size * count));
  TensorBase all = ops::embedding_dense_backward(batched(call, 0),
                                                 rows,
                                                 size * count + 1,
                                                 size * count,
                                                 call.args[4].to_bool());
  all = ops::narrow(all, 0, int64_t{0}, size * count);
  return Stack{ops::unflatten(all, 0, {size, count})};
}

// Boundaries of its own for each element.
std::optional<Stack> bucketed(BatchCall& call) {
  if (!call.is_batched(1)) return kernel_batch(call);
  TensorBase value = batched(call, 0);
  TensorBase rows = ops::reshape(value, {value.size(0), -1});
  TensorBase found = ops::searchsorted(
      batched(call, 1), rows, call.args[2].to_bool(), call.args[3].to_bool());
  return Stack{ops::reshape(found, value.sizes())};
}

std::optional<Stack> embedded(BatchCall& call) {
  if (!call.is_batched(0) || !call.is_batched(1)) return kernel_batch(call);
  return read(
      call, call.args[0].get<TensorBase>(), {call.args[1].get<TensorBase>()});
}

// A batch of values is no longer one value.
std::optional<Stack> filled(BatchCall& call) {
  if (!call.is_batched(2)) return pointwise_batch(call);
  const TensorBase& self = call.args[0].get<TensorBase>();
  int64_t rank = std::max(self.dim(), rank_of(call, 1));
  TensorBase value = batched(call, 2);
  if (value.dtype() != self.dtype()) value = ops::_to_copy(value, self.dtype());
  TensorBase to = batched(call, 0);
  TensorBase out = ops::where(
      padded(batched(call, 1), rank), padded(value, rank), padded(to, rank));
  if (!call.in_place()) return Stack{out};
  if (!call.is_batched(0)) return std::nullopt;
  ops::copy_(to, out);
  return Stack{to};
}

// The offset counts from where each sample begins.
std::optional<Stack> strided_written(BatchCall& call) {
  TensorBase out = ops::clone(batched(call, 0));
  std::vector<int64_t> sizes = ints(call.args[2]), strides = ints(call.args[3]);
  sizes.insert(sizes.begin(), call.level.size());
  strides.insert(strides.begin(), out.stride(0));
  int64_t offset = call.args[4].is_none() ? 0 : call.args[4].to_int();
  TensorBase part =
      ops::as_strided(out, sizes, strides, out.storage_offset() + offset);
  ops::copy_(part, batched(call, 1));
  return Stack{out};
}

constexpr NamedRule kRules[] = {
    {"as_strided_scatter", strided_written},
    {"index.Tensor", indexed},
    {"_unsafe_index.Tensor", indexed},
    {"index_put", put},
    {"index_put_", put},
    {"index_select", selected},
    {"index_add", rows_added},
    {"index_add_", rows_added},
    {"index_copy", rows_copied},
    {"index_copy_", rows_copied},
    {"index_fill.int_Scalar", rows_filled},
    {"index_fill_.int_Scalar", rows_filled},
    {"index_fill.int_Tensor", rows_filled},
    {"index_fill_.int_Tensor", rows_filled},
    {"index_reduce", rows_reduced},
    {"index_reduce_", rows_reduced},
    {"bucketize.Tensor", bucketed},
    {"embedding", embedded},
    {"embedding_dense_backward", embedding_gradient},
    {"masked_fill.Tensor", filled},
    {"masked_fill_.Tensor", filled},
};

}  // namespace

ArrayRef<NamedRule> indexing_rules() { return kRules; }

}  // namespace taeda::functorch
