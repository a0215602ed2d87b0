// Attention on the device: which kernel a call takes, and its parameters.
#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/core/memory.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/attention_scale.h>
#include <taeda/aten/native/cuda/blocks.h>
#include <taeda/aten/native/cuda/quick.h>
#include <taeda/c10/cuda/generator.h>
#include <taeda/aten/native/cuda/attention_calls.cuh>

#include <algorithm>
#include <climits>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

// Note [Attention on a device]
// One text serves flash and memory-efficient attention, which are the same
// algorithm: attention.cuh forward, attention_backward.cuh backward. A block
// has `own` rows of a head (16 for each of its warps) in shared memory, beside
// a tile of `tile` rows of each of two others at a time. All of it fits into
// the 48 KiB that a kernel has without asking, so several blocks share a
// multiprocessor, and one computes while another reads.
constexpr int64_t kSharedBytes = 48 * 1024;
constexpr int kWarpRows = 16;
constexpr int64_t kWidthStep = 32;
// Beyond this a warp's registers do not hold gradients of keys and of values;
// products of floats need more of them.
constexpr int64_t most_for_both(ScalarType t) { return t == kFloat ? 96 : 128; }
constexpr int64_t kMostWidth = 256;

struct Shape {
  int width;  // of tiles
  int own, tile;
};

// The most rows that fit, of `own` tensors that stay and two that pass by; more
// rows that stay before more that pass. Products by tensor cores take sixteen
// rows at once.
Shape shape_of(int64_t width, ScalarType t, int own_tensors) {
  Shape s{};
  s.width =
      static_cast<int>((width + kWidthStep - 1) / kWidthStep * kWidthStep);
  int64_t row = s.width * static_cast<int64_t>(element_size(t));
  int least = t == kFloat ? 8 : 16;
  for (s.own = 64; s.own >= kWarpRows; s.own /= 2) {
    // Gradients of 64 by 64 weights would leave no registers for the sums.
    int most = own_tensors == 1 ? 64 : 32;
    for (s.tile = most; s.tile >= least; s.tile /= 2) {
      if ((own_tensors * s.own + 2 * s.tile) * row <= kSharedBytes) return s;
    }
  }
  throw_error(ErrorKind::Internal,
              str_cat("attention: no tiles for a width of ", width));
}

AttentionRows rows_of(const TensorBase& t) {
  if (!t.defined()) return {};
  AttentionRows rows{};
  IntArrayRef strides = t.strides();
  rows.data = const_cast<void*>(t.const_raw_data());
  rows.batch = strides[0];
  rows.head = strides[1];
  rows.row = strides[2];
  rows.column = strides[3];
  rows.width = static_cast<int>(t.sizes()[3]);
  int64_t pack = 16 / static_cast<int64_t>(t.itemsize());
  bool packed = (rows.column == 1 || rows.width == 1) && rows.width % 2 == 0 &&
                reinterpret_cast<uintptr_t>(rows.data) % 16 == 0;
  for (size_t d = 0; d < 3; ++d) {
    packed = packed && (t.sizes()[d] <= 1 || strides[d] % pack == 0);
  }
  rows.packed = packed ? 1 : 0;
  return rows;
}

const TensorBase& tensor_of(const IValue& value) {
  static const TensorBase none;
  return value.is<TensorBase>() ? value.get<TensorBase>() : none;
}

// What both directions tell their kernels.
class Call {
 public:
  Call(const char* op,
       const TensorBase& query,
       const TensorBase& key,
       const TensorBase& value,
       const TensorBase& mask,
       bool causal,
       const IValue& scale)
      : op_(op), stored_(query.dtype()), device_(query.device()) {
    IntArrayRef q = query.sizes();
    batch_ = q[0];
    key_heads_ = key.sizes()[1];
    width_ = std::max(q[3], value.sizes()[3]);
    check(query, key, value);
    call.query = rows_of(query);
    call.key = rows_of(key);
    call.value = rows_of(value);
    call.heads = static_cast<int>(q[1]);
    call.shared = static_cast<int>(q[1] / std::max<int64_t>(key_heads_, 1));
    call.queries = static_cast<int>(q[2]);
    call.keys = static_cast<int>(key.sizes()[2]);
    call.diagonal = causal ? 0 : INT_MAX;
    std::optional<double> given;
    if (!scale.is_none()) given = scale.get<double>();
    call.scale = static_cast<float>(native::attention_scale(given, q[3]));
    call.kept_scale = 1;
    if (mask.defined()) set_mask(mask);
  }

  void drop(double p) {
    drops_ = p > 0;
    call.dropped = static_cast<float>(p);
    call.kept_scale = p < 1 ? static_cast<float>(1 / (1 - p)) : 0;
  }

  // `rows` of each of so many heads, which blocks of `shape` own.
  void run(const char* header,
           const char* function,
           const Shape& shape,
           int64_t heads,
           int64_t rows,
           int which = 0) {
    int64_t blocks = (rows + shape.own - 1) / shape.own;
    call.blocks = static_cast<int>(blocks);
    int64_t all = blocks * heads * batch_;
    if (all == 0) return;
    TAEDA_CHECK(all <= INT_MAX, op_, ": too many rows, ", rows);
    Grid grid;
    grid.x = static_cast<unsigned>(all);
    grid.threads = static_cast<unsigned>(shape.own / kWarpRows * 32);
    std::vector<TemplateArgument> arguments{stored_,
                                            shape.width,
                                            shape.own,
                                            shape.tile,
                                            mask_type(),
                                            drops_ ? 1 : 0};
    if (which != 0) arguments.emplace_back(which);
    DeviceGuard guard(device_.index);
    run_blocks(
        {op_, header, function, "AttentionCall"}, arguments, grid, &call);
  }

  int64_t width() const { return width_; }
  int64_t key_heads() const { return key_heads_; }
  ScalarType stored() const { return stored_; }
  uint64_t weights() const {
    return static_cast<uint64_t>(batch_ * call.heads) *
           static_cast<uint64_t>(call.queries) *
           static_cast<uint64_t>(call.keys);
  }

  AttentionCall call{};

 private:
  void check(const TensorBase& query,
             const TensorBase& key,
             const TensorBase& value) const {
    TAEDA_CHECK_AS(
        NotImplemented,
        stored_ == kFloat || stored_ == kHalf || stored_ == kBFloat16,
        op_,
        ": expected float32, float16 or bfloat16, got ",
        stored_);
    TAEDA_CHECK(key.dtype() == stored_ && value.dtype() == stored_,
                op_,
                ": expected query, key and value of one dtype, got ",
                stored_,
                ", ",
                key.dtype(),
                " and ",
                value.dtype());
    TAEDA_CHECK_AS(NotImplemented,
                   width_ <= kMostWidth,
                   op_,
                   ": expected heads of at most ",
                   kMostWidth,
                   " columns, got ",
                   width_);
    // Places of a head are counted in 32 bits.
    int64_t longest = std::max(query.sizes()[2], key.sizes()[2]);
    TAEDA_CHECK(longest <= INT_MAX / 2 && batch_ * query.sizes()[1] <= INT_MAX,
                op_,
                ": too many rows, ",
                longest);
  }

  void set_mask(const TensorBase& mask) {
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
  TemplateArgument mask_type() const {
    if (mask_type_) return *mask_type_;
    return "NoMask";
  }

  const char* op_;
  ScalarType stored_;
  Device device_;
  std::optional<ScalarType> mask_type_{};
  bool drops_ = false;
  int64_t batch_ = 0, key_heads_ = 0, width_ = 0;
};

long long* words_of(const TensorBase& t) {
  return static_cast<long long*>(const_cast<void*>(t.const_raw_data()));
}

}  // namespace

bool attention(const IValue* values, const std::vector<TensorBase>& results) {
  const auto& query = values[0].get<TensorBase>();
  const TensorBase &out = results[0], &log_sums = results[1];
  Call attend("_scaled_dot_product_efficient_attention",
              query,
              values[1].get<TensorBase>(),
              values[2].get<TensorBase>(),
              tensor_of(values[3]),
              values[6].get<bool>(),
              values[7]);
  double dropped = values[5].get<double>();
  AttentionCall& call = attend.call;
  call.out = rows_of(out);
  if (log_sums.numel() > 0) {
    call.log_sums = static_cast<float*>(log_sums.mutable_raw_data());
  }
  if (dropped > 0) {
    attend.drop(dropped);
    Draws draws =
        take_words(Generator(), query.device().index, attend.weights());
    call.seed = draws.seed;
    call.offset = draws.offset;
    call.state = reinterpret_cast<const long long*>(draws.state);
  }
  if (dropped > 0 && out.numel() > 0) {
    call.written[0] = words_of(results[2]);
    call.written[1] = words_of(results[3]);
  } else {
    for (size_t i : {2, 3}) fill_with(results[i], int64_t{0});
  }
  if (out.numel() == 0) return true;
  Shape shape = shape_of(attend.width(), attend.stored(), 1);
  attend.run("attention", "attention_forward", shape, call.heads, call.queries);
  return true;
}

bool attention_backward(const IValue* values,
                        const std::vector<TensorBase>& results) {
  const auto& query = values[1].get<TensorBase>();
  Call attend("_scaled_dot_product_efficient_attention_backward",
              query,
              values[2].get<TensorBase>(),
              values[3].get<TensorBase>(),
              tensor_of(values[4]),
              values[11].get<bool>(),
              values[12]);
  double dropped = values[9].get<double>();
  AttentionCall& call = attend.call;
  if (dropped > 0) {
    attend.drop(dropped);
    call.drawn[0] = words_of(values[7].get<TensorBase>());
    call.drawn[1] = words_of(values[8].get<TensorBase>());
  }
  call.grad_out = rows_of(values[0].get<TensorBase>());
  call.out = rows_of(values[5].get<TensorBase>());
  const auto& log_sums = values[6].get<TensorBase>();
  TensorBase sums = contiguous(log_sums);
  TensorBase deltas =
      make_tensor("attention", sums.sizes(), kFloat, query.device());
  call.log_sums = static_cast<float*>(const_cast<void*>(sums.const_raw_data()));
  call.deltas = static_cast<float*>(deltas.mutable_raw_data());
  call.grad_query = rows_of(results[0]);
  call.grad_key = rows_of(results[1]);
  call.grad_value = rows_of(results[2]);
  if (results[3].defined()) {
    call.grad_mask = results[3].mutable_raw_data();
  }
  Shape shape = shape_of(attend.width(), attend.stored(), 2);
  constexpr const char* kHeader = "attention_backward";
  // It also leaves the deltas, which the other one reads.
  attend.run(
      kHeader, "attention_back_queries", shape, call.heads, call.queries);
  constexpr int kKeys = 1, kValues = 2;
  int which =
      (results[1].defined() ? kKeys : 0) + (results[2].defined() ? kValues : 0);
  auto of_keys = [&](int part) {
    attend.run(kHeader,
               "attention_back_keys",
               shape,
               attend.key_heads(),
               call.keys,
               part);
  };
  if (which == kKeys + kValues &&
      attend.width() > most_for_both(attend.stored())) {
    of_keys(kKeys);
    of_keys(kValues);
  } else if (which != 0) {
    of_keys(which);
  }
  return true;
}

}  // namespace taeda::cuda
