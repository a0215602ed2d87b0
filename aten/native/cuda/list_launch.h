// Elementwise calls that are launched together: those of one operator for each
// entry of a list.
#pragma once

#include <taeda/aten/native/cuda/elementwise.h>
#include <taeda/aten/native/cuda/tables.h>

namespace taeda::cuda {

// Note [Lists in one launch]
// Between list_of_calls(true) and list_of_calls(false), calls whose operands
// lie linearly and which run the same program are kept (Note [Kept work]) and
// launched as rows of a table, up to kTableTensors at once. Calls may hang on
// each other, as where a tensor stands in a list twice: one that touches what a
// kept one writes, or writes what a kept one touches, is launched after it.
bool list_is_open();

struct ListedCall {
  const char* op = "";
  FunctionHandle function = nullptr;  // takes a PointwiseTable of its numbers
  int64_t numel = 0;
  int count = 0;  // of numbers
  alignas(16) unsigned char numbers[kTableNumbers][16] = {};
  struct Part {
    Storage storage;  // held until the launch
    uintptr_t begin = 0, end = 0;
  };
  Part parts[kTableLists];  // 0 is what is written

  void add(int k, const TensorBase& t, const void* memory);
};
// On the current device and stream.
void keep_in_list(ListedCall call);

}  // namespace taeda::cuda
