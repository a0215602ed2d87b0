#include <taeda/aten/native/cuda/moves.h>

#include <taeda/aten/iter/iteration_space.h>
#include <taeda/aten/iter/launch.h>
#include <taeda/aten/native/cuda/blocks.h>
#include <taeda/c10/cuda/device.h>
#include <taeda/aten/native/cuda/moves_calls.cuh>

#include <algorithm>
#include <climits>

namespace taeda::cuda {

namespace {

constexpr int64_t kAccess = 16;     // bytes of the widest access
constexpr int64_t kLeastSide = 16;  // of a transposition, in elements
constexpr int64_t kMostBlocksPerProcessor = 16;

// Target and source, in bytes.
IterationSpace space_of(const TensorBase& dst, const TensorBase& src) {
  DimVector to, from;
  operand_strides(dst, dst.sizes(), to);
  operand_strides(src, dst.sizes(), from);
  const int64_t* strides[] = {to.data(), from.data()};
  return IterationSpace(dst.sizes(), strides);
}

uint64_t address_of(const void* memory) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(memory));
}

// The largest power of 2 up to an access of which all are multiples: addresses,
// strides of all dims but `dim`, and what dim `dim` has beside each other.
int64_t width_of(const IterationSpace& space,
                 int operand,
                 int dim,
                 int64_t itemsize,
                 const void* memory) {
  uint64_t all = address_of(memory) |
                 static_cast<uint64_t>(space.size(dim) * itemsize) | kAccess;
  for (int d = 0; d < space.dim(); ++d) {
    if (d != dim) all |= static_cast<uint64_t>(space.stride(operand, d));
  }
  return static_cast<int64_t>(all & (~all + 1));
}

bool fits(const IterationSpace& space) {
  if (space.dim() > kMoveDims) return false;
  for (int d = 0; d < space.dim(); ++d) {
    if (space.size(d) > INT_MAX) return false;
  }
  return true;
}

void set_dim(
    MoveCall& call, int at, const IterationSpace& space, int d, int64_t bytes) {
  call.sizes[at] = static_cast<unsigned>(space.size(d));
  call.to[at] = space.stride(0, d) / bytes;
  call.from[at] = space.stride(1, d) / bytes;
}

// Dim 0 has elements beside each other on both sides.
bool move_words(MoveCall& call, const IterationSpace& space, int64_t itemsize) {
  int64_t bytes = std::min(width_of(space, 0, 0, itemsize, call.out),
                           width_of(space, 1, 0, itemsize, call.in));
  if (bytes <= itemsize) return false;
  call.dims = space.dim();
  for (int d = 1; d < space.dim(); ++d) set_dim(call, d, space, d, bytes);
  call.sizes[0] = static_cast<unsigned>(space.size(0) * itemsize / bytes);
  call.to[0] = call.from[0] = 1;
  call.count = space.numel() * itemsize / bytes;
  int64_t most =
      kMostBlocksPerProcessor * properties_of(current_device()).multiprocessors;
  int64_t blocks = (call.count + kMoveThreads - 1) / kMoveThreads;
  Grid grid{static_cast<unsigned>(std::min(blocks, most)), 1, kMoveThreads};
  TemplateArgument arguments[] = {word_of(bytes),
                                  call.count > INT_MAX ? "Long" : "unsigned"};
  run_blocks(
      {"copy_", "moves", "move_words", "MoveCall"}, arguments, grid, &call);
  return true;
}

// Dim `other` has elements of the source beside each other, dim 0 of the
// target.
bool turn_words(MoveCall& call,
                const IterationSpace& space,
                int other,
                int64_t itemsize) {
  int64_t tile = move_tile(static_cast<int>(itemsize)), blocks = 1;
  call.dims = 2;
  set_dim(call, 0, space, 0, itemsize);
  set_dim(call, 1, space, other, itemsize);
  for (int d = 1; d < space.dim(); ++d) {
    if (d == other) continue;
    set_dim(call, call.dims++, space, d, itemsize);
    blocks *= space.size(d);
  }
  blocks *= (space.size(0) + tile - 1) / tile;
  blocks *= (space.size(other) + tile - 1) / tile;
  if (blocks > INT_MAX) return false;
  auto packed = [&](int operand, int dim, const void* memory) {
    int64_t bytes = width_of(space, operand, dim, itemsize, memory);
    return bytes == kAccess ? static_cast<int>(kAccess / itemsize) : 1;
  };
  TemplateArgument arguments[] = {
      word_of(itemsize), packed(1, other, call.in), packed(0, 0, call.out)};
  run_blocks({"copy_", "moves", "turn_words", "MoveCall"},
             arguments,
             Grid{static_cast<unsigned>(blocks), 1, kMoveThreads},
             &call);
  return true;
}

}  // namespace

const char* word_of(int64_t bytes) {
  switch (bytes) {
    case 1:
      return "unsigned char";
    case 2:
      return "unsigned short";
    case 4:
      return "unsigned";
    case 8:
      return "unsigned long long";
    default:
      return "Words16";
  }
}

bool run_move(const TensorBase& dst, const TensorBase& src) {
  auto itemsize = static_cast<int64_t>(dst.itemsize());
  IterationSpace space = space_of(dst, src);
  if (space.dim() == 0 || !fits(space) || space.stride(0, 0) != itemsize) {
    return false;
  }
  MoveCall call{};
  call.in = src.const_raw_data();
  call.out = dst.mutable_raw_data();
  if (space.stride(1, 0) == itemsize) return move_words(call, space, itemsize);
  if (itemsize >= kAccess || space.size(0) < kLeastSide) return false;
  for (int d = 1; d < space.dim(); ++d) {
    bool beside = space.stride(1, d) == itemsize;
    if (beside && space.size(d) >= kLeastSide) {
      return turn_words(call, space, d, itemsize);
    }
  }
  return false;
}

}  // namespace taeda::cuda
