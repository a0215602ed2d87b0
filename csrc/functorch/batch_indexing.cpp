// Reading and writing at places that differ within the batch.
#include <taeda/csrc/functorch/batch_helpers.h>

#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/index.h>
#include <taeda/gen/ops/index_put.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/reshape.h>
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
  auto indices = along(call);
  if (!indices) return std::nullopt;
  return read(call, call.args[0].get<TensorBase>(), *indices);
}

std::optional<Stack> rows_added(BatchCall& call) {
  if (!call.is_batched(2)) return kernel_batch(call);
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

std::optional<Stack> rows_copied(BatchCall& call) {
  if (!call.is_batched(2)) return kernel_batch(call);
  auto indices = along(call);
  if (!indices) return std::nullopt;
  return write(call,
               call.args[0].get<TensorBase>(),
               *indices,
               call.args[3].get<TensorBase>(),
               /*accumulate=*/false);
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
    {"embedding", embedded},
    {"masked_fill.Tensor", filled},
    {"masked_fill_.Tensor", filled},
};

}  // namespace

ArrayRef<NamedRule> indexing_rules() { return kRules; }

}  // namespace taeda::functorch
