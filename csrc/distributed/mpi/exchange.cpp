#include <taeda/csrc/distributed/mpi/exchange.h>

#include <algorithm>

namespace taeda::distributed::mpi {

std::string Exchange::gathered(const Call& call, Span in) {
  if (in.bytes > kPiece) {
    return exchanged(call, std::vector<Span>(ranks(), in), sizes_of(in.bytes));
  }
  const size_t whole = in.bytes * ranks();
  auto transfer = made(whole + in.bytes);
  char* mine = transfer->bytes.data() + whole;
  if (in.bytes > 0) std::memcpy(mine, in.data, in.bytes);
  const int n = static_cast<int>(in.bytes);
  start("MPI_Iallgather", *transfer, [&](Handle* request) {
    return mpi_.all_gather(mine,
                           n,
                           mpi_.byte,
                           transfer->bytes.data(),
                           n,
                           mpi_.byte,
                           comm_,
                           request);
  });
  finish(call, transfer);
  return std::move(transfer->bytes);
}

std::string Exchange::at_root(const Call& call, Span in) {
  const bool is_root = call.head.root == place_.rank;
  if (in.bytes > kPiece) {
    std::vector<Span> parts(ranks());
    parts[static_cast<size_t>(call.head.root)] = in;
    return exchanged(call, parts, sizes_of(is_root ? in.bytes : 0));
  }
  const size_t whole = is_root ? in.bytes * ranks() : 0;
  auto transfer = made(whole + in.bytes);
  char* mine = transfer->bytes.data() + whole;
  if (in.bytes > 0) std::memcpy(mine, in.data, in.bytes);
  const int n = static_cast<int>(in.bytes);
  start("MPI_Igather", *transfer, [&](Handle* request) {
    return mpi_.gather(mine,
                       n,
                       mpi_.byte,
                       transfer->bytes.data(),
                       n,
                       mpi_.byte,
                       call.head.root,
                       comm_,
                       request);
  });
  finish(call, transfer);
  return std::move(transfer->bytes);
}

void Exchange::scatter_large(const Call& call,
                             const std::vector<char*>& in,
                             Span out) {
  std::vector<Span> parts(ranks());
  for (size_t i = 0; i < in.size(); ++i) parts[i] = {in[i], out.bytes};
  auto sizes = sizes_of(0);
  sizes[static_cast<size_t>(call.head.root)] = out.bytes;
  take(out, exchanged(call, parts, sizes), 0);
}

std::string Exchange::exchanged(const Call& call,
                                const std::vector<Span>& in,
                                const std::vector<size_t>& sizes) {
  size_t sent = 0, total = 0;
  for (const Span& s : in) sent += s.bytes;
  for (size_t n : sizes) total += n;
  auto transfer = made(total + sent);
  char* came = transfer->bytes.data();
  char* to_send = came + total;
  for (size_t r = 0; r < in.size(); ++r) {
    if (in[r].bytes > 0) std::memcpy(to_send, in[r].data, in[r].bytes);
    post_pieces(*transfer, came, sizes[r], r, /*sends=*/false);
    post_pieces(*transfer, to_send, in[r].bytes, r, /*sends=*/true);
    came += sizes[r];
    to_send += in[r].bytes;
  }
  finish(call, transfer);
  return std::move(transfer->bytes);
}

void Exchange::post_pieces(
    Transfer& transfer, char* data, size_t bytes, size_t rank, bool sends) {
  const int peer = static_cast<int>(rank),
            tag = static_cast<int>(Tag::Exchange);
  for (size_t at = 0; at < bytes; at += kPiece) {
    const int n = static_cast<int>(std::min(kPiece, bytes - at));
    start(sends ? "MPI_Isend" : "MPI_Irecv", transfer, [&](Handle* request) {
      return sends
                 ? mpi_.send(data + at, n, mpi_.byte, peer, tag, comm_, request)
                 : mpi_.receive(
                       data + at, n, mpi_.byte, peer, tag, comm_, request);
    });
  }
}

void Exchange::combine(const Reduction& r,
                       void* out,
                       const std::string& all,
                       size_t n) {
  if (n == 0) return;
  std::vector<const void*> sources;
  for (size_t i = 0; i < ranks(); ++i) {
    sources.push_back(all.data() + i * n * element_size(r.dtype));
  }
  distributed::reduce(r, out, sources.data(), sources.size(), n);
}

std::string Exchange::reduced_part(
    const Call& call, const Reduction& r, void* data, size_t n, size_t part) {
  const size_t size = element_size(r.dtype);
  auto length = [&](size_t rank) {
    const size_t begin = std::min(n, rank * part);
    return std::min(n, begin + part) - begin;
  };
  std::vector<Span> parts;
  for (size_t rank = 0; rank < ranks(); ++rank) {
    char* begin = static_cast<char*>(data) + std::min(n, rank * part) * size;
    parts.push_back({begin, length(rank) * size});
  }
  const size_t mine = length(static_cast<size_t>(place_.rank));
  const std::string came = exchanged(call, parts, sizes_of(mine * size));
  std::string result(part * size, '\0');
  combine(r, result.data(), came, mine);
  return result;
}

}  // namespace taeda::distributed::mpi
