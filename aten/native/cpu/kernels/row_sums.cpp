#include <taeda/aten/native/cpu/kernels/row_sums.h>

#include <taeda/aten/native/cpu/kernels/lanes.h>

TAEDA_ISA_BEGIN

namespace {

template <class T>
struct RowSums {
  using A = lane_sum_t<T>;
  using L = Lanes<A>;
  using V = typename L::V;

  // What all columns of a sum share.
  struct Job {
    const int64_t* index;
    const T* factors;
    int64_t width, count, skipped, parts;
  };

  // Columns whose sums stay in registers: kVectors vectors, or `lanes` of one.
  template <int kVectors, bool kWhole>
  [[gnu::always_inline]] static inline void sum_columns(const Job& job,
                                                        const T* table,
                                                        int64_t lanes,
                                                        T* out) {
    V sums[kVectors] = {};
    for (int64_t i = 0; i < job.count; ++i) {
      if (job.index[i] == job.skipped) continue;
      const T* row = table + job.index[i] * job.width;
      A factor = job.factors == nullptr ? A(1) : static_cast<A>(job.factors[i]);
      for (int v = 0; v < kVectors; ++v) {
        const T* from = row + v * L::kCount;
        sums[v] +=
            factor * (kWhole ? L::load(from) : L::load_some(from, lanes));
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      T* to = out + v * L::kCount;
      if (job.parts != 1) sums[v] /= static_cast<A>(job.parts);
      kWhole ? L::store(to, sums[v]) : L::store_some(to, sums[v], lanes);
    }
  }

  static void sum_rows(const T* table,
                       int64_t width,
                       const int64_t* index,
                       const T* factors,
                       int64_t count,
                       int64_t skipped,
                       int64_t parts,
                       T* out) {
    constexpr int kMany = 8;
    constexpr int64_t n = L::kCount;
    const Job job{index, factors, width, count, skipped, parts};
    int64_t c = 0;
    for (; c + kMany * n <= width; c += kMany * n) {
      sum_columns<kMany, true>(job, table + c, n, out + c);
    }
    for (; c + n <= width; c += n) {
      sum_columns<1, true>(job, table + c, n, out + c);
    }
    if (c < width) {
      sum_columns<1, false>(job, table + c, width - c, out + c);
    }
  }

  static constexpr RowSumKernels<T> kTable = {sum_rows};
};

}  // namespace

extern const RowSumTable kRowSumTable = {RowSums<float>::kTable,
                                         RowSums<double>::kTable,
                                         RowSums<BFloat16>::kTable,
                                         RowSums<Half>::kTable};

TAEDA_ISA_END
