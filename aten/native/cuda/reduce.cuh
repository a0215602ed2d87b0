// The loop of reduction programs, whose text reduce.cpp prints.
#pragma once

#include <taeda/aten/native/cuda/loops.cuh>

namespace taeda {

// Note [Reductions on a device]
// A point is one output. Its elements are folded by kLanes threads, and a
// block has kPoints points: in rows the threads of a point are neighbours, in
// columns neighbours are of different points, whichever lie beside each other
// in memory. Where points are few, `splits` blocks share each one: they leave
// partial folds, and the block that comes last adds them in the order of the
// blocks. So the same bits come out each time.
struct ReduceCall {
  Long points, count;
  const void* in;
  void* out;
  void* partial;      // points of each split
  unsigned* tickets;  // blocks of each group of points that are done
  int splits;
  int kept_dims, reduced_dims;
  int kept_sizes[kMaxDims];
  int reduced_sizes[kMaxDims];
  Long kept_strides[kMaxDims];
  Long reduced_strides[kMaxDims];
  alignas(16) unsigned char numbers[4][16];
};

__device__ inline Long place_of(const int* sizes,
                                const Long* strides,
                                int dims,
                                Long position) {
  Long place = 0;
  for (int d = 0; d + 1 < dims; ++d) {
    Long next = position / sizes[d];
    place += (position - next * sizes[d]) * strides[d];
    position = next;
  }
  return dims > 0 ? place + position * strides[dims - 1] : 0;
}

// P is the policy of a record, S what is stored, Out what is written; kPack
// elements of a row are read at once.
template <class P,
          class S,
          class Out,
          int kLanes,
          int kPoints,
          bool kColumns,
          int kPack>
struct Reduction {
  using T = typename P::Element;
  static constexpr int kThreads = kLanes * kPoints;
  static constexpr int kUnroll = 4;

  static __device__ inline T map(const S* in, Long i, const T* scalars) {
    return P::map_slots(loaded<T>(in, i), scalars);
  }

  // Elements [begin, end) of a point, those of this lane.
  static __device__ inline T fold(const ReduceCall& call,
                                  const S* in,
                                  Long begin,
                                  Long end,
                                  int lane,
                                  const T* scalars) {
    T acc[kUnroll];
    TAEDA_MATH_UNROLL
    for (int u = 0; u < kUnroll; ++u) acc[u] = P::init();
    Long i = begin + lane;
    if constexpr (kPack > 1) {
      Long packs = (end - begin) / kPack, p = lane;
      for (; p + kLanes < packs; p += 2 * kLanes) {
        Pack<S, kPack> a, b;
        read_pack(a, in + begin + p * kPack);
        read_pack(b, in + begin + (p + kLanes) * kPack);
        TAEDA_MATH_UNROLL
        for (int k = 0; k < kPack; ++k) {
          T& even = acc[k % 2];
          T& odd = acc[2 + k % 2];
          even = P::combine(even, map(a.at, k, scalars));
          odd = P::combine(odd, map(b.at, k, scalars));
        }
      }
      for (; p < packs; p += kLanes) {
        Pack<S, kPack> a;
        read_pack(a, in + begin + p * kPack);
        TAEDA_MATH_UNROLL
        for (int k = 0; k < kPack; ++k) {
          acc[k % 2] = P::combine(acc[k % 2], map(a.at, k, scalars));
        }
      }
      i = begin + packs * kPack + lane;
    }
    for (; i + (kUnroll - 1) * kLanes < end; i += kUnroll * kLanes) {
      TAEDA_MATH_UNROLL
      for (int u = 0; u < kUnroll; ++u) {
        Long at = place_of(call.reduced_sizes,
                           call.reduced_strides,
                           call.reduced_dims,
                           i + u * kLanes);
        acc[u] = P::combine(acc[u], map(in, at, scalars));
      }
    }
    for (; i < end; i += kLanes) {
      Long at = place_of(
          call.reduced_sizes, call.reduced_strides, call.reduced_dims, i);
      acc[0] = P::combine(acc[0], map(in, at, scalars));
    }
    return P::combine(P::combine(acc[0], acc[1]), P::combine(acc[2], acc[3]));
  }

  static __device__ inline void store(const ReduceCall& call,
                                      Long point,
                                      T value,
                                      const T* scalars) {
    static_cast<Out*>(call.out)[point] = converted<Out>(
        P::finish_slots(value, static_cast<T>(call.count), scalars));
  }

  // The parts of a point, in the order of the splits.
  static __device__ inline void finish(const ReduceCall& call,
                                       Long point,
                                       const T* scalars) {
    const volatile unsigned char* bytes =
        static_cast<const unsigned char*>(call.partial);
    T value = P::init();
    for (int s = 0; s < call.splits; ++s) {
      T part;
      Long at = (s * call.points + point) * static_cast<Long>(sizeof(T));
      for (unsigned b = 0; b < sizeof(T); ++b) {
        reinterpret_cast<unsigned char*>(&part)[b] = bytes[at + b];
      }
      value = P::combine(value, part);
    }
    store(call, point, value, scalars);
  }

  static __device__ inline void run(const ReduceCall& call,
                                    const T* scalars,
                                    unsigned char* memory) {
    const int id = static_cast<int>(threadIdx.x);
    const int lane = kColumns ? id / kPoints : id % kLanes;
    const int local = kColumns ? id % kPoints : id / kLanes;
    const Long point = static_cast<Long>(blockIdx.x) * kPoints + local;
    const Long share = (call.count + call.splits - 1) / call.splits;
    // Whole packs for each split.
    const Long part = (share + kPack - 1) / kPack * kPack;
    const Long begin = part * blockIdx.y;
    const Long limit = begin + part < call.count ? begin + part : call.count;
    T acc = P::init();
    if (point < call.points && begin < limit) {
      const S* in =
          static_cast<const S*>(call.in) +
          place_of(call.kept_sizes, call.kept_strides, call.kept_dims, point);
      acc = fold(call, in, begin, limit, lane, scalars);
    }
    acc = meet<kLanes, kPoints, kColumns>(
        acc, lane, local, memory, [](T a, T b) { return P::combine(a, b); });
    const bool speaks = lane == 0 && point < call.points;
    if (call.splits == 1) {
      if (speaks) store(call, point, acc, scalars);
      return;
    }
    if (speaks) {
      static_cast<T*>(call.partial)[blockIdx.y * call.points + point] = acc;
    }
    __threadfence();
    __syncthreads();
    __shared__ unsigned ticket;
    if (id == 0) ticket = atomicAdd(call.tickets + blockIdx.x, 1u);
    __syncthreads();
    if (ticket + 1 != static_cast<unsigned>(call.splits)) return;
    __threadfence();
    if (speaks) finish(call, point, scalars);
  }
};

}  // namespace taeda
