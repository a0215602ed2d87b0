// Calls of attention's kernels: see Note [Attention on a device].
#pragma once

#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/native/cuda/blocks.h>
#include <taeda/aten/native/cuda/attention_calls.cuh>

#include <array>
#include <optional>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

// A tensor as [batch, heads, rows, width], wherever its dims are.
struct HeadTensor {
  const TensorBase* tensor;
  std::array<int64_t, 4> sizes, strides;
};
// Of that; of [batch, rows, heads, width]; of [rows, heads, width], where the
// batch is 1 and at a stride of 0.
HeadTensor heads_first(const TensorBase& t);
HeadTensor rows_first(const TensorBase& t);

// Undefined where there is none.
const TensorBase& tensor_of(const IValue& value);
std::optional<double> scale_of(const IValue& value);

struct AttentionShape {
  int width;  // of tiles
  int own, tile;
};

// What both directions tell their kernels.
class AttentionLaunch {
 public:
  AttentionLaunch(const char* op,
                  const HeadTensor& query,
                  const HeadTensor& key,
                  const HeadTensor& value,
                  std::optional<double> scale);

  void set_mask(const TensorBase& mask);
  void drop(double p);
  // Draws where weights are dropped; the numbers of the draw go to `seed` and
  // `offset` by the kernel, or become zeros here where nothing runs.
  void draw(double p, long long* seed, long long* offset);
  // So many before and behind its own place; none where it is empty.
  void see(std::optional<int64_t> left,
           std::optional<int64_t> right,
           bool lower_right);
  // Sequences behind one another, and the lengths of the longest.
  void set_sequences(const TensorBase& query_starts,
                     const TensorBase& key_starts,
                     int64_t queries,
                     int64_t keys);
  void set_used(const TensorBase& used);
  void set_pages(const TensorBase& pages, int64_t page);

  void set_out(const HeadTensor& out);
  // `splits`: into how many shares keys are split, if not chosen here.
  void forward(const TensorBase& log_sums, std::optional<int64_t> splits);
  // Of query, key, value and mask; undefined ones are not wanted.
  void backward(const HeadTensor& grad_out,
                const TensorBase& log_sums,
                const std::array<const HeadTensor*, 3>& grads,
                void* grad_mask);

  AttentionCall call{};

 private:
  void check(const HeadTensor& query,
             const HeadTensor& key,
             const HeadTensor& value) const;
  bool fold_heads();
  void add_shares(TensorBase& values, TensorBase& sums);
  void join_shares();
  int shares_of(const AttentionShape& shape, std::optional<int64_t> splits);
  void run(const char* header,
           const char* function,
           const AttentionShape& shape,
           int64_t heads,
           int64_t rows,
           int which = 0);
  TemplateArgument mask_type() const;
  bool has_parts() const;

  const char* op_;
  ScalarType stored_;
  Device device_;
  std::optional<ScalarType> mask_type_{};
  bool drops_ = false;
  int64_t batch_, key_heads_, width_;
  // Queries of all heads, of all sequences.
  int64_t places_;
};

}  // namespace taeda::cuda
