// What the memory checker says of an access; see Note [Checked memory].
#include "emulator.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace emulator {

namespace {

std::string block_text(size_t bytes) {
  return "a block of " + std::to_string(bytes) + " bytes";
}

// Where an address lies among the blocks that were given away.
std::string place_of(Address at) {
  const auto& blocks = Arena::get().blocks;
  auto next = blocks.upper_bound(at);
  if (next == blocks.begin()) return "before all blocks";
  auto [begin, bytes] = *std::prev(next);
  size_t place = at - begin;
  if (place < bytes) {
    return "at byte " + std::to_string(place) + " of " + block_text(bytes);
  }
  constexpr size_t kNear = 4096;
  if (place - bytes < kNear) {
    return std::to_string(place - bytes) + " bytes behind " + block_text(bytes);
  }
  return "in no block: freed, or never given away";
}

std::string text_of(const std::string& kernel, const BadAccess& a) {
  const CheckedMemory& checked = Arena::get().checked;
  const unsigned char* states = checked.states + (a.at - checked.begin);
  size_t first = 0;  // byte that is wrong
  ByteState least = a.writes ? kTaken : kWritten;
  while (first + 1 < a.bytes && states[first] >= least) ++first;
  bool unwritten = !a.writes && states[first] == kTaken;
  return kernel + ", block (" + std::to_string(a.block_x) + ", " +
         std::to_string(a.block_y) + "), thread " + std::to_string(a.thread) +
         (a.writes ? " writes " : " reads ") + std::to_string(a.bytes) +
         " bytes " + place_of(a.at + first) +
         (unwritten ? ", which nothing has written" : "");
}

}  // namespace

// Of one kernel the first is enough: its other threads do the same.
void Machine::report(const BadAccess& access) {
  if (reported) return;
  reported = true;
  std::string text = text_of(running, access);
  std::fprintf(stderr, "emulator: %s\n", text.c_str());
  if (const char* file = std::getenv("TAEDA_EMULATOR_REPORTS")) {
    std::ofstream(file, std::ios::app) << text << "\n";
  }
  if (found.empty()) found = text;
}

Result Machine::waited(Result status) {
  if (status != 0 || found.empty()) return status;
  failure = "an illegal memory access was encountered: " + found;
  found.clear();
  return kNotMapped;
}

bool touch(const void* p, size_t bytes, bool writes) {
  Arena& arena = Arena::get();
  auto address = reinterpret_cast<Address>(p);
  auto refuse = [&] {
    Machine::get().report({address, bytes, writes, 0, 0, 0});
    return false;
  };
  if (!arena.holds(address)) return refuse();
  unsigned char* states =
      arena.checked.states + (address - arena.checked.begin);
  unsigned char least = writes ? kTaken : kWritten;
  for (size_t i = 0; i < bytes; ++i) {
    if (states[i] < least) return refuse();
  }
  if (writes) std::memset(states, kWritten, bytes);
  return true;
}

}  // namespace emulator
