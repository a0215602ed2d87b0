#include <taeda/aten/native/blas/gemm_choice.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include <taeda/aten/parallel/parallel.h>
#include <taeda/aten/settings.h>

namespace taeda::blas {
namespace {

constexpr int kNoForce = -1;
constexpr int kUnread = -2;
std::atomic<int> forced_{kUnread};

int route_of_word(const char* word) {
  if (word != nullptr && std::strcmp(word, "small") == 0) {
    return static_cast<int>(GemmRoute::kSmall);
  }
  if (word != nullptr && std::strcmp(word, "dnn") == 0) {
    return static_cast<int>(GemmRoute::kDnn);
  }
  if (word != nullptr && std::strcmp(word, "openblas") == 0) {
    return static_cast<int>(GemmRoute::kOpenBlas);
  }
  return kNoForce;
}

int forced_route() {
  int route = forced_.load(std::memory_order_relaxed);
  if (route == kUnread) {
    route = route_of_word(std::getenv("TAEDA_GEMM_ROUTE"));
    forced_ = route;
  }
  return route;
}

// Up to here the small kernel is as quick as the libraries or quicker at every
// level, and up to 15 times quicker for the smallest.
constexpr int64_t kSmallLimit = 64 * 64 * 64;

// The small kernel neither packs nor blocks: it holds its rate while op(B) fits
// the first-level cache. A transposed B is first turned around on the stack.
bool small_enough(const GemmShape& s, int64_t limit) {
  return s.m * s.n * s.k <= limit && s.n * s.k <= kSmallPackElements;
}

// Few rows do not repay packing op(B) either, where the second cache holds it:
// what a step of a recurrent layer and a small batch of samples multiply by.
bool few_rows(const GemmShape& s) {
  constexpr int64_t kSecondCache = 1 << 16;
  return s.m <= 16 && s.m % 4 == 0 && !s.trans_b && s.n * s.k <= kSecondCache;
}

bool dnn_allowed() {
  return settings::dnn_enabled.load(std::memory_order_relaxed);
}

}  // namespace

GemmRoute choose_gemm_f32(const GemmShape& s) {
  const int forced = forced_route();
  if (forced != kNoForce) {
    const bool pack_fits = !s.trans_b || s.n * s.k <= kSmallPackElements;
    return forced == 0 && !pack_fits ? GemmRoute::kDnn
                                     : static_cast<GemmRoute>(forced);
  }
  if (small_enough(s, kSmallLimit) || few_rows(s)) {
    return GemmRoute::kSmall;
  }
  const bool wide = cpu_capability() >= CpuCapability::kAvx512;
  return (wide || s.n < 512) && dnn_allowed() ? GemmRoute::kDnn
                                              : GemmRoute::kOpenBlas;
}

GemmRoute choose_gemm_f64(const GemmShape& s) {
  const int forced = forced_route();
  const bool pack_fits = !s.trans_b || s.n * s.k <= kSmallPackElements;
  if (forced != kNoForce) {
    return forced == 0 && pack_fits ? GemmRoute::kSmall : GemmRoute::kOpenBlas;
  }
  return small_enough(s, kSmallLimit) ? GemmRoute::kSmall
                                      : GemmRoute::kOpenBlas;
}

bool choose_dnn_bf16(int64_t m, int64_t n, int64_t k) {
  // TAEDA_GEMM_ROUTE's "small" stands for the conversion.
  const int forced = forced_route();
  if (forced == static_cast<int>(GemmRoute::kSmall)) {
    return false;
  }
  // Setting up its call costs about a microsecond.
  return cpu_capability() >= CpuCapability::kAvx512 && dnn_allowed() &&
         (forced != kNoForce || m * n * k > kSmallLimit);
}

bool batch_over_threads(int64_t batch, const GemmShape& s) {
  // One large product keeps all threads busy; splitting it costs little from
  // about 256^3 on, while a batch shorter than the team leaves threads idle.
  const bool each_is_large = static_cast<double>(s.m) *
                                 static_cast<double>(s.n) *
                                 static_cast<double>(s.k) >=
                             256.0 * 256.0 * 256.0;
  const int threads = get_num_threads();
  return batch >= 2 * threads || (!each_is_large && batch >= threads);
}

void force_gemm_route(const char* route) { forced_ = route_of_word(route); }

}  // namespace taeda::blas
