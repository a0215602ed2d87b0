#include <taeda/aten/native/cuda/attention_launch.h>

#include <taeda/aten/core/memory.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/attention_scale.h>
#include <taeda/c10/cuda/device.h>
#include <taeda/c10/cuda/generator.h>
#include <taeda/gen/ops/t.h>

#include <algorithm>
#include <climits>
#include <limits>
#include <vector>

namespace taeda::cuda {

namespace {

// Note [Attention on a device]
// One text serves flash and memory-efficient attention, which are the same
// algorithm: attention.cuh forward, attention_backward.cuh backward. A block
// has `own` rows of a head (16 for each of its warps) in shared memory, beside
// a tile of `tile` rows of each of two others at a time. All of it fits into
// the 48 KiB that a kernel has without asking, so several blocks share a
// multiprocessor, and one computes while another reads.
//
// Sequences behind one another (AttentionParts) take the same kernels, with
// blocks enough for the longest; those beyond a sequence's end do nothing.
//
// Few queries leave most of a device without a block: then keys are split into
// shares of several blocks, each of which writes its weighted values and log
// sums in float, and a second launch joins them in the order of the shares. One
// query whose head shares its keys with others (decoding) is a row of their
// tile, so that these keys are read once.
constexpr int64_t kSharedBytes = 48 * 1024;
constexpr int kWarpRows = 16;
constexpr int64_t kWidthStep = 32;
// Beyond this a warp's registers do not hold gradients of keys and of values;
// products of floats need more of them.
constexpr int64_t most_for_both(ScalarType t) { return t == kFloat ? 96 : 128; }
constexpr int64_t kMostWidth = 256;
// A share is no shorter, and there are no more of them.
constexpr int64_t kLeastTiles = 4, kMostShares = 64;
// Warps that a multiprocessor is to have before keys are not split.
constexpr int64_t kWantedWarps = 8;

// The most rows that fit, of `own` tensors that stay and two that pass by; more
// rows that stay before more that pass, but not more than there are. Products
// by tensor cores take sixteen rows at once.
AttentionShape shape_of(int64_t width,
                        ScalarType t,
                        int own_tensors,
                        int64_t rows) {
  AttentionShape s{};
  s.width =
      static_cast<int>((width + kWidthStep - 1) / kWidthStep * kWidthStep);
  int64_t row = s.width * static_cast<int64_t>(element_size(t));
  int least = t == kFloat ? 8 : 16;
  for (s.own = 64; s.own >= kWarpRows; s.own /= 2) {
    if (s.own > kWarpRows && rows <= s.own / 2) continue;
    // Gradients of 64 by 64 weights would leave no registers for the sums.
    int most = own_tensors == 1 ? 64 : 32;
    for (s.tile = most; s.tile >= least; s.tile /= 2) {
      if ((own_tensors * s.own + 2 * s.tile) * row <= kSharedBytes) return s;
    }
  }
  throw_error(ErrorKind::Internal,
              str_cat("attention: no tiles for a width of ", width));
}

AttentionRows rows_of(const HeadTensor& t) {
  if (!t.tensor->defined()) return {};
  AttentionRows rows{};
  rows.data = const_cast<void*>(t.tensor->const_raw_data());
  rows.batch = t.strides[0];
  rows.head = t.strides[1];
  rows.row = t.strides[2];
  rows.column = t.strides[3];
  rows.width = static_cast<int>(t.sizes[3]);
  int64_t pack = 16 / static_cast<int64_t>(t.tensor->itemsize());
  bool packed = (rows.column == 1 || rows.width == 1) && rows.width % 2 == 0 &&
                reinterpret_cast<uintptr_t>(rows.data) % 16 == 0;
  for (size_t d = 0; d < 3; ++d) {
    packed = packed && (t.sizes[d] <= 1 || t.strides[d] % pack == 0);
  }
  rows.packed = packed ? 1 : 0;
  return rows;
}

const int* numbers_of(const char* op,
                      const char* name,
                      const TensorBase& t,
                      int64_t count) {
  TAEDA_CHECK(t.dtype() == kInt && t.is_contiguous() && t.device().is_cuda(),
              op,
              ": expected ",
              name,
              " to be contiguous and of int32, on the query's device");
  TAEDA_CHECK(t.numel() == count,
              op,
              ": expected ",
              name,
              " of ",
              count,
              " numbers, got ",
              t.numel());
  return static_cast<const int*>(t.const_raw_data());
}

}  // namespace

HeadTensor heads_first(const TensorBase& t) {
  HeadTensor made{&t, {}, {}};
  for (size_t d = 0; t.defined() && d < 4; ++d) {
    made.sizes[d] = t.sizes()[d];
    made.strides[d] = t.strides()[d];
  }
  return made;
}

HeadTensor rows_first(const TensorBase& t) {
  HeadTensor made{&t, {1}, {}};
  if (!t.defined()) return made;
  size_t first = t.dim() == 4 ? 1 : 0;
  constexpr size_t kFrom[] = {1, 0, 2};
  for (size_t d = 0; d < 3; ++d) {
    made.sizes[d + 1] = t.sizes()[first + kFrom[d]];
    made.strides[d + 1] = t.strides()[first + kFrom[d]];
  }
  if (first == 1) {
    made.sizes[0] = t.sizes()[0];
    made.strides[0] = t.strides()[0];
  }
  return made;
}

const TensorBase& tensor_of(const IValue& value) {
  static const TensorBase none;
  return value.is<TensorBase>() ? value.get<TensorBase>() : none;
}

std::optional<double> scale_of(const IValue& value) {
  if (value.is_none()) return std::nullopt;
  return value.get<double>();
}

AttentionLaunch::AttentionLaunch(const char* op,
                                 const HeadTensor& query,
                                 const HeadTensor& key,
                                 const HeadTensor& value,
                                 std::optional<double> scale)
    : op_(op),
      stored_(query.tensor->dtype()),
      device_(query.tensor->device()),
      batch_(query.sizes[0]),
      key_heads_(key.sizes[1]),
      width_(std::max(query.sizes[3], value.sizes[3])),
      places_(batch_ * query.sizes[1] * query.sizes[2]) {
  check(query, key, value);
  call.query = rows_of(query);
  call.key = rows_of(key);
  call.value = rows_of(value);
  call.heads = static_cast<int>(query.sizes[1]);
  call.shared =
      static_cast<int>(query.sizes[1] / std::max<int64_t>(key_heads_, 1));
  call.queries = static_cast<int>(query.sizes[2]);
  call.keys = static_cast<int>(key.sizes[2]);
  call.sums_head = query.sizes[2];
  call.sums_batch = query.sizes[1] * query.sizes[2];
  call.diagonal = INT_MAX;
  call.parts.lowest = INT_MIN;
  call.parts.splits = 1;
  call.parts.rows_of_place = call.parts.rows_of_query = 1;
  call.scale =
      static_cast<float>(native::attention_scale(scale, query.sizes[3]));
  call.kept_scale = 1;
}

void AttentionLaunch::check(const HeadTensor& query,
                            const HeadTensor& key,
                            const HeadTensor& value) const {
  TAEDA_CHECK_AS(NotImplemented,
                 stored_ == kFloat || stored_ == kHalf || stored_ == kBFloat16,
                 op_,
                 ": expected float32, float16 or bfloat16, got ",
                 stored_);
  ScalarType keys = key.tensor->dtype(), values = value.tensor->dtype();
  TAEDA_CHECK(keys == stored_ && values == stored_,
              op_,
              ": expected query, key and value of one dtype, got ",
              stored_,
              ", ",
              keys,
              " and ",
              values);
  TAEDA_CHECK_AS(NotImplemented,
                 width_ <= kMostWidth,
                 op_,
                 ": expected heads of at most ",
                 kMostWidth,
                 " columns, got ",
                 width_);
  // Places of a head are counted in 32 bits.
  int64_t longest = std::max(query.sizes[2], key.sizes[2]);
  TAEDA_CHECK(longest <= INT_MAX / 2 && batch_ * query.sizes[1] <= INT_MAX,
              op_,
              ": too many rows, ",
              longest);
}

void AttentionLaunch::set_mask(const TensorBase& mask) {
  if (!mask.defined()) return;
  ScalarType t = mask.dtype();
  TAEDA_CHECK(t == kBool || t == kFloat || t == stored_,
              op_,
              ": expected a mask of bool, float32 or ",
              stored_,
              ", got ",
              t);
  mask_type_ = t;
  call.mask = mask.const_raw_data();
  auto dims = static_cast<size_t>(mask.dim());
  for (size_t d = 0; d < dims; ++d) {
    bool repeats = mask.sizes()[d] == 1;
    call.mask_strides[4 - dims + d] = repeats ? 0 : mask.strides()[d];
  }
}

TemplateArgument AttentionLaunch::mask_type() const {
  if (mask_type_) return *mask_type_;
  return "NoMask";
}

void AttentionLaunch::drop(double p) {
  drops_ = p > 0;
  call.dropped = static_cast<float>(p);
  call.kept_scale = p < 1 ? static_cast<float>(1 / (1 - p)) : 0;
}

void AttentionLaunch::draw(double p, long long* seed, long long* offset) {
  if (p <= 0) return;
  drop(p);
  uint64_t weights = static_cast<uint64_t>(batch_ * call.heads) *
                     static_cast<uint64_t>(call.queries) *
                     static_cast<uint64_t>(call.keys);
  Draws draws = take_words(Generator(), device_.index, weights);
  call.seed = draws.seed;
  call.offset = draws.offset;
  call.state = reinterpret_cast<const long long*>(draws.state);
  call.written[0] = seed;
  call.written[1] = offset;
}

void AttentionLaunch::see(std::optional<int64_t> left,
                          std::optional<int64_t> right,
                          bool lower_right) {
  // What is as long as the longest sequence sees all of it.
  bool bounded = left && *left < call.keys;
  if (bounded) call.parts.lowest = static_cast<int>(-*left);
  if (right && *right < std::max(call.queries, call.keys)) {
    call.diagonal = static_cast<int>(*right);
  }
  call.parts.lower_right = lower_right ? 1 : 0;
  bool one_length = call.parts.query_starts == nullptr &&
                    call.parts.key_starts == nullptr &&
                    call.parts.keys_used == nullptr;
  if (!lower_right || !one_length) return;
  int shift = call.keys - call.queries;
  if (call.diagonal != INT_MAX) call.diagonal += shift;
  if (bounded) call.parts.lowest += shift;
  call.parts.lower_right = 0;
}

void AttentionLaunch::set_sequences(const TensorBase& query_starts,
                                    const TensorBase& key_starts,
                                    int64_t queries,
                                    int64_t keys) {
  TAEDA_CHECK(queries >= 0 && keys >= 0 && queries <= INT_MAX / 2 &&
                  keys <= INT_MAX / 2,
              op_,
              ": expected lengths of the longest sequences, got ",
              queries,
              " and ",
              keys);
  if (query_starts.defined()) {
    int64_t count = query_starts.numel();
    TAEDA_CHECK(count > 0, op_, ": expected where sequences begin and end");
    call.parts.query_starts = numbers_of(op_, "cum_seq_q", query_starts, count);
    batch_ = count - 1;
    call.sums_batch = 0;
    call.query.batch = 0;
    call.queries = static_cast<int>(queries);
  }
  if (key_starts.defined()) {
    call.parts.key_starts =
        numbers_of(op_, "cum_seq_k", key_starts, batch_ + 1);
    call.key.batch = call.value.batch = 0;
    call.keys = static_cast<int>(keys);
  }
}

void AttentionLaunch::set_used(const TensorBase& used) {
  if (!used.defined()) return;
  call.parts.keys_used = numbers_of(op_, "seqused_k", used, batch_);
}

void AttentionLaunch::set_pages(const TensorBase& pages, int64_t page) {
  TAEDA_CHECK(pages.dim() == 2,
              op_,
              ": expected a block_table of two dims, got ",
              pages.dim());
  int64_t row = pages.sizes()[1];
  call.parts.pages = numbers_of(op_, "block_table", pages, batch_ * row);
  call.parts.pages_row = row;
  call.parts.page = static_cast<int>(page);
  call.keys = static_cast<int>(row * page);
}

void AttentionLaunch::set_out(const HeadTensor& out) {
  call.out = rows_of(out);
  if (call.parts.query_starts != nullptr) call.out.batch = 0;
}

bool AttentionLaunch::has_parts() const {
  const AttentionParts& p = call.parts;
  return p.query_starts != nullptr || p.key_starts != nullptr ||
         p.keys_used != nullptr || p.pages != nullptr || p.lowest != INT_MIN ||
         p.splits > 1;
}

// One query that sees all keys is a row of its key's head. Of sequences behind
// one another places and heads must lie as one dim; their log sums then lie the
// other way round, [places, heads], for which the answer is true.
bool AttentionLaunch::fold_heads() {
  bool last = call.parts.lower_right != 0 && call.queries == 1;
  if (call.parts.lower_right == 0 ? call.diagonal >= call.keys - 1
                                  : last && call.diagonal >= 0) {
    call.diagonal = INT_MAX;
  }
  bool bounded = call.diagonal != INT_MAX || call.parts.lowest != INT_MIN;
  if (call.queries != 1 || call.shared == 1 || bounded) return false;
  bool behind = call.parts.query_starts != nullptr;
  if (behind) {
    for (const AttentionRows* t : {&call.query, &call.out}) {
      if (t->row != call.heads * t->head) return false;
    }
    call.parts.rows_of_place = call.heads;
    call.parts.rows_of_query = call.shared;
  }
  for (AttentionRows* t : {&call.query, &call.out}) {
    t->row = t->head;
    t->head *= call.shared;
  }
  call.mask_strides[2] = call.mask_strides[1];
  call.mask_strides[1] *= call.shared;
  call.heads /= call.shared;
  call.queries = call.shared;
  call.sums_head = call.shared;
  call.shared = 1;
  return behind;
}

int AttentionLaunch::shares_of(const AttentionShape& shape,
                               std::optional<int64_t> splits) {
  int64_t tiles = (call.keys + shape.tile - 1) / shape.tile;
  if (splits && *splits > 0) {
    return static_cast<int>(
        std::clamp<int64_t>(tiles, 1, std::min(*splits, kMostShares)));
  }
  int64_t blocks = (call.queries + shape.own - 1) / shape.own;
  int64_t warps = blocks * call.heads * batch_ * (shape.own / kWarpRows);
  int64_t wanted = kWantedWarps * properties_of(device_.index).multiprocessors;
  int64_t most = std::min(tiles / kLeastTiles, kMostShares);
  return static_cast<int>(
      std::clamp<int64_t>(wanted / warps, 1, std::max<int64_t>(most, 1)));
}

// Where the shares of the keys keep their results.
void AttentionLaunch::add_shares(TensorBase& values, TensorBase& sums) {
  AttentionParts& parts = call.parts;
  int64_t width = call.out.width;
  values = make_tensor(op_, {parts.splits, places_, width}, kFloat, device_);
  sums = make_tensor(op_, {parts.splits, places_}, kFloat, device_);
  // Rows that belong to no sequence have no shares.
  if (parts.query_starts != nullptr) {
    fill_with(sums, -std::numeric_limits<double>::infinity());
    fill_with(values, 0.0);
  }
  parts.out.data = values.mutable_raw_data();
  parts.out.batch = call.sums_batch * width;
  parts.out.head = call.sums_head * width;
  parts.out.row = width;
  parts.out.column = 1;
  parts.out.width = call.out.width;
  parts.out.packed = width % 2 == 0 ? 1 : 0;
  parts.out_split = places_ * width;
  parts.log_sums = static_cast<float*>(sums.mutable_raw_data());
  parts.sums_split = places_;
}

void AttentionLaunch::join_shares() {
  // A place of sequences whose heads are rows is a batch here.
  if (call.parts.rows_of_place > 1) {
    call.out.batch = call.out.row * call.parts.rows_of_place;
  }
  constexpr unsigned kJoinThreads = 128;
  constexpr int64_t kRows = kJoinThreads / 32;
  int64_t blocks = (places_ + kRows - 1) / kRows;
  TAEDA_CHECK(blocks <= INT_MAX, op_, ": too many rows, ", places_);
  Grid grid;
  grid.threads = kJoinThreads;
  grid.x = static_cast<unsigned>(blocks);
  DeviceGuard guard(device_.index);
  run_blocks({op_, "attention", "attention_join", "AttentionCall"},
             {stored_},
             grid,
             &call);
}

void AttentionLaunch::forward(const TensorBase& log_sums,
                              std::optional<int64_t> splits) {
  if (places_ == 0 || call.queries == 0 || batch_ == 0 || call.out.width == 0) {
    return;
  }
  int64_t heads = call.heads;
  bool turned = fold_heads();
  TensorBase own = log_sums;
  if (turned) own = make_tensor(op_, {places_ / heads, heads}, kFloat, device_);
  if (log_sums.numel() > 0) {
    call.log_sums = static_cast<float*>(own.mutable_raw_data());
  }
  AttentionShape shape = shape_of(width_, stored_, 1, call.queries);
  call.parts.splits = shares_of(shape, splits);
  TensorBase values, sums;
  if (call.parts.splits > 1) add_shares(values, sums);
  run("attention", "attention_forward", shape, call.heads, call.queries);
  if (call.parts.splits > 1) join_shares();
  if (turned) copy_into(log_sums, ops::t(own));
}

void AttentionLaunch::run(const char* header,
                          const char* function,
                          const AttentionShape& shape,
                          int64_t heads,
                          int64_t rows,
                          int which) {
  int64_t blocks = (rows + shape.own - 1) / shape.own;
  call.blocks = static_cast<int>(blocks);
  int64_t all = blocks * heads * batch_;
  if (all == 0) return;
  TAEDA_CHECK(all <= INT_MAX, op_, ": too many rows, ", rows);
  Grid grid;
  grid.x = static_cast<unsigned>(all);
  grid.y = static_cast<unsigned>(call.parts.splits);
  grid.threads = static_cast<unsigned>(shape.own / kWarpRows * 32);
  std::vector<TemplateArgument> arguments{stored_,
                                          shape.width,
                                          shape.own,
                                          shape.tile,
                                          mask_type(),
                                          drops_ ? 1 : 0,
                                          has_parts() ? 1 : 0};
  if (which != 0) arguments.emplace_back(which);
  DeviceGuard guard(device_.index);
  run_blocks({op_, header, function, "AttentionCall"}, arguments, grid, &call);
}

void AttentionLaunch::backward(const HeadTensor& grad_out,
                               const TensorBase& log_sums,
                               const std::array<const HeadTensor*, 3>& grads,
                               void* grad_mask) {
  bool behind = call.parts.query_starts != nullptr;
  call.grad_out = rows_of(grad_out);
  AttentionRows* const targets[] = {
      &call.grad_query, &call.grad_key, &call.grad_value};
  for (size_t i = 0; i < 3; ++i) {
    *targets[i] = rows_of(*grads[i]);
    if (behind) targets[i]->batch = 0;
  }
  if (behind) call.grad_out.batch = 0;
  TensorBase sums = contiguous(log_sums);
  TensorBase deltas = make_tensor(op_, sums.sizes(), kFloat, device_);
  call.log_sums = static_cast<float*>(const_cast<void*>(sums.const_raw_data()));
  call.deltas = static_cast<float*>(deltas.mutable_raw_data());
  call.grad_mask = grad_mask;
  constexpr const char* kHeader = "attention_backward";
  // It also leaves the deltas, which the other one reads.
  run(kHeader,
      "attention_back_queries",
      shape_of(width_, stored_, 2, call.queries),
      call.heads,
      call.queries);
  constexpr int kKeys = 1, kValues = 2;
  int which = (call.grad_key.data != nullptr ? kKeys : 0) +
              (call.grad_value.data != nullptr ? kValues : 0);
  AttentionShape shape = shape_of(width_, stored_, 2, call.keys);
  auto of_keys = [&](int part) {
    run(kHeader, "attention_back_keys", shape, key_heads_, call.keys, part);
  };
  if (which == kKeys + kValues && width_ > most_for_both(stored_)) {
    of_keys(kKeys);
    of_keys(kValues);
  } else if (which != 0) {
    of_keys(which);
  }
}

}  // namespace taeda::cuda
