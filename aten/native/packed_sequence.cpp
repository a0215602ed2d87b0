// Sequences of different lengths as one matrix of rows, step after step, and
// back.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/rnn_layer.h>
#include <taeda/gen/native/_pack_padded_sequence.h>
#include <taeda/gen/native/_pad_packed_sequence.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::native {

DimVector counts_of(const Tensor& counts) {
  TAEDA_CHECK(counts.dim() == 1 && counts.dtype() == kLong,
              "'lengths' argument should be a 1D CPU int64 tensor, as batch "
              "sizes should, but got ",
              counts);
  Tensor t = contiguous_as(counts, kLong);
  const int64_t* p = t.const_data<int64_t>();
  DimVector numbers(p, p + t.numel());
  for (int64_t n : numbers) {
    TAEDA_CHECK(n >= 0, "lengths and batch sizes are not negative, got ", n);
  }
  return numbers;
}

std::tuple<Tensor, Tensor> _pack_padded_sequence(const Tensor& input,
                                                 const Tensor& lengths,
                                                 bool batch_first) {
  TAEDA_CHECK(input.numel() > 0,
              "_pack_padded_sequence: Cannot pack empty tensors, got one of "
              "shape ",
              input.sizes());
  Tensor x = batch_first ? ops::transpose(input, 0, 1) : input;
  DimVector all = counts_of(lengths);
  int64_t batch = x.sizes()[1];
  TAEDA_CHECK(static_cast<int64_t>(all.size()) == batch,
              "Expected `len(lengths)` to be equal to batch_size, but got ",
              static_cast<int64_t>(all.size()),
              " (batch_size=",
              batch,
              ")");
  TAEDA_CHECK(!all.empty() && all.back() > 0,
              "Length of all samples has to be greater than 0, but found an "
              "element in 'lengths' that is <= 0");
  for (size_t i = 1; i < all.size(); ++i) {
    TAEDA_CHECK(all[i] <= all[i - 1],
                "`lengths` array must be sorted in decreasing order when "
                "`enforce_sorted` is True. You can pass "
                "`enforce_sorted=False` to pack_padded_sequence and/or "
                "pack_sequence to sidestep this requirement if you do not "
                "need ONNX exportability.");
  }
  TAEDA_CHECK(all[0] <= x.sizes()[0],
              "Expected the longest length (",
              all[0],
              ") to be at most the padded size ",
              x.sizes()[0]);
  Tensor counts = make_tensor("_pack_padded_sequence", {all[0]}, kLong);
  std::vector<Tensor> rows;
  int64_t active = batch;
  for (int64_t t = 0; t < all[0]; ++t) {
    while (all[static_cast<size_t>(active - 1)] <= t) --active;
    counts.mutable_data<int64_t>()[t] = active;
    rows.push_back(ops::narrow(ops::select(x, 0, t), 0, int64_t{0}, active));
  }
  return {ops::cat(rows, 0), counts};
}

std::tuple<Tensor, Tensor> _pad_packed_sequence(const Tensor& data,
                                                const Tensor& batch_sizes,
                                                bool batch_first,
                                                const Scalar& padding_value,
                                                int64_t total_length) {
  DimVector counts = counts_of(batch_sizes);
  for (size_t t = 0; t < counts.size(); ++t) {
    TAEDA_CHECK(counts[t] > 0 && (t == 0 || counts[t] <= counts[t - 1]),
                "_pad_packed_sequence: expected positive batch_sizes that do "
                "not grow, got ",
                IntArrayRef(counts));
  }
  int64_t steps = static_cast<int64_t>(counts.size());
  TAEDA_CHECK(total_length <= 0 || total_length >= steps,
              "Expected total_length to be at least the length of the longest "
              "sequence in input, but got total_length=",
              total_length,
              " and max sequence length being ",
              steps);
  int64_t batch = counts.empty() ? 0 : counts[0];
  int64_t length = std::max(total_length, steps);
  Tensor lengths = make_tensor("_pad_packed_sequence", {batch}, kLong);
  std::vector<Tensor> rows;
  int64_t at = 0;
  for (int64_t t = 0; t < length; ++t) {
    int64_t n = t < steps ? counts[static_cast<size_t>(t)] : 0;
    for (int64_t b = 0; b < n; ++b) lengths.mutable_data<int64_t>()[b] = t + 1;
    std::vector<Tensor> parts;
    if (n > 0) parts.push_back(ops::narrow(data, 0, at, n));
    if (n < batch) {
      DimVector sizes(data.sizes());
      sizes[0] = batch - n;
      Tensor pad = make_tensor("_pad_packed_sequence", sizes, data.dtype());
      fill_with(pad, padding_value);
      parts.push_back(pad);
    }
    rows.push_back(parts.size() == 1 ? parts[0] : ops::cat(parts, 0));
    at += n;
  }
  Tensor out = ops::stack(rows, batch_first ? 1 : 0);
  return {out, lengths};
}

}  // namespace taeda::native
