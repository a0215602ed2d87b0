#include <taeda/aten/settings.h>

#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace taeda::settings {

namespace {
// A bit per way; four bits per place of the order, the first lowest.
std::atomic<uint32_t> enabled_ways{(1U << kAttentionWays) - 1};
std::atomic<uint32_t> packed_order{0x43021};

uint32_t bit(Attention way) { return 1U << static_cast<unsigned>(way); }
}  // namespace

std::atomic<bool> dnn_enabled{true};
std::atomic<bool> product_tf32{false};
std::atomic<uint8_t> linalg_library{0};
std::atomic<bool> deterministic{false};
std::atomic<bool> cudnn_enabled{true}, cudnn_benchmark{false};
std::atomic<int64_t> cudnn_benchmark_limit{10};
std::atomic<bool> cudnn_deterministic{false}, convolution_tf32{true};
std::atomic<bool> half_sums{true}, bfloat16_sums{true};
std::atomic<bool> fill_uninitialized{false};
std::atomic<bool> warn_always{false};

bool attention_enabled(Attention way) {
  return (enabled_ways.load(std::memory_order_relaxed) & bit(way)) != 0;
}

void enable_attention(Attention way, bool on) {
  if (on) {
    enabled_ways |= bit(way);
  } else {
    enabled_ways &= ~bit(way);
  }
}

AttentionOrder attention_order() {
  uint32_t packed = packed_order.load(std::memory_order_relaxed);
  AttentionOrder order;
  for (size_t i = 0; i < kAttentionWays; ++i) {
    order[i] = static_cast<Attention>((packed >> (4 * i)) & 0xf);
  }
  return order;
}

void set_attention_order(const AttentionOrder& order) {
  uint32_t packed = 0;
  for (size_t i = 0; i < kAttentionWays; ++i) {
    packed |= static_cast<uint32_t>(order[i]) << (4 * i);
  }
  packed_order = packed;
}

bool set_flush_denormal(bool on) {
#if defined(__SSE__)
  constexpr unsigned kFlush = 0x8040;  // results (FTZ) and operands (DAZ)
  unsigned control = _mm_getcsr();
  _mm_setcsr(on ? control | kFlush : control & ~kFlush);
  return true;
#else
  (void)on;
  return false;
#endif
}

}  // namespace taeda::settings
