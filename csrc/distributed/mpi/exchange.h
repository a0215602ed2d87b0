// How bytes move between the ranks of a circle.
#pragma once

#include <taeda/csrc/distributed/mpi/circle.h>

#include <cstring>

namespace taeda::distributed::mpi {

// Every function is called by all ranks, after they have met.
class Exchange : protected Circle {
 protected:
  using Circle::Circle;

  static void fill(Transfer& transfer, Span from) {
    if (from.bytes > 0)
      std::memcpy(transfer.bytes.data(), from.data, from.bytes);
  }
  static void take(Span to, const std::string& from, size_t at) {
    if (to.bytes > 0) std::memcpy(to.data, from.data() + at, to.bytes);
  }
  static void part(const std::string& all,
                   size_t bytes,
                   const std::vector<char*>& out) {
    for (size_t i = 0; i < out.size(); ++i)
      take({out[i], bytes}, all, i * bytes);
  }
  std::vector<size_t> sizes_of(size_t bytes) const {
    return std::vector<size_t>(ranks(), bytes);
  }

  // What all ranks gave, behind each other, at every rank.
  std::string gathered(const Call& call, Span in);
  // The same at the root; of no use at others.
  std::string at_root(const Call& call, Span in);
  void scatter_large(const Call& call, const std::vector<char*>& in, Span out);
  // `in[r]` goes to rank r; what came, behind each other.
  std::string exchanged(const Call& call,
                        const std::vector<Span>& in,
                        const std::vector<size_t>& sizes);
  // Combines what ranks gave, behind each other, in order of rank.
  void combine(const Reduction& r, void* out, const std::string& all, size_t n);
  // This rank's part of the reduced whole, `part` elements; parts beyond the
  // end are filled up.
  std::string reduced_part(
      const Call& call, const Reduction& r, void* data, size_t n, size_t part);

 private:
  void post_pieces(
      Transfer& transfer, char* data, size_t bytes, size_t rank, bool sends);
};

}  // namespace taeda::distributed::mpi
