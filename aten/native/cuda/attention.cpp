// Attention's operators on the device.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/attention_launch.h>
#include <taeda/aten/native/cuda/quick.h>

#include <climits>

namespace taeda::cuda {

namespace {

long long* words_of(const TensorBase& t) {
  return static_cast<long long*>(const_cast<void*>(t.const_raw_data()));
}

std::optional<int64_t> number_of(const IValue& value) {
  if (value.is_none()) return std::nullopt;
  return value.get<int64_t>();
}
// Of a window's side: below 0 there is none.
std::optional<int64_t> side_of(const IValue& value) {
  std::optional<int64_t> side = number_of(value);
  if (side && *side < 0) return std::nullopt;
  return side;
}

std::optional<int64_t> diagonal_of(bool causal) {
  return causal ? std::optional<int64_t>(0) : std::nullopt;
}

void see_window(AttentionLaunch& attend,
                bool causal,
                const IValue* left_and_right) {
  std::optional<int64_t> right = side_of(left_and_right[1]);
  if (causal) right = 0;
  attend.see(side_of(left_and_right[0]), right, true);
}

}  // namespace

bool attention(const IValue* values, const std::vector<TensorBase>& results) {
  const TensorBase& out = results[0];
  AttentionLaunch attend("_scaled_dot_product_efficient_attention",
                         heads_first(values[0].get<TensorBase>()),
                         heads_first(values[1].get<TensorBase>()),
                         heads_first(values[2].get<TensorBase>()),
                         scale_of(values[7]));
  attend.set_mask(tensor_of(values[3]));
  attend.see({}, diagonal_of(values[6].get<bool>()), false);
  attend.set_out(heads_first(out));
  double dropped = values[5].get<double>();
  attend.draw(dropped, words_of(results[2]), words_of(results[3]));
  if (dropped <= 0 || out.numel() == 0) {
    for (size_t i : {2, 3}) fill_with(results[i], int64_t{0});
  }
  attend.forward(results[1], {});
  return true;
}

bool attention_backward(const IValue* values,
                        const std::vector<TensorBase>& results) {
  AttentionLaunch attend("_scaled_dot_product_efficient_attention_backward",
                         heads_first(values[1].get<TensorBase>()),
                         heads_first(values[2].get<TensorBase>()),
                         heads_first(values[3].get<TensorBase>()),
                         scale_of(values[12]));
  attend.set_mask(tensor_of(values[4]));
  attend.see({}, diagonal_of(values[11].get<bool>()), false);
  attend.set_out(heads_first(values[5].get<TensorBase>()));
  double dropped = values[9].get<double>();
  if (dropped > 0) {
    attend.drop(dropped);
    attend.call.drawn[0] = words_of(values[7].get<TensorBase>());
    attend.call.drawn[1] = words_of(values[8].get<TensorBase>());
  }
  HeadTensor grads[] = {heads_first(results[0]),
                        heads_first(results[1]),
                        heads_first(results[2])};
  void* of_mask =
      results[3].defined() ? results[3].mutable_raw_data() : nullptr;
  attend.backward(heads_first(values[0].get<TensorBase>()),
                  values[6].get<TensorBase>(),
                  {&grads[0], &grads[1], &grads[2]},
                  of_mask);
  return true;
}

bool attention_of_sequences(const IValue* values,
                            const std::vector<TensorBase>& results) {
  const char* op = "_flash_attention_forward";
  TAEDA_CHECK_AS(NotImplemented,
                 !tensor_of(values[14]).defined() && !values[9].get<bool>(),
                 op,
                 ": alibi_slopes and return_debug_mask are not implemented");
  const TensorBase &out = results[0], &pages = tensor_of(values[15]);
  const auto& key = values[1].get<TensorBase>();
  AttentionLaunch attend(op,
                         rows_first(values[0].get<TensorBase>()),
                         rows_first(key),
                         rows_first(values[2].get<TensorBase>()),
                         scale_of(values[10]));
  TensorBase key_starts = pages.defined() ? TensorBase() : tensor_of(values[4]);
  attend.set_sequences(tensor_of(values[3]),
                       key_starts,
                       values[5].get<int64_t>(),
                       values[6].get<int64_t>());
  attend.set_used(tensor_of(values[13]));
  if (pages.defined()) attend.set_pages(pages, key.sizes()[1]);
  see_window(attend, values[8].get<bool>(), &values[11]);
  attend.set_out(rows_first(out));
  double dropped = values[7].get<double>();
  long long* words = words_of(results[2]);
  attend.draw(dropped, words, words + 1);
  if (dropped <= 0 || out.numel() == 0) fill_with(results[2], int64_t{0});
  attend.forward(results[1], number_of(values[16]));
  return true;
}

bool attention_of_sequences_backward(const IValue* values,
                                     const std::vector<TensorBase>& results) {
  const auto& query = values[1].get<TensorBase>();
  AttentionLaunch attend("_flash_attention_backward",
                         rows_first(query),
                         rows_first(values[2].get<TensorBase>()),
                         rows_first(values[3].get<TensorBase>()),
                         scale_of(values[14]));
  if (query.dim() == 3) {
    attend.set_sequences(values[6].get<TensorBase>(),
                         values[7].get<TensorBase>(),
                         values[8].get<int64_t>(),
                         values[9].get<int64_t>());
  }
  see_window(attend, values[11].get<bool>(), &values[15]);
  attend.set_out(rows_first(values[4].get<TensorBase>()));
  double dropped = values[10].get<double>();
  if (dropped > 0) {
    attend.drop(dropped);
    long long* words = words_of(values[12].get<TensorBase>());
    attend.call.drawn[0] = words;
    attend.call.drawn[1] = words + 1;
  }
  HeadTensor grads[] = {
      rows_first(results[0]), rows_first(results[1]), rows_first(results[2])};
  attend.backward(rows_first(values[0].get<TensorBase>()),
                  values[5].get<TensorBase>(),
                  {&grads[0], &grads[1], &grads[2]},
                  nullptr);
  return true;
}

}  // namespace taeda::cuda
