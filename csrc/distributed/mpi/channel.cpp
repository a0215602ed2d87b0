// Collectives of the backend "mpi".
#include <taeda/csrc/distributed/mpi/exchange.h>

#include <algorithm>

namespace taeda::distributed::mpi {

namespace {

// Note [Collectives over MPI]
// A collective begins with heads: every rank sends its own to each other one
// and compares what comes. So ranks that disagree raise and name both calls,
// and on a time-out it is known who has not come. What follows are MPI's own
// collectives without blocking, which are asked until their end or the limit.
// They cannot be cancelled: buffers are copies that outlive a failure, after
// which the group is of no use. Reductions exchange parts and combine them
// here, in order of rank, so every dtype and operation is there and all ranks
// hold the same bits.

// Up to this size every rank gathers everything and reduces it itself.
constexpr size_t kSmall = 16 << 10;

class MpiChannel : public Channel, private Exchange {
 public:
  MpiChannel(const Place& place, Millis limit) : Exchange(place, limit) {}

  void all_reduce(const Call& call,
                  const Reduction& r,
                  void* data,
                  size_t n) override {
    meet(call);
    const size_t size = element_size(r.dtype), bytes = n * size;
    if (bytes <= kSmall) {
      const std::string all = gathered(call, {static_cast<char*>(data), bytes});
      combine(r, data, all, n);
      return;
    }
    const size_t part = (n + ranks() - 1) / ranks();
    std::string mine = reduced_part(call, r, data, n, part);
    const std::string all = gathered(call, {mine.data(), part * size});
    std::memcpy(data, all.data(), bytes);
  }

  void reduce(const Call& call,
              const Reduction& r,
              void* data,
              size_t n) override {
    meet(call);
    const size_t size = element_size(r.dtype), bytes = n * size;
    const bool here = call.head.root == place_.rank;
    const bool small = bytes <= kSmall;
    const size_t part = (n + ranks() - 1) / ranks();
    std::string mine = small ? std::string(static_cast<char*>(data), bytes)
                             : reduced_part(call, r, data, n, part);
    const std::string all = at_root(call, {mine.data(), mine.size()});
    if (!here || n == 0) return;
    if (small) return combine(r, data, all, n);
    std::memcpy(data, all.data(), bytes);
  }

  void broadcast(const Call& call, Span data) override {
    meet(call);
    auto transfer = made(data.bytes);
    if (call.head.root == place_.rank) fill(*transfer, data);
    for (size_t at = 0; at < data.bytes; at += kPiece) {
      const int n = static_cast<int>(std::min(kPiece, data.bytes - at));
      start("MPI_Ibcast", *transfer, [&](Handle* request) {
        return mpi_.broadcast(transfer->bytes.data() + at,
                              n,
                              mpi_.byte,
                              call.head.root,
                              comm_,
                              request);
      });
    }
    finish(call, transfer);
    if (call.head.root != place_.rank) take(data, transfer->bytes, 0);
  }

  void all_gather(const Call& call,
                  Span in,
                  const std::vector<char*>& out) override {
    meet(call);
    part(gathered(call, in), in.bytes, out);
  }

  void gather(const Call& call,
              Span in,
              const std::vector<char*>& out) override {
    meet(call);
    const std::string all = at_root(call, in);
    if (!out.empty()) part(all, in.bytes, out);
  }

  void scatter(const Call& call,
               const std::vector<char*>& in,
               Span out) override {
    meet(call);
    if (out.bytes > kPiece) return scatter_large(call, in, out);
    auto transfer = made(out.bytes * (in.size() + 1));
    for (size_t i = 0; i < in.size() && out.bytes > 0; ++i) {
      std::memcpy(transfer->bytes.data() + i * out.bytes, in[i], out.bytes);
    }
    char* mine = transfer->bytes.data() + in.size() * out.bytes;
    const int n = static_cast<int>(out.bytes);
    start("MPI_Iscatter", *transfer, [&](Handle* request) {
      return mpi_.scatter(transfer->bytes.data(),
                          n,
                          mpi_.byte,
                          mine,
                          n,
                          mpi_.byte,
                          call.head.root,
                          comm_,
                          request);
    });
    finish(call, transfer);
    take(out, transfer->bytes, in.size() * out.bytes);
  }

  void reduce_scatter(const Call& call,
                      const Reduction& r,
                      const std::vector<char*>& in,
                      void* out,
                      size_t n) override {
    meet(call);
    const size_t bytes = n * element_size(r.dtype);
    std::vector<Span> parts;
    for (char* each : in) parts.push_back({each, bytes});
    const std::string came = exchanged(call, parts, sizes_of(bytes));
    combine(r, out, came, n);
  }

  void all_to_all(const Call& call,
                  const std::vector<Span>& in,
                  const std::vector<Span>& out) override {
    meet(call);
    std::vector<size_t> sizes;
    for (const Span& s : out) sizes.push_back(s.bytes);
    const std::string came = exchanged(call, in, sizes);
    size_t at = 0;
    for (const Span& s : out) {
      take(s, came, at);
      at += s.bytes;
    }
  }

  void barrier(const Call& call) override {
    meet(call);
    auto transfer = made(0);
    start("MPI_Ibarrier", *transfer, [&](Handle* request) {
      return mpi_.barrier(comm_, request);
    });
    finish(call, transfer);
  }

  void send(std::shared_ptr<Work> work,
            Span data,
            int to,
            uint64_t tag,
            TimePoint end) override {
    mail_->send(std::move(work), data, to, tag, end);
  }
  void receive(std::shared_ptr<Work> work,
               Span data,
               int from,
               uint64_t tag,
               TimePoint end) override {
    mail_->receive(std::move(work), data, from, tag, end);
  }
  void await(Work& work, Millis limit) override { mail_->await(work, limit); }

  void abort(const std::string& reason) override { break_off(reason); }
  const char* name() const override { return "mpi"; }
};

}  // namespace

}  // namespace taeda::distributed::mpi

namespace taeda::distributed {

std::unique_ptr<Channel> open_mpi_channel(const Place& place, Millis limit) {
  return std::make_unique<mpi::MpiChannel>(place, limit);
}

}  // namespace taeda::distributed
