// Reductions on the CPU: rows or columns folded into accumulators.
#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/iteration_space.h>
#include <taeda/aten/iter/launch.h>
#include <taeda/aten/parallel/parallel.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace taeda::native {

namespace {

// Note [Cascade summation]
// A sum that is folded element after element loses accuracy with the length.
// Here a kernel folds at most kBlock elements (in many lanes) into an
// accumulator of level 0; kFan accumulators of one level are combined into one
// of the next, so the error grows with the logarithm of the length.
constexpr int64_t kBlock = 4096;
constexpr int64_t kWidth = 512;  // columns reduced side by side
constexpr int64_t kFan = 32;
constexpr int kLevels = 8;
constexpr int64_t kGrain = 32768;
constexpr int64_t kMaxItem = 16;

struct Job {
  const ReduceKernel& kernel;
  const char* base;
  ScalarType dtype;    // in memory
  ScalarType compute;  // what kernels see
  ConvertFn convert;
  const void* scalars;
  int64_t itemsize;
  int64_t size;  // of a compute element
  bool same;
};

// Accumulators of `width` columns at every level.
class Cascade {
 public:
  // For widths up to `most`. Levels are written before they are read, so that
  // their memory needs no value.
  Cascade(const Job& job, int64_t most) : job_(job) {
    if (most == 1) return;
    auto bytes = static_cast<size_t>(most * job.size) * kLevels;
    many_ = std::make_unique_for_overwrite<Slot[]>(bytes / sizeof(Slot) + 1);
    levels_ = many_[0].bytes;
  }
  void start(int64_t width) {
    width_ = width;
    blocks_ = 0;
    used_ = 1;
    job_.kernel.init(level(0), width);
  }
  void* level(int l) { return levels_ + l * width_ * job_.size; }
  // One block has been folded into level 0.
  void block_done() {
    ++blocks_;
    int64_t n = blocks_;
    for (int l = 0; l + 1 < kLevels && n % kFan == 0; ++l, n /= kFan) {
      if (used_ == l + 1) job_.kernel.init(level(used_++), width_);
      job_.kernel.combine(level(l + 1), level(l), width_);
      job_.kernel.init(level(l), width_);
    }
  }
  // Everything into level 0.
  void* collect() {
    for (int l = 1; l < used_; ++l) {
      job_.kernel.combine(level(0), level(l), width_);
    }
    return level(0);
  }

 private:
  const Job& job_;
  int64_t width_ = 0;
  int64_t blocks_ = 0;
  int used_ = 1;  // levels that hold an accumulator
  // Kernels load accumulators as aligned ones, complex128 too.
  struct alignas(kMaxItem) Slot {
    char bytes[kMaxItem];
  };
  Slot one_[kLevels];
  std::unique_ptr<Slot[]> many_;
  char* levels_ = one_[0].bytes;
};

// Folds positions [begin, end) of the reduced space, at `base`, into a cascade
// of one column.
void fold_inner(const Job& job,
                const IterationSpace& space,
                const char* base,
                int64_t begin,
                int64_t end,
                Cascade& cascade) {
  alignas(64) char buffer[kWidth * kMaxItem];
  const int64_t chunk = std::min(kBlock, kWidth * kMaxItem / job.size);
  OperandWalker walker(space, 0, begin);
  int64_t pending = 0;
  auto fold = [&](const void* in, int64_t n) {
    job.kernel.inner(in, n, cascade.level(0), job.scalars);
    pending += n;
    if (pending >= kBlock) {
      cascade.block_done();
      pending = 0;
    }
  };
  bool direct = job.same && space.stride(0, 0) == job.itemsize;
  if (direct && space.size(0) >= 64) {
    walker.advance(end - begin, [&](int64_t offset, int64_t, int64_t n) {
      for (int64_t i = 0; i < n; i += kBlock) {
        fold(base + offset + i * job.itemsize, std::min(kBlock, n - i));
      }
    });
    return;
  }
  for (int64_t i = begin; i < end; i += chunk) {
    int64_t n = std::min(chunk, end - i);
    char* to = buffer;
    walker.advance(n, [&](int64_t offset, int64_t stride, int64_t m) {
      job.convert(base + offset, stride, to, job.size, m);
      to += m * job.size;
    });
    fold(buffer, n);
  }
}

// The result of a column, converted to the output's dtype.
struct Sink {
  char* base;
  ScalarType dtype;
  ScalarType inner;
  ConvertFn convert;
  int64_t itemsize;

  void store(const Job& job,
             const void* acc,
             int64_t first,
             int64_t n,
             int64_t count) const {
    char* to = base + first * itemsize;
    if (dtype == inner) {
      job.kernel.finish(acc, to, n, count, job.scalars);
      return;
    }
    alignas(64) char buffer[kWidth * kMaxItem];
    job.kernel.finish(acc, buffer, n, count, job.scalars);
    convert(buffer, static_cast<int64_t>(element_size(inner)), to, itemsize, n);
  }
};

// One output: split the reduced range into fixed parts, so that the result does
// not depend on the number of threads.
void reduce_all(const Job& job, const IterationSpace& space, const Sink& sink) {
  constexpr int64_t kPart = 8 * kBlock;
  int64_t n = space.numel(), parts = (n + kPart - 1) / kPart;
  std::vector<char> partial(static_cast<size_t>(parts * job.size));
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      Cascade cascade(job, 1);
      cascade.start(1);
      int64_t stop = std::min(n, (p + 1) * kPart);
      fold_inner(job, space, job.base, p * kPart, stop, cascade);
      std::copy_n(static_cast<char*>(cascade.collect()),
                  job.size,
                  partial.data() + p * job.size);
    }
  });
  for (int64_t step = 1; step < parts; step *= 2) {
    for (int64_t p = 0; p + step < parts; p += 2 * step) {
      job.kernel.combine(partial.data() + p * job.size,
                         partial.data() + (p + step) * job.size,
                         1);
    }
  }
  sink.store(job, partial.data(), 0, 1, n);
}

// Bytes of a buffer that elements are converted to.
constexpr int64_t kBuffer = kWidth * kMaxItem;

// Rows that are folded in one go: their results are finished together.
void short_rows(const Job& job,
                const char* base,
                int64_t stride,
                int64_t rows,
                int64_t length,
                int64_t at,
                const Sink& sink) {
  alignas(64) char accumulators[kBuffer], buffer[kBuffer];
  for (int64_t first = 0; first < rows; first += kWidth) {
    int64_t count = std::min(kWidth, rows - first);
    job.kernel.init(accumulators, count);
    for (int64_t r = 0; r < count; ++r) {
      const char* row = base + (first + r) * stride;
      if (!job.same) {
        job.convert(row, job.itemsize, buffer, job.size, length);
        row = buffer;
      }
      job.kernel.inner(row, length, accumulators + r * job.size, job.scalars);
    }
    sink.store(job, accumulators, at + first, count, length);
  }
}

void reduce_rows(const Job& job,
                 const IterationSpace& kept,
                 const IterationSpace& reduced,
                 const Sink& sink) {
  int64_t grain = std::max<int64_t>(1, kGrain / reduced.numel());
  int64_t most = job.same ? kBlock : std::min(kBlock, kBuffer / job.size);
  bool one_block = reduced.dim() == 1 && reduced.stride(0, 0) == job.itemsize &&
                   reduced.numel() <= most;
  parallel_for(0, kept.numel(), grain, [&](int64_t begin, int64_t end) {
    OperandWalker walker(kept, 0, begin);
    Cascade cascade(job, 1);
    int64_t at = begin;
    walker.advance(end - begin, [&](int64_t offset, int64_t stride, int64_t n) {
      if (one_block) {
        short_rows(
            job, job.base + offset, stride, n, reduced.numel(), at, sink);
        at += n;
        return;
      }
      for (int64_t i = 0; i < n; ++i, ++at) {
        const char* base = job.base + offset + i * stride;
        cascade.start(1);
        fold_inner(job, reduced, base, 0, reduced.numel(), cascade);
        sink.store(job, cascade.collect(), at, 1, reduced.numel());
      }
    });
  });
}

// Columns lie side by side in memory: fold row after row.
void reduce_columns(const Job& job,
                    const IterationSpace& kept,
                    const IterationSpace& reduced,
                    const Sink& sink) {
  int64_t grain = std::max<int64_t>(1, kGrain / reduced.numel());
  parallel_for(0, kept.numel(), grain, [&](int64_t begin, int64_t end) {
    alignas(64) char buffer[kWidth * kMaxItem];
    OperandWalker walker(kept, 0, begin);
    Cascade cascade(job, std::min(kWidth, end - begin));
    int64_t at = begin;
    auto columns = [&](const char* base, int64_t stride, int64_t n) {
      cascade.start(n);
      OperandWalker rows(reduced, 0, 0);
      int64_t row = 0;
      rows.advance(reduced.numel(),
                   [&](int64_t offset, int64_t step, int64_t m) {
                     for (int64_t r = 0; r < m; ++r) {
                       const char* in = base + offset + r * step;
                       if (!job.same || stride != job.itemsize) {
                         job.convert(in, stride, buffer, job.size, n);
                         in = buffer;
                       }
                       job.kernel.outer(in, n, cascade.level(0), job.scalars);
                       if (++row % kFan == 0) cascade.block_done();
                     }
                   });
      sink.store(job, cascade.collect(), at, n, reduced.numel());
      at += n;
    };
    walker.advance(end - begin, [&](int64_t offset, int64_t stride, int64_t n) {
      for (int64_t i = 0; i < n; i += kWidth) {
        columns(
            job.base + offset + i * stride, stride, std::min(kWidth, n - i));
      }
    });
  });
}

// The dims of one side (kept or reduced) as a space over self's strides.
IterationSpace side(const TensorBase& self, uint64_t mask, bool reduced) {
  DimVector sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (((mask >> d) & 1) != static_cast<uint64_t>(reduced)) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d] *
                      static_cast<int64_t>(self.itemsize()));
  }
  const int64_t* list[] = {strides.data()};
  // Kept dims stay in logical order: results are stored one after the other.
  return IterationSpace(
      sizes, ArrayRef<const int64_t*>(list, 1), /*keep_order=*/!reduced);
}

const ReduceKernel& kernel_of(const ReduceOp& op, Compute compute) {
  static const int level = static_cast<int>(cpu_capability());
  return (*op.tables[level])[static_cast<int>(compute)];
}

// Of the dims that are kept those along which all elements of self are one: the
// results along them are one, too. 0 where there are none.
uint64_t broadcast_dims(const TensorBase& self, uint64_t reduced) {
  uint64_t found = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool kept = ((reduced >> d) & 1) == 0;
    if (kept && self.sizes()[d] > 1 && self.strides()[d] == 0) {
      found |= uint64_t{1} << d;
    }
  }
  return found;
}

// Computes one result for all that are equal, and copies it to the others.
void reduce_once(const ReduceOp& op,
                 const ReducePlan& plan,
                 const TensorBase& self,
                 const TensorBase& out,
                 ArrayRef<Scalar> scalars,
                 uint64_t equal) {
  DimVector sizes(self.sizes()), kept, few;
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool is_kept = ((plan.mask >> d) & 1) == 0;
    if (is_kept) kept.push_back(sizes[d]);
    if ((equal >> d) & 1) sizes[d] = 1;
    if (is_kept) few.push_back(sizes[d]);
  }
  TensorBase part =
      make_view(self, sizes, self.strides(), self.storage_offset());
  TensorBase found = make_tensor(op.name, few, out.dtype());
  native::launch_reduce(op, plan, part, found, scalars);
  copy_into(
      make_view(out, kept, contiguous_strides(kept), out.storage_offset()),
      found);
}

}  // namespace

void launch_reduce(const ReduceOp& op,
                   const ReducePlan& plan,
                   const TensorBase& self,
                   const TensorBase& out,
                   ArrayRef<Scalar> scalars) {
  uint64_t equal = broadcast_dims(self, plan.mask);
  if (equal != 0 && self.numel() > 0 && out.is_contiguous()) {
    return reduce_once(op, plan, self, out, scalars, equal);
  }
  // What kernels compute in, and what their finish() writes.
  ScalarType element = type_of(plan.types.compute);
  ScalarType result = result_of(op.types.out, element);
  const ReduceKernel& kernel = kernel_of(op, plan.types.compute);
  if (convert_function(self.dtype(), element) == nullptr) {
    not_implemented_for(op.name, self.dtype());
  }
  if (convert_function(result, plan.types.out) == nullptr) {
    not_implemented_for(op.name, plan.types.out);
  }
  alignas(16) char slots[4 * kScalarSlot];
  size_t i = 0;
  for (const Scalar& s : scalars) s.store(element, slots + kScalarSlot * i++);
  Job job{kernel,
          static_cast<const char*>(self.const_raw_data()),
          self.dtype(),
          element,
          convert_function(self.dtype(), element),
          slots,
          static_cast<int64_t>(self.itemsize()),
          static_cast<int64_t>(element_size(element)),
          self.dtype() == element};
  Sink sink{static_cast<char*>(out.mutable_raw_data()),
            plan.types.out,
            result,
            convert_function(result, plan.types.out),
            static_cast<int64_t>(out.itemsize())};
  IterationSpace kept = side(self, plan.mask, false);
  IterationSpace reduced = side(self, plan.mask, true);
  bool side_by_side =
      kept.size(0) > 1 && reduced.numel() > 1 &&
      std::llabs(kept.stride(0, 0)) < std::llabs(reduced.stride(0, 0));
  if (reduced.numel() == 0) {
    Cascade cascade(job, 1);
    cascade.start(1);
    for (int64_t k = 0; k < out.numel(); ++k) {
      sink.store(job, cascade.level(0), k, 1, 0);
    }
  } else if (out.numel() == 1) {
    reduce_all(job, reduced, sink);
  } else if (side_by_side) {
    reduce_columns(job, kept, reduced, sink);
  } else {
    reduce_rows(job, kept, reduced, sink);
  }
}

}  // namespace taeda::native
