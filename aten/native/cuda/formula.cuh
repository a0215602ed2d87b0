// What formulas of records and kernels written by hand look at: tensors of any
// geometry, numbers and lists, each a slot of the call. One text serves all
// sizes. The caller is given.cpp.
#pragma once

#include <taeda/aten/native/cuda/storage.cuh>

namespace taeda {

inline constexpr int kMaxRank = 8;
inline constexpr int kMaxEntries = 16;

// A tensor, a number or a list; laid out as Slot of given.h.
struct Slot {
  void* data;
  Long numel;    // of a tensor; the length of a list
  int rank;      // of a tensor
  int linear;    // element behind element, in row-major order
  int missing;   // None was given
  int integral;  // a number without fraction
  Long integer;
  double real, imag;
  union {
    Long entries[kMaxEntries];
    double reals[kMaxEntries];
    struct {
      Long sizes[kMaxRank], strides[kMaxRank];
    };
  };
};

// Where the first thing that is wrong on a device is written down; laid out as
// in c10/cuda/fault.h.
struct Fault {
  unsigned taken, written;
  const char* op;  // memory of the host
  Long index, size;
};
struct Caller {
  Fault* fault;
  const char* op;
};

template <int kSlots>
struct GivenCall {
  Long count;
  Caller caller;
  Slot slots[kSlots];
};

// Of the kernel that runs. Each thread sets it for itself, to the same.
__device__ inline const Caller*& current_caller() {
  __shared__ const Caller* caller;
  return caller;
}

template <bool kFirst, class A, class B>
struct ConditionalType {
  using type = A;
};
template <class A, class B>
struct ConditionalType<false, A, B> {
  using type = B;
};
template <bool kFirst, class A, class B>
using Conditional = typename ConditionalType<kFirst, A, B>::type;

template <int kBytes>
__device__ inline void copy_bytes(void* to, const void* from) {
  for (int i = 0; i < kBytes; ++i) {
    static_cast<unsigned char*>(to)[i] =
        static_cast<const unsigned char*>(from)[i];
  }
}

// An argument that is a number.
struct Number {
  const Slot& slot;
  const bool missing;
  __device__ inline explicit Number(const Slot& s)
      : slot(s), missing(s.missing != 0) {}
  __device__ inline Long integer() const { return slot.integer; }
  __device__ inline double real() const { return slot.real; }
  __device__ inline bool truth() const {
    return slot.real != 0 || slot.imag != 0;
  }
  __device__ inline complex<double> whole() const {
    return complex<double>(slot.real, slot.imag);
  }
};

// A list of integers, or of floating-point numbers by real().
struct Numbers {
  const Slot& slot;
  const Long size;
  const bool missing;
  __device__ inline explicit Numbers(const Slot& s)
      : slot(s), size(s.numel), missing(s.missing != 0) {}
  __device__ inline Long operator[](Long i) const { return slot.entries[i]; }
  __device__ inline double real(Long i) const { return slot.reals[i]; }
};

#ifdef __CUDACC__
// What is changed by atomic operations, read from memory each time.
template <class Word>
__device__ inline Word read_word(const Word* at) {
  return *reinterpret_cast<const volatile Word*>(at);
}
#endif

// Gives *at the value f(*at), whatever other threads do to it.
template <class S, class F>
__device__ inline void change(S* at, F f) {
  constexpr int kSize = sizeof(S);
  using Word = Conditional<kSize == 8, unsigned long long, unsigned>;
  constexpr unsigned long long kWord = sizeof(Word);
  auto address = reinterpret_cast<unsigned long long>(at);
  Word* word = reinterpret_cast<Word*>(address / kWord * kWord);
  const int shift = static_cast<int>(address % kWord) * 8;
  Word seen = read_word(word);
  for (;;) {
    S old, now;
    Word part = seen >> shift;
    copy_bytes<kSize>(&old, &part);
    now = f(old);
    Word bits = 0;
    copy_bytes<kSize>(&bits, &now);
    Word mask = kSize == kWord ? ~Word(0) : (Word(1) << (kSize * 8 % 64)) - 1;
    Word next = (seen & ~(mask << shift)) | (bits << shift);
    Word before = atomicCAS(word, seen, next);
    if (before == seen) return;
    seen = before;
  }
}

#ifdef __CUDACC__
// No thread of these kernels waits for another.
__device__ inline void end_thread() { asm volatile("exit;"); }
#endif
// Note [Faults of kernels]: `index` is as it was given.
__device__ inline void report_fault(const Caller& caller,
                                    Long index,
                                    Long size) {
  Fault& fault = *caller.fault;
  if (atomicCAS(&fault.taken, 0u, 1u) == 0u) {
    fault.op = caller.op;
    fault.index = index;
    fault.size = size;
    __threadfence_system();
    *static_cast<volatile unsigned*>(&fault.written) = 1u;
  }
}
__device__ inline void report_index(Long index, Long size) {
  report_fault(*current_caller(), index, size);
  end_thread();
}
__device__ inline void require_inside(Long at, Long size) {
  if (at < 0 || at >= size) report_index(at, size);
}
// The place that an index of either sign names.
__device__ inline Long wrapped_index(Long at, Long size) {
  const Long place = at < 0 ? at + size : at;
  if (place < 0 || place >= size) report_index(at, size);
  return place;
}

// A tensor of stored type S whose elements are read as V.
template <class S, class V>
struct Elements {
  using Stored = S;
  using Value = V;
  const Slot& slot;
  static constexpr bool missing = false;
  __device__ inline explicit Elements(const Slot& s) : slot(s) {}

  __device__ inline S* data() const { return static_cast<S*>(slot.data); }
  __device__ inline Long rank() const { return slot.rank; }
  __device__ inline Long numel() const { return slot.numel; }
  // Along an axis of either sign; a tensor without axes is a row of one.
  __device__ inline Long size(Long axis) const {
    if (slot.rank == 0) return 1;
    return slot.sizes[axis < 0 ? axis + slot.rank : axis];
  }
  __device__ inline Long stride(Long axis) const {
    if (slot.rank == 0) return 0;
    return slot.strides[axis < 0 ? axis + slot.rank : axis];
  }
  // Where element `number`, in row-major order, lies.
  __device__ inline Long place(Long number) const {
    if (slot.linear) return number;
    Long at = 0;
    for (int d = slot.rank - 1; d >= 0; --d) {
      Long next = number / slot.sizes[d];
      at += (number - next * slot.sizes[d]) * slot.strides[d];
      number = next;
    }
    return at;
  }
  __device__ inline V load(Long place) const {
    return converted<V>(element(static_cast<const S*>(data()), place));
  }
  __device__ inline V flat(Long number) const { return load(place(number)); }
  // Element by its index along each axis, from the left.
  template <class... I>
  __device__ inline Long place_of(I... index) const {
    const Long list[] = {static_cast<Long>(index)...};
    Long at = 0;
    for (int d = 0; d < slot.rank; ++d) at += list[d] * slot.strides[d];
    return at;
  }
  template <class... I>
  __device__ inline V at(I... index) const {
    return load(place_of(index...));
  }
  // The element whose index along each axis is index(axis).
  template <class F>
  __device__ inline V read(F index) const {
    Long at = 0;
    for (int d = 0; d < slot.rank; ++d) {
      const Long own = index(Long(d));
      require_inside(own, slot.sizes[d]);
      at += own * slot.strides[d];
    }
    return load(at);
  }
  template <class F>
  __device__ inline bool inside(F index) const {
    for (int d = 0; d < slot.rank; ++d) {
      Long at = index(Long(d));
      if (at < 0 || at >= slot.sizes[d]) return false;
    }
    return true;
  }
  template <class T>
  __device__ inline void store(Long place, T value) const {
    data()[place] = converted<S>(value);
  }
  template <class T>
  __device__ inline void write(Long number, T value) const {
    store(place(number), value);
  }
  // The element of a tensor that broadcasts to one of `rank` axes.
  template <class E>
  __device__ inline V broadcast(const E& e, Long rank) const {
    return read([&](Long axis) {
      return slot.sizes[axis] == 1 ? Long(0) : e.at(axis + rank - slot.rank);
    });
  }
  // Adds where other threads may add too.
  __device__ inline void add(Long place, V value) const {
    if constexpr (kIsComplex<S>) {
      using R = RealOf<S>;
      R* parts = reinterpret_cast<R*>(data() + place);
      change(parts, [&](R old) { return converted<R>(old + value.real()); });
      change(parts + 1,
             [&](R old) { return converted<R>(old + value.imag()); });
    } else {
      change(data() + place, [&](S old) {
        return converted<S>(static_cast<V>(converted<V>(old) + value));
      });
    }
  }
};

// An optional tensor that is None. What asks for its elements does not run.
struct Nothing {
  using Stored = float;
  using Value = double;
  static constexpr bool missing = true;
  __device__ inline explicit Nothing(const Slot&) {}
  __device__ inline Long rank() const { return 0; }
  __device__ inline Long numel() const { return 0; }
  __device__ inline Long size(Long) const { return 0; }
  __device__ inline Value flat(Long) const { return 0; }
  template <class... I>
  __device__ inline Value at(I...) const {
    return 0;
  }
  template <class T>
  __device__ inline void write(Long, T) const {}
};

// The place of an element of a result.
struct Place {
  const Slot& slot;
  Long number;
  Long index[kMaxRank];

  __device__ inline Place(const Slot& result, Long position)
      : slot(result), number(position) {
    for (int d = slot.rank - 1; d >= 0; --d) {
      Long next = position / slot.sizes[d];
      index[d] = position - next * slot.sizes[d];
      position = next;
    }
  }
  __device__ inline Long position() const { return number; }
  __device__ inline Long at(Long axis) const {
    if (slot.rank == 0) return 0;
    return index[axis < 0 ? axis + slot.rank : axis];
  }
  __device__ inline Long wrapped(Long dim) const {
    return dim < 0 ? dim + (slot.rank == 0 ? 1 : slot.rank) : dim;
  }
  // Whether a list of axes names this one, by either sign.
  __device__ inline bool named(const Numbers& dims, Long axis) const {
    for (Long i = 0; i < dims.size; ++i) {
      if (wrapped(dims[i]) == axis) return true;
    }
    return false;
  }
  // The sum of the values at the places where `dims` names the axis.
  __device__ inline Long along(const Numbers& values,
                               const Numbers& dims,
                               Long axis) const {
    Long sum = 0;
    for (Long i = 0; i < dims.size; ++i) {
      if (wrapped(dims[i]) == axis) sum += values[i];
    }
    return sum;
  }
};

// f(i) for each i below `count`, over the threads of the grid.
template <class F>
__device__ inline void for_each(Long count, F f) {
  const Long step = static_cast<Long>(gridDim.x) * blockDim.x;
  Long i = static_cast<Long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < count; i += step) f(i);
}

// Results of `rows` elements each, which lie behind each other in the tensors:
// a thread folds a row. F is printed by tools/codegen/formula_cuda.py.
template <class F, class G>
__device__ inline void fold_row(const G& g, Long row, Long count) {
  using State = typename F::State;
  const Long begin = row * count;
  State all = F::none();
  if (F::kStarts || count > 0) {
    if (!F::kStarts) all = F::one(g, begin, 0);
    for (Long i = F::kStarts ? 0 : 1; i < count; ++i) {
      all = F::both(all, F::one(g, begin + i, i));
    }
  }
  F::finish(g, all, row, count);
}

// All up to each element, or with kStep -1 from each on.
template <class F, int kStep, class G>
__device__ inline void scan_row(const G& g, Long row, Long count) {
  if (count == 0) return;
  Long i = kStep > 0 ? 0 : count - 1;
  typename F::State all = F::one(g, row * count + i, i);
  F::finish(g, all, row * count + i, count);
  for (Long n = 1; n < count; ++n) {
    i += kStep;
    all = F::both(all, F::one(g, row * count + i, i));
    F::finish(g, all, row * count + i, count);
  }
}

}  // namespace taeda
