// One pass over the parameters of an optimizer, split into chunks.
#pragma once

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/derived.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/optimizers.h>
#include <taeda/aten/parallel/parallel.h>

#include <algorithm>
#include <vector>

namespace taeda::native {

inline constexpr int64_t kOptimizerChunk = 32768;

// One parameter with its state: pointers into dense memory of equal order.
struct OptimizerWork {
  void* pointers[kOptimizerPointers] = {};
  int64_t numel = 0;
  int64_t first_chunk = 0;
  OptimizerNumbers numbers;
};

// The column of the kernel table.
inline int optimizer_type_index(std::string_view op, ScalarType t) {
  switch (t) {
    case kFloat:
      return 0;
    case kDouble:
      return 1;
    case kBFloat16:
      return 2;
    case kHalf:
      return 3;
    default:
      not_implemented_for(op, t);
  }
}

inline double number_in(const Tensor& t) {
  TAEDA_CHECK(t.numel() == 1 && t.is_cpu(),
              "fused optimizer: expected a CPU tensor of one element, got ",
              t.sizes());
  return Scalar::load(t.dtype(), t.const_raw_data()).to_double();
}

// Collects the parameters of one step, then runs them all in one parallel
// region: a region for each of hundreds of small tensors would cost more than
// their arithmetic.
class OptimizerLaunch {
 public:
  OptimizerLaunch(std::string_view op,
                  OptimizerRule rule,
                  OptimizerNumbers numbers)
      : op_(op), rule_(rule), numbers_(numbers) {}

  // False when the step is to be skipped: a gradient overflowed.
  bool scale(const OptionalTensor& grad_scale,
             const OptionalTensor& found_inf) {
    if (found_inf && number_in(*found_inf) == 1.0) return false;
    if (grad_scale) {
      numbers_.scaled = true;
      numbers_.grad_scale = number_in(*grad_scale);
    }
    return true;
  }

  OptimizerNumbers& numbers() { return numbers_; }

  // The parameter, its gradient, and the state; null for what the rule does
  // without. The numbers are kept as they are now.
  void add(std::initializer_list<const Tensor*> tensors) {
    OptimizerWork work;
    const Tensor& param = **tensors.begin();
    work.numel = param.numel();
    work.numbers = numbers_;
    work.first_chunk = chunks_;
    int type = optimizer_type_index(op_, param.dtype());
    TAEDA_CHECK(type_ < 0 || type == type_,
                op_,
                ": params must all have one dtype, found ",
                param.dtype());
    type_ = type;
    int at = 0;
    for (const Tensor* t : tensors) {
      if (t != nullptr) work.pointers[at] = pointer(*t, param, at != 1);
      ++at;
    }
    chunks_ += (work.numel + kOptimizerChunk - 1) / kOptimizerChunk;
    works_.push_back(work);
  }

  void run() {
    if (chunks_ == 0) return;
    OptimizerFn fn =
        TAEDA_ISA_TABLE(kOptimizerTable)[static_cast<int>(rule_)][type_];
    static constexpr int64_t kSizes[] = {4, 8, 2, 2};
    int64_t item = kSizes[type_];
    int64_t total = 0;
    for (const OptimizerWork& w : works_) total += w.numel;
    int64_t grain = total < kOptimizerChunk ? chunks_ : 1;
    parallel_for(0, chunks_, grain, [&](int64_t from, int64_t to) {
      // Chunks are numbered through all parameters: the one that chunk `from`
      // lies in, and from there on one after the other.
      auto last = std::upper_bound(
          works_.begin(),
          works_.end(),
          from,
          [](int64_t c, const OptimizerWork& w) { return c < w.first_chunk; });
      const OptimizerWork* w = &*(last - 1);
      for (int64_t c = from; c < to; ++c) {
        while (w + 1 < works_.data() + works_.size() &&
               (w + 1)->first_chunk <= c) {
          ++w;
        }
        int64_t start = (c - w->first_chunk) * kOptimizerChunk;
        void* at[kOptimizerPointers];
        for (int i = 0; i < kOptimizerPointers; ++i) {
          char* p = static_cast<char*>(w->pointers[i]);
          at[i] = p ? p + start * item : nullptr;
        }
        fn(at, std::min(kOptimizerChunk, w->numel - start), w->numbers);
      }
    });
    for (const auto& [target, copy] : copies_) copy_into(target, copy);
  }

 private:
  // The memory of a tensor in the parameter's order; of a copy otherwise.
  void* pointer(const Tensor& t, const Tensor& param, bool written) {
    TAEDA_CHECK(t.sizes() == param.sizes(),
                op_,
                ": expected a tensor of the parameter's shape ",
                param.sizes(),
                ", got ",
                t.sizes());
    TAEDA_CHECK(t.is_cpu(), op_, ": expected CPU tensors, got ", t);
    written = written || numbers_.scaled;
    if (written) {
      derived::check_writable(t);
      t.impl()->bump_version();
    }
    bool same = t.dtype() == param.dtype() && !t.is_neg() && !t.is_conj() &&
                param.is_non_overlapping_and_dense() &&
                (t.strides() == param.strides() ||
                 (t.is_contiguous() && param.is_contiguous()));
    if (same) {
      return written ? t.mutable_raw_data()
                     : const_cast<void*>(t.const_raw_data());
    }
    Tensor copy = make_ordered(param);
    copy_into(copy, t);
    if (written) {
      copies_.push_back({t, copy});
    } else {
      kept_.push_back(copy);
    }
    return copy.mutable_raw_data();
  }

  Tensor make_ordered(const Tensor& param) {
    if (!param.is_non_overlapping_and_dense()) {
      return make_tensor(op_, param.sizes(), param.dtype());
    }
    return make_tensor_strided(
        op_, param.sizes(), param.strides(), param.dtype());
  }

  std::string_view op_;
  OptimizerRule rule_;
  OptimizerNumbers numbers_;
  int type_ = -1;
  int64_t chunks_ = 0;
  std::vector<OptimizerWork> works_;
  std::vector<std::pair<Tensor, Tensor>> copies_;
  std::vector<Tensor> kept_;
};

}  // namespace taeda::native
