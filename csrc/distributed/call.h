// What one rank asks of its group, as the others can compare it.
#pragma once

#include <taeda/csrc/distributed/error.h>
#include <taeda/csrc/distributed/reduce.h>

#include <array>

namespace taeda::distributed {

enum class Kind : uint8_t {
  None,
  AllReduce,
  Broadcast,
  Reduce,
  AllGather,
  Gather,
  Scatter,
  ReduceScatter,
  AllToAll,
  Barrier,
  Send,
  Receive
};
const char* name_of(Kind kind);

// Ranks that are in one collective have equal heads. Compared byte by byte, so
// there is no padding.
struct Head {
  uint64_t sequence = 0;
  uint64_t bytes = 0;  // of each rank; 0 where ranks may differ
  int32_t root = -1;
  Kind kind = Kind::None;
  ScalarType dtype = kByte;
  ReduceOp op = ReduceOp::Sum;
  uint8_t unused = 0;

  bool operator==(const Head&) const = default;
};
static_assert(sizeof(Head) == 24);
std::string describe(const Head& head);

struct Call {
  Head head;
  TimePoint end;
  Millis limit;
};

struct Span {
  char* data = nullptr;
  size_t bytes = 0;
};

}  // namespace taeda::distributed
