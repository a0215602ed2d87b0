// Reductions: Note [Reductions on a device] in reduce.cuh.
#include <taeda/aten/native/cuda/call_text.h>
#include <taeda/aten/native/cuda/launchers.h>
#include <taeda/aten/native/cuda/program.h>
#include <taeda/aten/native/cuda/texts.h>
#include <taeda/c10/core/allocator.h>
#include <taeda/c10/util/format.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdlib>

namespace taeda::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int64_t kBlocksPerProcessor = 8;
constexpr int64_t kLeastShare = 4096;  // elements of a split point
constexpr int kMostSplits = 1024;
constexpr int kMostScalars = 4;

// The call's parameter, as in reduce.cuh.
struct ReduceCall {
  int64_t points = 0, count = 0;
  const void* in = nullptr;
  void* out = nullptr;
  void* partial = nullptr;
  unsigned* tickets = nullptr;
  int splits = 1;
  int kept_dims = 0, reduced_dims = 0;
  int kept_sizes[kMaxDims] = {};
  int reduced_sizes[kMaxDims] = {};
  int64_t kept_strides[kMaxDims] = {};
  int64_t reduced_strides[kMaxDims] = {};
  alignas(16) unsigned char numbers[kMostScalars][16] = {};
};

// How threads share the work.
struct Shape {
  int lanes = 1, points = 1, pack = 1;
  bool columns = false;
};

IterationSpace side(const TensorBase& self, uint64_t mask, bool reduced) {
  DimVector sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (((mask >> d) & 1) != static_cast<uint64_t>(reduced)) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d] *
                      static_cast<int64_t>(self.itemsize()));
  }
  const int64_t* list[] = {strides.data()};
  // Points keep their order: they are written one behind the other.
  return IterationSpace(
      sizes, ArrayRef<const int64_t*>(list, 1), /*keep_order=*/!reduced);
}

int pack_of(const TensorBase& self,
            const IterationSpace& kept,
            const IterationSpace& reduced) {
  auto itemsize = static_cast<int64_t>(self.itemsize());
  int64_t pack = std::max<int64_t>(1, 16 / itemsize);
  bool row = reduced.dim() == 1 && reduced.stride(0, 0) == itemsize &&
             reduced.numel() >= pack;
  auto start = reinterpret_cast<intptr_t>(self.const_raw_data());
  bool aligned = start % (pack * itemsize) == 0;
  for (int d = 0; d < kept.dim(); ++d) {
    aligned = aligned && kept.stride(0, d) % (pack * itemsize) == 0;
  }
  return row && aligned ? static_cast<int>(pack) : 1;
}

Shape shape_of(const TensorBase& self,
               const IterationSpace& kept,
               const IterationSpace& reduced) {
  Shape shape;
  int64_t count = reduced.numel();
  shape.columns =
      kept.numel() > 1 && count > 1 && kept.dim() > 0 && reduced.dim() > 0 &&
      std::llabs(kept.stride(0, 0)) < std::llabs(reduced.stride(0, 0));
  if (shape.columns) {
    shape.points = kWarp;
    shape.lanes = kThreads / kWarp;
    return shape;
  }
  shape.pack = pack_of(self, kept, reduced);
  auto steps = static_cast<uint64_t>(std::max<int64_t>(1, count / shape.pack));
  shape.lanes =
      steps >= 4 * kThreads
          ? kThreads
          : static_cast<int>(std::bit_floor(std::min<uint64_t>(steps, kWarp)));
  shape.points = kThreads / shape.lanes;
  return shape;
}

// Blocks for each group of points.
int splits_of(const Shape& shape, int64_t points, int64_t count) {
  int64_t groups = (points + shape.points - 1) / shape.points;
  int64_t wanted =
      kBlocksPerProcessor * properties_of(current_device()).multiprocessors;
  int64_t splits =
      std::min(wanted / std::max<int64_t>(groups, 1),
               count / (kLeastShare * std::max(1, shape.lanes / kWarp)));
  return static_cast<int>(std::clamp<int64_t>(splits, 1, kMostSplits));
}

void set_side(const IterationSpace& space,
              int64_t itemsize,
              int* dims,
              int* sizes,
              int64_t* strides,
              const char* op) {
  TAEDA_CHECK_AS(NotImplemented,
                 space.dim() <= kMaxDims,
                 op,
                 ": CUDA kernels take at most ",
                 kMaxDims,
                 " dims that do not lie behind each other, got ",
                 space.dim());
  *dims = space.dim();
  for (int d = 0; d < space.dim(); ++d) {
    TAEDA_CHECK_AS(NotImplemented,
                   d + 1 == space.dim() || space.size(d) <= INT_MAX,
                   op,
                   ": a dim of ",
                   space.size(d),
                   " elements is too long for a CUDA kernel");
    sizes[d] = static_cast<int>(space.size(d));
    strides[d] = space.stride(0, d) / itemsize;
  }
}

std::string text_of_call(const ReduceOp& op,
                         const ReducePlan& plan,
                         const Shape& shape,
                         ScalarType stored,
                         ScalarType out,
                         size_t scalars) {
  std::string text = "#include <taeda/aten/native/cuda/reduce.cuh>\n";
  text += "namespace taeda {\n";
  text += text_of(op.kernel);
  text += fill_template(
      R"(
extern "C" __global__ void kernel(ReduceCall call) {{
  using R = Reduction<{fold}_{kind}_fold<{element}>, {stored}, {out},
                      {lanes}, {points}, {columns}, {pack}>;
  alignas(16) __shared__ unsigned char memory[{threads} * sizeof(R::T)];
  R::T scalars[{most}];
)",
      {{"fold", op.kernel},
       {"kind", kind_of(plan.types.compute)},
       {"element", device_type(type_of(plan.types.compute))},
       {"stored", device_type(stored)},
       {"out", device_type(out)},
       {"lanes", str_cat(shape.lanes)},
       {"points", str_cat(shape.points)},
       {"columns", shape.columns ? "true" : "false"},
       {"pack", str_cat(shape.pack)},
       {"threads", str_cat(kThreads)},
       {"most", str_cat(std::max<size_t>(scalars, 1))}});
  for (size_t i = 0; i < scalars; ++i) {
    text += message(
        "  scalars[{}] = *reinterpret_cast<const R::T*>(call.numbers[{}]);\n",
        i,
        i);
  }
  return text + "  R::run(call, scalars, memory);\n}\n}  // namespace taeda\n";
}

// Memory for the parts of split points, and their tickets, which begin at 0.
struct Scratch {
  DataPtr memory;
  ~Scratch() {
    if (memory.deleter != nullptr) memory.deleter(memory.context, 0);
  }
};
DataPtr scratch(ReduceCall& call, int64_t groups, size_t element) {
  size_t parts = static_cast<size_t>(call.points * call.splits) * element;
  parts = (parts + 15) / 16 * 16;
  size_t tickets = static_cast<size_t>(groups) * sizeof(unsigned);
  DataPtr memory = allocator_for(DeviceType::CUDA).allocate(parts + tickets);
  call.partial = memory.data;
  call.tickets =
      reinterpret_cast<unsigned*>(static_cast<char*>(memory.data) + parts);
  check(driver().set_bytes(reinterpret_cast<Address>(call.tickets),
                           0,
                           tickets,
                           handle_of(current_stream())),
        "cuMemsetD8Async");
  return memory;
}

}  // namespace

void launch_reduce(const ReduceOp& op,
                   const ReducePlan& plan,
                   const TensorBase& self,
                   const TensorBase& out,
                   ArrayRef<Scalar> scalars) {
  DeviceGuard guard(out.device().index);
  IterationSpace kept = side(self, plan.mask, false);
  IterationSpace reduced = side(self, plan.mask, true);
  auto itemsize = static_cast<int64_t>(self.itemsize());
  ReduceCall call;
  call.points = out.numel();
  call.count = reduced.numel();
  call.in = self.const_raw_data();
  call.out = out.mutable_raw_data();
  set_side(kept,
           itemsize,
           &call.kept_dims,
           call.kept_sizes,
           call.kept_strides,
           op.name);
  set_side(reduced,
           itemsize,
           &call.reduced_dims,
           call.reduced_sizes,
           call.reduced_strides,
           op.name);
  Shape shape = shape_of(self, kept, reduced);
  ScalarType element = type_of(plan.types.compute);
  TAEDA_INTERNAL_ASSERT(scalars.size() <= kMostScalars, op.name);
  for (size_t i = 0; i < scalars.size(); ++i) {
    scalars[i].store(element, call.numbers[i]);
  }
  call.splits = splits_of(shape, call.points, call.count);
  int64_t groups = (call.points + shape.points - 1) / shape.points;
  Scratch parts;
  use_context();
  if (call.splits > 1)
    parts.memory = scratch(call, groups, element_size(element));
  ProgramKey key;
  key.formula = op.tables[0];
  for (int part : {static_cast<int>(plan.types.compute),
                   static_cast<int>(self.dtype()),
                   static_cast<int>(out.dtype()),
                   std::countr_zero(static_cast<unsigned>(shape.lanes)),
                   shape.pack,
                   shape.columns ? 1 : 0}) {
    key.add(part);
  }
  FunctionHandle function = program(op.kernel, key, [&] {
    return text_of_call(
        op, plan, shape, self.dtype(), out.dtype(), scalars.size());
  });
  TAEDA_CHECK(groups <= INT_MAX, op.name, ": too many results for one launch");
  Grid grid;
  grid.x = static_cast<unsigned>(groups);
  grid.y = static_cast<unsigned>(call.splits);
  grid.threads = static_cast<unsigned>(shape.lanes * shape.points);
  launch(op.name, function, grid, &call);
}

}  // namespace taeda::cuda
