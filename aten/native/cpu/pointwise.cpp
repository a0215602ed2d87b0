// Pointwise operators on the CPU: one loop where all operands lie as the kernel
// wants them, else chunk by chunk through buffers.
#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/iteration_space.h>
#include <taeda/aten/iter/launch.h>
#include <taeda/aten/parallel/parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

namespace taeda::native {

namespace {

constexpr int64_t kChunk = 512;
constexpr int64_t kGrain = 32768;
constexpr int kMaxScalars = 4;
constexpr int kNone = -1;

const ChunkTable& table_of(const PointwiseOp& op) {
  static const int level = static_cast<int>(cpu_capability());
  return *op.tables[level];
}

// What a call computes in, with the kernel for it.
struct TypePlan : DtypePlan {
  TypePlan(const DtypePlan& plan, const ChunkTable& loops)
      : DtypePlan(plan),
        table(loops),
        fn(loops.each[static_cast<int>(plan.compute)]) {}

  // The kernel for calls in which operand k, from 1, is one value; may be null.
  ChunkFn single(int k) const {
    if (k > 2 || (compute != Compute::F32 && compute != Compute::F64)) {
      return nullptr;
    }
    return table.single[k - 1][compute == Compute::F64];
  }

  const ChunkTable& table;
  ChunkFn fn;
};

bool is_16_bit(const DtypePlan& types) {
  return types.common == kHalf || types.common == kBFloat16;
}

// One operand's access: straight from memory, or gathered into a buffer.
struct Access {
  char* base = nullptr;
  int64_t itemsize = 0;  // of the memory
  bool linear = false;
  ConvertFn convert = nullptr;  // memory to compute type, or back
  ScalarType dtype = ScalarType::Undefined;
  ScalarType inner = ScalarType::Undefined;  // the type the kernel sees
  // A number, or rows that come again in each chunk: the buffer is filled once.
  bool constant = false;
  bool by_row = false;     // straight from memory, row by row
  bool one_a_row = false;  // broadcast along rows: the buffer stays for a row
};

struct Call {
  const PointwiseOp& op;
  TypePlan types;
  int count;  // operands with the output
  Access access[kMaxOperands];
  const unsigned char* scalars;
  bool row_by_row = false;  // no chunk goes over the end of a row
  int64_t chunk = kChunk;   // elements that are gathered at a time
  // The operand of which the kernel takes one value a chunk.
  int single = kNone;
};

// Whether two positions of the output may be one element of memory, as in an
// as_strided window. Such an output that is also read shall see what earlier
// positions wrote, so its rows (which never overlap themselves) are written
// one by one.
bool may_overlap(const IterationSpace& space, int64_t itemsize) {
  int64_t reach = itemsize;  // bytes that the inner dims cover
  for (int d = 0; d < space.dim(); ++d) {
    int64_t stride = std::llabs(space.stride(0, d));
    if (space.size(d) > 1 && stride < reach) return true;
    reach += stride * (space.size(d) - 1);
  }
  return false;
}

ConvertFn conversion(std::string_view op, ScalarType from, ScalarType to) {
  ConvertFn f = convert_function(from, to);
  if (f == nullptr) not_implemented_for(op, is_float8(from) ? from : to);
  return f;
}

// The next n elements of an operand, converted one after the other to `to`.
void gather(const Access& a, OperandWalker& walker, int64_t n, void* to) {
  int64_t size = static_cast<int64_t>(element_size(a.inner));
  auto* next = static_cast<unsigned char*>(to);
  walker.advance(n, [&](int64_t offset, int64_t stride, int64_t m) {
    a.convert(a.base + offset, stride, next, size, m);
    next += m * size;
  });
}

// After how many positions the operand's elements come again, where that is
// less than a chunk: the size of the dims inside those that it is broadcast
// over. 0 where they do not.
int64_t period_of(const IterationSpace& space, int operand) {
  int inner = space.dim();
  while (inner > 0 && space.stride(operand, inner - 1) == 0) --inner;
  if (inner == space.dim()) return 0;
  int64_t period = 1;
  for (int d = 0; d < inner; ++d) period *= space.size(d);
  return period <= kChunk / 2 ? period : 0;
}

// Runs positions [begin, end) of the space.
void run_range(const Call& call,
               const IterationSpace& space,
               int64_t begin,
               int64_t end) {
  alignas(64) unsigned char buffers[kMaxOperands][kChunk * 16];
  void* ptrs[kMaxOperands];
  bool chunked = call.row_by_row;
  std::optional<OperandWalker> walkers[kMaxOperands];
  for (int k = 0; k < call.count; ++k) {
    const Access& a = call.access[k];
    if (a.linear) {
      ptrs[k] = a.base + begin * a.itemsize;
      continue;
    }
    ptrs[k] = buffers[k];
    chunked = chunked || k != call.single;
    walkers[k].emplace(space, k, begin);
    if (!a.constant) continue;
    int64_t n = k == call.single ? 1 : std::min(call.chunk, end - begin);
    gather(a, *walkers[k], n, buffers[k]);
    walkers[k].reset();
  }
  if (!chunked) {
    call.types.fn(ptrs, call.scalars, end - begin);
    return;
  }
  int64_t column = begin % space.size(0);  // where rows end chunks
  for (int64_t i = begin, n = 0; i < end; i += n) {
    n = std::min(call.chunk, end - i);
    if (call.row_by_row) n = std::min(n, space.size(0) - column);
    for (int k = 0; k < call.count; ++k) {
      const Access& a = call.access[k];
      if (a.one_a_row && column > 0 && i > begin) {
        walkers[k]->advance_row(n, [](int64_t, int64_t, int64_t) {});
      } else if (k == call.single && walkers[k]) {
        walkers[k]->advance_row(n, [&](int64_t offset, int64_t, int64_t) {
          a.convert(a.base + offset, 0, buffers[k], 0, 1);
        });
      } else if (a.by_row) {
        walkers[k]->advance_row(n, [&](int64_t offset, int64_t, int64_t) {
          ptrs[k] = a.base + offset;
        });
      } else if (k > 0 && walkers[k]) {
        gather(a, *walkers[k], n, buffers[k]);
      }
    }
    call.types.fn(ptrs, call.scalars, n);
    if (walkers[0] && !call.access[0].by_row) {
      const Access& a = call.access[0];
      int64_t size = static_cast<int64_t>(element_size(a.inner));
      const unsigned char* from = buffers[0];
      walkers[0]->advance(n, [&](int64_t offset, int64_t stride, int64_t m) {
        a.convert(from, size, a.base + offset, stride, m);
        from += m * size;
      });
    }
    column = column + n < space.size(0) ? column + n : 0;
    for (int k = 0; k < call.count; ++k) {
      if (call.access[k].linear) {
        ptrs[k] = static_cast<char*>(ptrs[k]) + n * call.access[k].itemsize;
      }
    }
  }
}

// Rows [begin, end), in which the kernel reads and writes all operands where
// they lie.
void run_rows(const Call& call,
              const IterationSpace& space,
              int64_t begin,
              int64_t end) {
  DimVector index(static_cast<size_t>(space.dim()), 0);
  void* at[kMaxOperands];
  auto move = [&](int d, int64_t steps) {
    for (int k = 0; k < call.count; ++k) {
      at[k] = static_cast<char*>(at[k]) + steps * space.stride(k, d);
    }
  };
  for (int k = 0; k < call.count; ++k) at[k] = call.access[k].base;
  int64_t left = begin;
  for (int d = 1; d < space.dim(); ++d, left /= space.size(d - 1)) {
    index[static_cast<size_t>(d)] = left % space.size(d);
    move(d, left % space.size(d));
  }
  for (int64_t row = begin; row < end; ++row) {
    call.types.fn(at, call.scalars, space.size(0));
    for (int d = 1; d < space.dim(); ++d) {
      int64_t& i = index[static_cast<size_t>(d)];
      if (++i < space.size(d)) {
        move(d, 1);
        break;
      }
      i = 0;
      move(d, 1 - space.size(d));
    }
  }
}

void fill_access(Call& call, int k, const TensorBase& t, ScalarType inner) {
  Access& a = call.access[k];
  a.base = static_cast<char*>(k == 0 ? t.mutable_raw_data()
                                     : const_cast<void*>(t.const_raw_data()));
  a.itemsize = static_cast<int64_t>(t.itemsize());
  a.dtype = t.dtype();
  a.inner = inner;
  if (a.dtype == inner) {
    a.convert = convert_function(inner, inner);
  } else if (k == 0) {
    a.convert = conversion(call.op.name, inner, a.dtype);
  } else {
    a.convert = conversion(call.op.name, a.dtype, inner);
  }
}

using Numbers = unsigned char[kMaxOperands][kScalarSlot];

// A number that stands for a tensor is converted as one: what does not fit an
// integer type wraps, and what does not fit a float is infinite. Halves take it
// in the type that they compute in.
void store_number(const Scalar& number,
                  const TypePlan& types,
                  bool exact,
                  ScalarType want,
                  unsigned char* to) {
  alignas(16) unsigned char wide[kScalarSlot], narrow[kScalarSlot];
  ScalarType from = number.is_complex()    ? kComplexDouble
                    : number.is_floating() ? kDouble
                                           : kLong;
  bool narrow_first =
      is_integral(types.common, true) || (!exact && is_16_bit(types));
  ScalarType between = narrow_first ? types.common : from;
  ConvertFn first = convert_function(from, between);
  ConvertFn second = convert_function(between, want);
  if (number.kind() == Scalar::Kind::UInt || first == nullptr ||
      second == nullptr) {
    // Of uint64 the bits are computed with.
    number.store(types.common == kUInt64 ? kUInt64 : want, to);
    return;
  }
  number.store(from, wide);
  first(wide, 0, narrow, 0, 1);
  second(narrow, 0, to, 0, 1);
}

// Fills `to` with a single value, converted.
void repeat(const PointwiseOp& op,
            const TypePlan& types,
            const Operand& o,
            size_t place,
            ScalarType want,
            int64_t count,
            unsigned char* to) {
  int64_t size = static_cast<int64_t>(element_size(want));
  if (o.number == nullptr) {
    const TensorBase& t = *o.tensor;
    auto* from = static_cast<const char*>(t.const_raw_data());
    conversion(op.name, t.dtype(), want)(from, 0, to, size, count);
    return;
  }
  alignas(16) unsigned char number[kScalarSlot];
  store_number(*o.number, types, op.types.is_exact(place), want, number);
  convert_function(want, want)(number, 0, to, size, count);
}

// What single values are repeated in; without memory where they are not.
template <bool kRepeat>
struct Repeated {
  alignas(64) unsigned char buffers[kMaxOperands][kChunk * 16];
};
template <>
struct Repeated<false> {};

// Nothing to gather, convert or repeat: the kernel runs on the tensors' memory.
// This is the path of most calls, and of all calls on tiny tensors. With
// `kRepeat`, for short tensors, single values are repeated for it.
template <bool kRepeat>
bool run_direct(const PointwiseOp& op,
                const TypePlan& types,
                const TensorBase& out,
                Operands operands,
                const unsigned char* scalars,
                Numbers& numbers) {
  int64_t numel = out.numel();
  ScalarType inner = type_of(types.compute);
  if (out.dtype() != result_of(op.types.out, inner)) return false;
  if (numel != 1 && !out.is_contiguous()) return false;
  void* ptrs[kMaxOperands];
  int64_t itemsizes[kMaxOperands];
  ChunkFn fn = types.fn;
  [[maybe_unused]] Repeated<kRepeat> repeated;
  ptrs[0] = out.mutable_raw_data();
  itemsizes[0] = static_cast<int64_t>(out.itemsize());
  size_t k = 1;
  for (const Operand& o : operands) {
    ScalarType want = k - 1 < op.types.conditions ? kBool : inner;
    if constexpr (kRepeat) {
      if (o.number != nullptr || o.tensor->numel() == 1) {
        ptrs[k] = repeated.buffers[k];
        itemsizes[k] = static_cast<int64_t>(element_size(want));
        repeat(op, types, o, k - 1, want, numel, repeated.buffers[k]);
        ++k;
        continue;
      }
    }
    if (o.number != nullptr) {
      if (numel != 1) {
        if (fn != types.fn) return false;  // another one is a number too
        fn = types.single(static_cast<int>(k));
        if (fn == nullptr) return false;
      }
      store_number(
          *o.number, types, op.types.is_exact(k - 1), want, numbers[k]);
      ptrs[k] = numbers[k];
      itemsizes[k++] = 0;
      continue;
    }
    const TensorBase& t = *o.tensor;
    if (t.dtype() != want) return false;
    bool same = numel == 1 || (t.is_contiguous() && t.sizes() == out.sizes());
    if (!same) return false;
    ptrs[k] = const_cast<void*>(t.const_raw_data());
    itemsizes[k++] = static_cast<int64_t>(t.itemsize());
  }
  if (numel <= kGrain) {
    fn(ptrs, scalars, numel);
    return true;
  }
  parallel_for(0, numel, kGrain, [&](int64_t begin, int64_t end) {
    void* part[kMaxOperands];
    for (size_t i = 0; i < k; ++i) {
      part[i] = static_cast<char*>(ptrs[i]) + begin * itemsizes[i];
    }
    fn(part, scalars, end - begin);
  });
  return true;
}

// How each operand is read, and the output written. `numbers` holds what
// numbers among the operands are in the compute type.
Call make_call(const PointwiseOp& op,
               const TypePlan& types,
               const TensorBase& out,
               Operands operands,
               const unsigned char* scalars,
               Numbers& numbers) {
  ScalarType inner = type_of(types.compute);
  Call call{op, types, static_cast<int>(operands.size()) + 1, {}, scalars};
  fill_access(call, 0, out, result_of(op.types.out, inner));
  for (int k = 1; k < call.count; ++k) {
    const Operand& o = operands[static_cast<size_t>(k - 1)];
    ScalarType want = k - 1 < op.types.conditions ? kBool : inner;
    Access& a = call.access[k];
    if (o.number != nullptr) {
      bool exact = op.types.is_exact(static_cast<size_t>(k - 1));
      store_number(*o.number, types, exact, want, numbers[k]);
      a = {reinterpret_cast<char*>(numbers[k]),
           0,
           false,
           convert_function(want, want),
           want,
           want,
           true};
      continue;
    }
    fill_access(call, k, *o.tensor, want);
    a.constant = o.tensor->numel() == 1;
  }
  return call;
}

// Whether rows are long enough to be read and written where they lie, and which
// operands then are.
bool find_rows(Call& call, const IterationSpace& space) {
  const int64_t long_row = call.single != kNone ? kChunk / 8 : kChunk / 2;
  if (space.size(0) < long_row && !call.row_by_row) return false;
  bool found = call.single != kNone && !call.access[call.single].constant;
  for (int k = 0; k < call.count; ++k) {
    Access& a = call.access[k];
    if (a.linear || a.constant) continue;
    a.by_row = a.dtype == a.inner && space.stride(k, 0) == a.itemsize;
    found = found || a.by_row;
  }
  for (int k = 1; found && k < call.count; ++k) {
    Access& a = call.access[k];
    a.one_a_row = !a.linear && !a.constant && space.stride(k, 0) == 0;
  }
  return found;
}

// The only operand that is one value for a row or for all, if the kernel has a
// loop for it.
void find_single(Call& call, const IterationSpace& space) {
  for (int k = 1; k < call.count; ++k) {
    const Access& a = call.access[k];
    if (a.linear || (!a.constant && space.stride(k, 0) != 0)) continue;
    if (call.single != kNone || call.types.single(k) == nullptr) {
      call.single = kNone;
      return;
    }
    call.single = k;
  }
}

// Whether some operand goes through a buffer.
bool is_buffered(const Call& call) {
  for (int k = 0; k < call.count; ++k) {
    const Access& a = call.access[k];
    if (k != call.single && !a.linear && !a.by_row) return true;
  }
  return false;
}

bool lies_in_rows(const Call& call) {
  if (!call.row_by_row || is_buffered(call)) return false;
  if (call.single == kNone) return true;
  const Access& single = call.access[call.single];
  return single.dtype == single.inner;
}

// Chunks of whole periods, so that what comes again is gathered once. Periods
// are sizes of the innermost dims: the longest is a multiple of the others.
void find_periods(Call& call, const IterationSpace& space) {
  int64_t longest = 1;
  for (int k = 1; k < call.count; ++k) {
    Access& a = call.access[k];
    if (a.linear || a.constant) continue;
    int64_t period = period_of(space, k);
    a.constant = period > 0;
    longest = std::max(longest, period);
  }
  call.chunk = kChunk / longest * longest;
}

// The output and the operands, seen with the output's sizes.
IterationSpace space_of(const TensorBase& out, Operands operands) {
  int count = static_cast<int>(operands.size()) + 1;
  DimVector byte_strides[kMaxOperands];
  const int64_t* strides[kMaxOperands];
  operand_strides(out, out.sizes(), byte_strides[0]);
  for (int k = 1; k < count; ++k) {
    const Operand& o = operands[static_cast<size_t>(k - 1)];
    if (o.tensor != nullptr) {
      operand_strides(*o.tensor, out.sizes(), byte_strides[k]);
    } else {
      byte_strides[k].resize(out.sizes().size(), 0);
    }
  }
  for (int k = 0; k < count; ++k) strides[k] = byte_strides[k].data();
  return IterationSpace(
      out.sizes(),
      ArrayRef<const int64_t*>(strides, static_cast<size_t>(count)));
}

// Operands that the kernel cannot read in place go through buffers.
void run_gathered(const PointwiseOp& op,
                  const TypePlan& types,
                  const TensorBase& out,
                  Operands operands,
                  const unsigned char* scalars,
                  Numbers& numbers) {
  Call call = make_call(op, types, out, operands, scalars, numbers);
  IterationSpace space = space_of(out, operands);
  for (int k = 0; k < call.count; ++k) {
    Access& a = call.access[k];
    a.linear =
        !a.constant && a.dtype == a.inner && space.is_linear(k, a.itemsize);
  }
  call.row_by_row =
      !call.access[0].linear && may_overlap(space, call.access[0].itemsize);
  find_single(call, space);
  if (find_rows(call, space)) {
    call.row_by_row = true;
  } else {
    if (call.single != kNone && !call.access[call.single].constant) {
      call.single = kNone;
    }
    if (!call.row_by_row) find_periods(call, space);
  }
  if (call.single != kNone) call.types.fn = call.types.single(call.single);
  if (!is_buffered(call)) call.chunk = out.numel();
  if (lies_in_rows(call)) {
    int64_t length = space.size(0), rows = out.numel() / length;
    int64_t grain = std::max<int64_t>(1, kGrain / length);
    parallel_for(0, rows, grain, [&](int64_t b, int64_t e) {
      run_rows(call, space, b, e);
    });
    return;
  }
  parallel_for(0, out.numel(), kGrain, [&](int64_t b, int64_t e) {
    run_range(call, space, b, e);
  });
}

// Note [Tables of 16-bit functions]
// A function of one 16-bit number has 65536 values at most. Those of a tensor
// with many times as many elements are computed once each and looked up, if the
// first that are computed show that a look-up is quicker. The values are the
// same either way, so that only the time of a call depends on the clock.
constexpr int64_t kValues = 65536, kTabled = 8 * kValues;

// Fills the table unless a look-up (some 0.25 ns) would be no quicker.
bool fill_table(const Call& call, uint16_t* table) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kTimed = 8 * kChunk;
  constexpr auto kQuick = std::chrono::nanoseconds(150);
  constexpr int64_t kOrdinary =
      0x3c00;  // begins at 1 or 2^-7, not at denormals
  alignas(64) uint16_t given[kChunk], found[kChunk];
  alignas(64) float in[kChunk], out[kChunk];
  auto least = Clock::duration::max();
  void* ptrs[] = {out, in};
  for (int64_t i = 0; i < kValues; i += kChunk) {
    int64_t first = (i + kOrdinary) % kValues;
    for (int64_t k = 0; k < kChunk; ++k) {
      given[k] = static_cast<uint16_t>(first + k);
    }
    auto began = Clock::now();
    call.access[1].convert(given, 2, in, 4, kChunk);
    call.types.fn(ptrs, call.scalars, kChunk);
    call.access[0].convert(out, 4, found, 2, kChunk);
    least = std::min(least, Clock::now() - began);
    if (i == kTimed && least < kQuick) return false;
    std::copy_n(found, kChunk, table + first);
  }
  return true;
}

bool run_by_table(const PointwiseOp& op,
                  const TypePlan& types,
                  const TensorBase& out,
                  Operands operands,
                  const unsigned char* scalars,
                  Numbers& numbers) {
  int64_t numel = out.numel();
  if (numel < kTabled || operands.size() != 1 || op.types.conditions != 0 ||
      types.compute != Compute::F32 || operands[0].tensor == nullptr) {
    return false;
  }
  const TensorBase& self = *operands[0].tensor;
  if (!is_16_bit(types) || self.dtype() != types.common ||
      out.dtype() != types.common ||
      result_of(op.types.out, kFloat) != kFloat || !out.is_contiguous() ||
      !self.is_contiguous() || self.sizes() != out.sizes()) {
    return false;
  }
  Call call = make_call(op, types, out, operands, scalars, numbers);
  auto table = std::make_unique_for_overwrite<uint16_t[]>(kValues);
  if (!fill_table(call, table.get())) return false;
  auto* from = static_cast<const uint16_t*>(self.const_raw_data());
  auto* to = static_cast<uint16_t*>(out.mutable_raw_data());
  parallel_for(0, numel, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = table[from[i]];
  });
  return true;
}

// Tensors of other dtypes beside 16-bit floats, converted to these: the kernel
// computes in float, which would hold more of them.
class Narrowed {
 public:
  Narrowed(const PointwiseOp& op, const TypePlan& types, Operands given)
      : operands_(given.begin(), given.end()) {
    for (size_t k = op.types.conditions; k < operands_.size(); ++k) {
      const TensorBase* t = operands_[k].tensor;
      if (t == nullptr || t->dtype() == types.common) continue;
      if (op.types.is_exact(k) && t->dim() == 0) continue;
      tensors_[k] = contiguous_as(*t, types.common);
      operands_[k] = tensors_[k];
    }
  }
  Operands operands() const { return operands_; }

 private:
  SmallVector<Operand, kMaxOperands> operands_;
  TensorBase tensors_[kMaxOperands];
};

bool has_other_dtype(const PointwiseOp& op,
                     const TypePlan& types,
                     Operands operands) {
  for (size_t k = op.types.conditions; k < operands.size(); ++k) {
    const TensorBase* t = operands[k].tensor;
    if (t != nullptr && t->dtype() != types.common) return true;
  }
  return false;
}

}  // namespace

// The kernel sees `inner` types: compute type for operands, bool for
// conditions, OutKind's type for the output.
void launch_pointwise(const PointwiseOp& op,
                      const DtypePlan& plan,
                      const TensorBase& out,
                      Operands operands,
                      ArrayRef<Scalar> scalars) {
  TypePlan types(plan, table_of(op));
  std::optional<Narrowed> narrowed;
  if (is_16_bit(types) && has_other_dtype(op, types, operands)) {
    operands = narrowed.emplace(op, types, operands).operands();
  }
  int64_t numel = out.numel();
  ScalarType inner = type_of(types.compute);
  alignas(16) unsigned char slots[kMaxScalars * kScalarSlot];
  for (size_t i = 0; i < scalars.size(); ++i) {
    unsigned char* slot = slots + i * kScalarSlot;
    // Parameters are of the tensors' type, which may be narrower: they must
    // fit, and any number but 0 is true.
    bool narrower = is_integral(plan.common, true) && plan.common != inner;
    scalars[i].store(narrower ? plan.common : inner, slot);
    if (narrower) Scalar::load(plan.common, slot).store(inner, slot);
  }
  alignas(16) Numbers numbers;
  if (run_direct<false>(op, types, out, operands, slots, numbers)) return;
  if (numel > 1 && numel <= kChunk &&
      run_direct<true>(op, types, out, operands, slots, numbers)) {
    return;
  }
  if (run_by_table(op, types, out, operands, slots, numbers)) return;
  run_gathered(op, types, out, operands, slots, numbers);
}

}  // namespace taeda::native
