#include <taeda/aten/native/cuda/rows.h>

#include <taeda/aten/iter/copy.h>
#include <taeda/c10/cuda/fault.h>
#include <taeda/gen/ops/contiguous.h>

#include <algorithm>

namespace taeda::cuda {

namespace {

constexpr int kAccess = 16;
constexpr int kThreads = 256;
constexpr int kMostThreads = 1024;
// Packs of all inputs that a thread holds: 32 registers of what is stored leave
// as many for the work, with 1,024 threads.
constexpr int kMostHeld = 8;
constexpr int64_t kMostShares = 65535;

// How the threads of a block share rows.
struct Split {
  int lanes = 1, held = 1;
  int points() const { return std::max(kThreads / lanes, 1); }
};

// Few packs for each thread while threads are cheap: what reads in one block
// overlaps with what computes in another. 512 threads have 128 registers each;
// with 1,024, of half as many, the longest rows of 16 bits spill some.
Split split_of(int64_t packs, int inputs) {
  Split s;
  int most = kMostHeld / inputs;
  while (s.lanes < 32 && s.lanes < packs) s.lanes *= 2;
  while (s.lanes * s.held < packs) {
    if (s.held < std::min(most, 4)) {
      s.held *= 2;
    } else if (s.lanes < kMostThreads / 2) {
      s.lanes = s.lanes < 128 ? 128 : s.lanes * 2;
      s.held = s.lanes * s.held / 2 >= packs ? s.held / 2 : s.held;
    } else if (s.held < most) {
      s.held *= 2;
    } else {
      s.lanes = kMostThreads;
    }
  }
  return s;
}

// Elements of a pack: less than 16 bytes where the tensors' memory does not
// begin at the same place in them.
int pack_of(const RowCall& call, int inputs, bool writes, int64_t itemsize) {
  auto offset = [](const void* p) {
    return reinterpret_cast<uintptr_t>(p) % kAccess;
  };
  bool alike = offset(call.in[0]) % static_cast<uintptr_t>(itemsize) == 0;
  if (inputs > 1) alike = alike && offset(call.in[1]) == offset(call.in[0]);
  if (writes) alike = alike && offset(call.out) == offset(call.in[0]);
  return alike ? static_cast<int>(kAccess / itemsize) : 1;
}

// Of a row with parts of packs at both ends.
int64_t packs_of(int64_t count, int pack) {
  return pack == 1 ? count : (count + 2 * (pack - 1)) / pack;
}

}  // namespace

TensorBase run_rows(const RowKernel& kernel,
                    ScalarType stored,
                    ScalarType factors,
                    Device device,
                    RowCall call) {
  if (call.rows == 0) return {};
  DeviceGuard guard(device.index);
  auto itemsize = static_cast<int64_t>(element_size(stored));
  int pack = pack_of(call, kernel.inputs, kernel.writes, itemsize);
  int64_t most = kMostThreads * (kMostHeld / kernel.inputs);
  int64_t packs = packs_of(call.count, pack);
  call.splits = 1;
  call.share = call.count;
  if (packs > most) {
    // Half of what a block can hold: more blocks, with fewer registers each.
    packs = std::max(most / 2, (packs + kMostShares - 1) / kMostShares);
    TAEDA_CHECK_AS(NotImplemented,
                   packs <= most,
                   kernel.op,
                   ": CUDA kernels take rows of at most ",
                   most * pack * kMostShares,
                   " elements, got ",
                   call.count);
    call.share = (packs - 1) * pack;
    call.splits = static_cast<int>((call.count + call.share - 1) / call.share);
  }
  call.fault = fault_of(current_device());
  call.op = kernel.op;
  Split split = split_of(packs, kernel.inputs);
  bool one = call.splits == 1;
  Grid grid;
  int64_t blocks = (call.rows + split.points() - 1) / split.points();
  TAEDA_CHECK(blocks <= INT32_MAX, kernel.op, ": too many rows, ", call.rows);
  grid.x = static_cast<unsigned>(blocks);
  grid.y = static_cast<unsigned>(call.splits);
  grid.threads = static_cast<unsigned>(split.lanes * split.points());
  TensorBase parts;
  if (kernel.folds && (!one || kernel.leaves_states)) {
    parts = make_tensor(kernel.op,
                        {call.rows, call.splits, kernel.state},
                        accumulated_in(stored),
                        device);
    call.parts = parts.mutable_raw_data();
  }
  enum { kWhole = 0, kParts = 1, kApply = 2 };  // of rows.cuh
  auto run = [&](int step) {
    TemplateArgument arguments[] = {kernel.policy,
                                    stored,
                                    factors,
                                    split.lanes,
                                    split.points(),
                                    split.held,
                                    pack,
                                    step};
    BlockKernel block{kernel.op, kernel.header, "rows_kernel", "RowCall"};
    run_blocks(block, arguments, grid, &call);
  };
  if (kernel.leaves_states) {
    run(kParts);
  } else if (one) {
    run(kWhole);
  } else {
    if (kernel.folds) run(kParts);
    if (!kernel.writes) grid.y = 1;
    run(kApply);
  }
  return parts;
}

Tensor in_rows(const Tensor& t) { return ops::contiguous(t); }

Tensor in_dtype(const Tensor& t, ScalarType dtype) {
  if (t.dtype() == dtype) return ops::contiguous(t);
  Tensor made = make_tensor("to", t.sizes(), dtype, t.device());
  copy_into(made, t);
  return made;
}

}  // namespace taeda::cuda
