// Collectives of the backend "mpi".
#include <taeda/csrc/distributed/mpi/mail.h>

#include <algorithm>
#include <cstring>
#include <thread>

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
// A thread that waits looks this often before it sleeps between looks.
constexpr int kTurns = 2000;
constexpr auto kPause = std::chrono::microseconds(50);
// Between two looks for a rank that has failed.
constexpr auto kLook = std::chrono::milliseconds(2);

// Longer texts of failures are cut.
constexpr size_t kText = 1024;

class MpiChannel : public Channel {
 public:
  MpiChannel(const Place& place, Millis limit)
      : mpi_(Library::get()), place_(place) {
    comm_ = join(limit);
    mail_ = std::make_unique<Mail>(mpi_, comm_, place);
  }

  ~MpiChannel() override {
    mail_.reset();
    std::lock_guard lock(mpi_.mutex);
    int over = 0;
    if (mpi_.finalized(&over) == 0 && over == 0 && !mpi_.has_failed) {
      mpi_.free_comm(&comm_);
    }
  }

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

 private:
  size_t ranks() const { return static_cast<size_t>(place_.size); }
  std::vector<size_t> sizes_of(size_t bytes) const {
    return std::vector<size_t>(ranks(), bytes);
  }
  std::string here() const {
    return str_cat(" at rank ",
                   place_.rank,
                   " of ",
                   place_.size,
                   " in group '",
                   place_.group,
                   "': ");
  }

  // Joining.

  // A communicator of the members, of which each has told all others that it is
  // there: MPI's own functions for it have no limit of time.
  Handle join(Millis limit) {
    const int count = static_cast<int>(place_.members.size());
    greet(after(limit), limit);
    std::lock_guard lock(mpi_.mutex);
    Handle all = 0, members = 0, comm = 0;
    mpi_.check("MPI_Comm_group", mpi_.group_of(mpi_.world, &all));
    mpi_.check("MPI_Group_incl",
               mpi_.part_of(all, count, place_.members.data(), &members));
    mpi_.check("MPI_Comm_create_group",
               mpi_.create(mpi_.world, members, kHello, &comm));
    mpi_.free_group(&members);
    mpi_.free_group(&all);
    mpi_.check("MPI_Comm_set_errhandler",
               mpi_.set_handler(comm, mpi_.returns_errors));
    return comm;
  }

  void greet(TimePoint end, Millis limit) {
    const uint64_t name = std::hash<std::string>()(place_.group);
    auto told = all_pairs({reinterpret_cast<const char*>(&name), sizeof(name)},
                          mpi_.world,
                          kHello,
                          place_.members);
    const auto missing = wait_for_heads(told, end, "init_process_group");
    if (!missing.empty()) {
      fail(Fault::Backend,
           "init_process_group",
           here(),
           "timed out after ",
           static_cast<int64_t>(limit.count()),
           " ms; not there: ",
           missing);
    }
    for (int r = 0; r < place_.size; ++r) {
      uint64_t other = 0;
      std::memcpy(&other, told.came(r), sizeof(other));
      if (r != place_.rank && other != name) {
        fail(Fault::Backend,
             "init_process_group",
             here(),
             "rank ",
             r,
             " makes another group at the same time");
      }
    }
  }

  // Heads.

  // The same few bytes from each to each; requests by rank.
  struct Heads {
    std::shared_ptr<Transfer> sent, received;
    std::vector<std::vector<Handle>> pending;
    size_t bytes = 0;
    char* came(int rank) const {
      return received->bytes.data() + static_cast<size_t>(rank) * bytes;
    }
  };

  Heads all_pairs(std::string_view mine,
                  Handle comm,
                  int tag,
                  const std::vector<int>& ranks_in_comm) {
    Heads heads{
        made(mine.size()), made(mine.size() * ranks()), {}, mine.size()};
    std::copy(mine.begin(), mine.end(), heads.sent->bytes.begin());
    heads.pending.resize(ranks());
    std::lock_guard lock(mpi_.mutex);
    for (int r = 0; r < place_.size; ++r) {
      if (r == place_.rank) continue;
      const int n = static_cast<int>(mine.size());
      const int peer = ranks_in_comm.empty() ? r : ranks_in_comm[r];
      mpi_.check("MPI_Irecv",
                 mpi_.receive(heads.came(r),
                              n,
                              mpi_.byte,
                              peer,
                              tag,
                              comm,
                              &heads.pending[r].emplace_back(0)));
      mpi_.check("MPI_Isend",
                 mpi_.send(heads.sent->bytes.data(),
                           n,
                           mpi_.byte,
                           peer,
                           tag,
                           comm,
                           &heads.sent->requests.emplace_back(0)));
    }
    return heads;
  }

  // Who has not come at the end of the time, "rank 1, rank 3".
  std::string wait_for_heads(Heads& heads,
                             TimePoint end,
                             const std::string& what) {
    const bool all = look_until(end, what, [&] {
      bool done = has_ended(mpi_, heads.sent->requests);
      for (auto& pending : heads.pending)
        done = has_ended(mpi_, pending) && done;
      return done;
    });
    if (all) return "";
    mpi_.has_failed = true;
    // MPI may write to them as long as the process lives.
    new std::shared_ptr<Transfer>(heads.sent);
    new std::shared_ptr<Transfer>(heads.received);
    std::string missing;
    for (int r = 0; r < place_.size; ++r) {
      if (heads.pending[r].empty()) continue;
      missing += str_cat(missing.empty() ? "rank " : ", rank ", r);
    }
    // A head that is not taken yet is on its way to a rank that is late, too.
    return missing.empty() ? "the receiver of what was sent" : missing;
  }

  void meet(const Call& call) {
    const std::string what = describe(call.head);
    raise_if_broken(what);
    auto heads =
        all_pairs({reinterpret_cast<const char*>(&call.head), sizeof(Head)},
                  comm_,
                  static_cast<int>(Tag::Head),
                  {});
    const auto missing = wait_for_heads(heads, call.end, what);
    if (!missing.empty()) {
      break_off(str_cat(what,
                        here(),
                        "timed out after ",
                        static_cast<int64_t>(call.limit.count()),
                        " ms; not there: ",
                        missing));
      raise_if_broken("");
    }
    for (int r = 0; r < place_.size; ++r) {
      Head other;
      std::memcpy(&other, heads.came(r), sizeof(Head));
      if (r == place_.rank || other == call.head) continue;
      break_off(str_cat(
          what, here(), "rank ", r, " called ", describe(other), " instead"));
      raise_if_broken("");
    }
  }

  // Moving bytes.

  static std::shared_ptr<Transfer> made(size_t bytes) {
    auto transfer = std::make_shared<Transfer>();
    // An address is wanted for no bytes as well.
    transfer->bytes.resize(std::max<size_t>(bytes, 1));
    return transfer;
  }
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
  void combine(const Reduction& r,
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

  template <class F>
  void start(const char* what, Transfer& transfer, F&& post) {
    std::lock_guard lock(mpi_.mutex);
    mpi_.check(what, post(&transfer.requests.emplace_back(0)));
  }

  void finish(const Call& call, const std::shared_ptr<Transfer>& transfer) {
    const std::string what = describe(call.head);
    bool done = false;
    try {
      done = look_until(
          call.end, what, [&] { return has_ended(mpi_, transfer->requests); });
    } catch (...) {
      new std::shared_ptr<Transfer>(transfer);  // MPI may still write to it
      throw;
    }
    if (done) return;
    new std::shared_ptr<Transfer>(transfer);
    break_off(str_cat(what,
                      here(),
                      "timed out after ",
                      static_cast<int64_t>(call.limit.count()),
                      " ms: a rank stopped within it"));
    raise_if_broken("");
  }

  // What all ranks gave, behind each other, at every rank.
  std::string gathered(const Call& call, Span in) {
    if (in.bytes > kPiece) {
      return exchanged(
          call, std::vector<Span>(ranks(), in), sizes_of(in.bytes));
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

  // The same at the root; of no use at others.
  std::string at_root(const Call& call, Span in) {
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

  void scatter_large(const Call& call, const std::vector<char*>& in, Span out) {
    std::vector<Span> parts(ranks());
    for (size_t i = 0; i < in.size(); ++i) parts[i] = {in[i], out.bytes};
    auto sizes = sizes_of(0);
    sizes[static_cast<size_t>(call.head.root)] = out.bytes;
    take(out, exchanged(call, parts, sizes), 0);
  }

  // `in[r]` goes to rank r; what came, behind each other.
  std::string exchanged(const Call& call,
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

  void post_pieces(
      Transfer& transfer, char* data, size_t bytes, size_t rank, bool sends) {
    const int peer = static_cast<int>(rank),
              tag = static_cast<int>(Tag::Exchange);
    for (size_t at = 0; at < bytes; at += kPiece) {
      const int n = static_cast<int>(std::min(kPiece, bytes - at));
      start(sends ? "MPI_Isend" : "MPI_Irecv", transfer, [&](Handle* request) {
        return sends ? mpi_.send(
                           data + at, n, mpi_.byte, peer, tag, comm_, request)
                     : mpi_.receive(
                           data + at, n, mpi_.byte, peer, tag, comm_, request);
      });
    }
  }

  // This rank's part of the reduced whole, `part` elements; parts beyond the
  // end are filled up.
  std::string reduced_part(
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

  // Waiting and failing.

  // Calls `done` under the library's lock until it holds or the time is over.
  // Raises where this group, or another rank of it, has failed.
  template <class F>
  bool look_until(TimePoint end, const std::string& what, F&& done) {
    TimePoint next_look = Clock::now() + kLook;
    for (int turn = 0;; ++turn) {
      {
        std::lock_guard lock(mpi_.mutex);
        if (done()) return true;
      }
      if (turn < kTurns) continue;
      const TimePoint now = Clock::now();
      if (now >= end) return false;
      if (now >= next_look && comm_ != 0) {
        hear_of_failures();
        raise_if_broken(what);
        next_look = now + kLook;
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  void raise_if_broken(const std::string& what) {
    std::lock_guard lock(mutex_);
    if (reason_.empty()) return;
    fail(Fault::Backend,
         what.empty() ? reason_ : str_cat(what, here(), reason_));
  }

  // Ends what runs here with an error, and tells the others.
  void break_off(const std::string& reason) {
    {
      std::lock_guard lock(mutex_);
      if (!reason_.empty()) return;
      reason_ = reason;
    }
    mpi_.has_failed = true;
    mail_->abort(reason);
    auto& told = *new Transfer;  // who is late may take it much later
    told.bytes = reason.substr(0, kText);
    told.bytes.resize(kText, ' ');
    std::lock_guard lock(mpi_.mutex);
    for (int r = 0; r < place_.size; ++r) {
      if (r == place_.rank) continue;
      mpi_.send(told.bytes.data(),
                kText,
                mpi_.byte,
                r,
                static_cast<int>(Tag::Abort),
                comm_,
                &told.requests.emplace_back(0));
    }
  }

  void hear_of_failures() {
    std::string text(kText, ' ');
    int flag = 0, from = 0;
    {
      std::lock_guard lock(mpi_.mutex);
      const int tag = static_cast<int>(Tag::Abort);
      Status status;
      if (mpi_.probe(mpi_.any_source, tag, comm_, &flag, &status) != 0) return;
      if (flag == 0) return;
      from = mpi_.source_of(status);
      mpi_.check("MPI_Recv",
                 mpi_.receive_now(
                     text.data(), kText, mpi_.byte, from, tag, comm_, &status));
    }
    text.erase(text.find_last_not_of(' ') + 1);
    mpi_.has_failed = true;
    const std::string reason = str_cat("rank ", from, " has failed: ", text);
    {
      std::lock_guard lock(mutex_);
      if (reason_.empty()) reason_ = reason;
    }
    mail_->abort(reason);
  }

  Library& mpi_;
  const Place place_;
  std::mutex mutex_;  // guards reason_
  std::string reason_;
  Handle comm_ = 0;
  std::unique_ptr<Mail> mail_;
};

}  // namespace

}  // namespace taeda::distributed::mpi

namespace taeda::distributed {

std::unique_ptr<Channel> open_mpi_channel(const Place& place, Millis limit) {
  return std::make_unique<mpi::MpiChannel>(place, limit);
}

}  // namespace taeda::distributed
