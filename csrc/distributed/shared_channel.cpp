#include <taeda/csrc/distributed/mailboxes.h>
#include <taeda/csrc/distributed/segment.h>

#include <algorithm>
#include <cstring>

namespace taeda::distributed {

namespace {

// Messages up to this size are read whole by all ranks, in one phase.
constexpr size_t kSmall = 16 * 1024;
constexpr size_t kLine = 64;
// From this size on tensors are read where they are.
constexpr size_t kDirect = 256 * 1024;
// Bytes that are read at once to be reduced: all ranks' lie in the second
// cache.
constexpr size_t kBlock = 64 * 1024;

void copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

class SharedChannel : public Channel {
 public:
  explicit SharedChannel(std::unique_ptr<Segment> segment)
      : segment_(std::move(segment)),
        mail_(*segment_),
        rank_(segment_->rank()),
        size_(segment_->size()),
        slot_size_(segment_->slot_size()) {}

  void all_reduce(const Call& call,
                  const Reduction& r,
                  void* data,
                  size_t n) override {
    Inside inside(*this, call);
    const size_t item = element_size(r.dtype);
    auto* at = static_cast<char*>(data);
    if (n * item <= kSmall) {
      copy(open_slot(), at, n * item);
      post();
      distributed::reduce(r, at, all_slots(0), count(), n);
      finish();
      return;
    }
    if (is_direct(n * item)) return all_reduce_directly(r, at, n);
    const size_t most = slot_size_ / item;
    for (size_t done = 0; done < n; done += most) {
      reduce_chunk(r, at + done * item, std::min(most, n - done));
    }
  }

  void broadcast(const Call& call, Span data) override {
    Inside inside(*this, call);
    if (is_direct(data.bytes)) {
      publish({data.data});
      const int root = call.head.root;
      if (root != rank_) read(root, data.data, address(root, 0), data.bytes);
      return finish_together();
    }
    in_steps(data.bytes, slot_size_, [&](size_t at, size_t n) {
      if (call.head.root == rank_) {
        copy(open_slot(), data.data + at, n);
        post();
      } else {
        copy(data.data + at, peer(call.head.root), n);
      }
      finish();
    });
  }

  void reduce(const Call& call,
              const Reduction& r,
              void* data,
              size_t n) override {
    Inside inside(*this, call);
    const size_t item = element_size(r.dtype);
    auto* values = static_cast<char*>(data);
    in_steps(n * item, slot_size_, [&](size_t at, size_t bytes) {
      if (call.head.root == rank_) {
        own_ = values + at;
        distributed::reduce(r, own_, all_slots(0), count(), bytes / item);
        own_ = nullptr;
      } else {
        copy(open_slot(), values + at, bytes);
        post();
      }
      finish();
    });
  }

  void all_gather(const Call& call,
                  Span in,
                  const std::vector<char*>& out) override {
    Inside inside(*this, call);
    copy(out[rank_], in.data, in.bytes);
    if (is_direct(in.bytes)) {
      publish({in.data});
      for_others([&](int r) { read(r, out[r], address(r, 0), in.bytes); });
      return finish_together();
    }
    in_steps(in.bytes, slot_size_, [&](size_t at, size_t n) {
      copy(open_slot(), in.data + at, n);
      post();
      for_others([&](int r) { copy(out[r] + at, peer(r), n); });
      finish();
    });
  }

  void gather(const Call& call,
              Span in,
              const std::vector<char*>& out) override {
    Inside inside(*this, call);
    const bool is_root = call.head.root == rank_;
    if (is_root) copy(out[rank_], in.data, in.bytes);
    in_steps(in.bytes, slot_size_, [&](size_t at, size_t n) {
      if (is_root) {
        for_others([&](int r) { copy(out[r] + at, peer(r), n); });
      } else {
        copy(open_slot(), in.data + at, n);
        post();
      }
      finish();
    });
  }

  void scatter(const Call& call,
               const std::vector<char*>& in,
               Span out) override {
    Inside inside(*this, call);
    const int root = call.head.root;
    if (root == rank_) copy(out.data, in[rank_], out.bytes);
    in_steps(out.bytes, part(1), [&](size_t at, size_t n) {
      if (root == rank_) {
        char* slot = open_slot();
        for_others([&](int r) { copy(slot + part(1) * r, in[r] + at, n); });
        post();
      } else {
        copy(out.data + at, peer(root) + part(1) * rank_, n);
      }
      finish();
    });
  }

  void reduce_scatter(const Call& call,
                      const Reduction& r,
                      const std::vector<char*>& in,
                      void* out,
                      size_t n) override {
    Inside inside(*this, call);
    const size_t item = element_size(r.dtype);
    const size_t room = part(item);
    auto* result = static_cast<char*>(out);
    if (is_direct(n * item)) {
      publish(in);
      std::vector<uint64_t> from(count());
      for_others([&](int o) { from[o] = address(o, rank_); });
      reduce_directly(r, result, in[rank_], from, n);
      return finish_together();
    }
    in_steps(n * item, room, [&](size_t at, size_t bytes) {
      char* slot = open_slot();
      for_others([&](int to) { copy(slot + room * to, in[to] + at, bytes); });
      post();
      own_ = in[rank_] + at;
      const auto* parts = all_slots(room * rank_);
      distributed::reduce(r, result + at, parts, count(), bytes / item);
      own_ = nullptr;
      finish();
    });
  }

  void all_to_all(const Call& call,
                  const std::vector<Span>& in,
                  const std::vector<Span>& out) override {
    Inside inside(*this, call);
    const size_t longest = exchange_sizes(in, out);
    copy(out[rank_].data, in[rank_].data, out[rank_].bytes);
    for (size_t at = 0; at < longest; at += part(1)) {
      auto piece = [&](const Span& s) {
        return s.bytes > at ? std::min(part(1), s.bytes - at) : 0;
      };
      char* slot = open_slot();
      for_others([&](int r) {
        copy(slot + part(1) * r, in[r].data + at, piece(in[r]));
      });
      post();
      for_others([&](int r) {
        copy(out[r].data + at, peer(r) + part(1) * rank_, piece(out[r]));
      });
      finish();
    }
  }

  void barrier(const Call& call) override {
    Inside inside(*this, call);
    open_slot();
    post();
    for_others([&](int r) { peer(r); });
    finish();
  }

  void send(std::shared_ptr<Work> work,
            Span data,
            int to,
            uint64_t tag,
            TimePoint end) override {
    mail_.send(std::move(work), data, to, tag, end);
  }
  void receive(std::shared_ptr<Work> work,
               Span data,
               int from,
               uint64_t tag,
               TimePoint end) override {
    mail_.receive(std::move(work), data, from, tag, end);
  }
  void await(Work& work, Millis limit) override { mail_.await(work, limit); }
  void abort(const std::string& reason) override {
    segment_->set_aborted(reason);
  }
  const char* name() const override { return "shared memory"; }

 private:
  // For as long as a collective runs. One that fails has left the counters in
  // disorder, so that no later one can run.
  struct Inside {
    Inside(SharedChannel& c, const Call& call) : channel(c) {
      c.call_ = &call;
      c.segment_->mine().standing = call.head.sequence * 512 +
                                    static_cast<uint64_t>(call.head.kind) * 2 +
                                    1;
      c.check(/*ready=*/[] { return false; }, /*quick=*/true);
      failed = std::uncaught_exceptions();
    }
    ~Inside() {
      if (std::uncaught_exceptions() > failed) {
        channel.segment_->set_broken();
      } else {
        channel.segment_->mine().standing.fetch_sub(1);
      }
      channel.own_ = nullptr;
      channel.call_ = nullptr;
    }
    SharedChannel& channel;
    int failed = 0;
  };

  size_t count() const { return static_cast<size_t>(size_); }

  template <class F>
  void for_others(F&& f) const {
    // Each rank begins at its neighbour, so that not all read the same slot.
    for (int i = 1; i < size_; ++i) f((rank_ + i) % size_);
  }

  // At least one step, so that ranks also meet over nothing.
  template <class F>
  static void in_steps(size_t bytes, size_t most, F&& f) {
    size_t at = 0;
    do {
      f(at, std::min(most, bytes - at));
      at += most;
    } while (at < bytes);
  }

  // A rank's part of a slot, whole elements.
  size_t part(size_t item) const {
    const size_t unit = std::max(item, kLine);
    const size_t bytes = slot_size_ / count() / unit * unit;
    TAEDA_CHECK(bytes > 0, name_of(call_->head.kind), ": too many ranks");
    return bytes;
  }

  // Steps, see Note [Steps in shared memory] ----------------------------------

  char* open_slot() {
    await([&] {
      for (int r = 0; r < size_; ++r) {
        if (segment_->state(r).finished.load(std::memory_order_acquire) +
                kDepth <=
            step_) {
          return false;
        }
      }
      return true;
    });
    return segment_->slot(rank_, step_);
  }

  void post() {
    RankState& me = segment_->mine();
    me.heads[step_ % kDepth] = call_->head;
    me.posted.store(step_ + 1, std::memory_order_release);
    segment_->ring_bells();
  }

  const char* peer(int r) {
    const RankState& other = segment_->state(r);
    await([&] { return other.posted.load(std::memory_order_acquire) > step_; });
    const Head& head = other.heads[step_ % kDepth];
    if (!(head == call_->head)) {
      raise(str_cat("rank ", r, " called ", describe(head), " instead"));
    }
    return segment_->slot(r, step_);
  }

  void finish() {
    segment_->mine().finished.store(step_ + 1, std::memory_order_release);
    segment_->ring_bells();
    step_ += 1;
  }

  const void* const* all_slots(size_t offset) {
    sources_.resize(count());
    for (int r = 0; r < size_; ++r) {
      sources_[r] = r == rank_ && own_ != nullptr ? own_ : nullptr;
      if (sources_[r] != nullptr) continue;
      const char* slot = r == rank_ ? segment_->slot(r, step_) : peer(r);
      sources_[r] = slot + offset;
    }
    return sources_.data();
  }

  // Each rank reduces its segment of all slots, in place, then reads those of
  // the others.
  void reduce_chunk(const Reduction& r, char* data, size_t n) {
    const size_t item = element_size(r.dtype);
    char* slot = open_slot();
    copy(slot, data, n * item);
    post();
    const size_t unit = std::max<size_t>(1, kLine / item);
    const size_t share = (n / count() / unit + 1) * unit;
    auto begin_of = [&](int i) {
      return std::min(n, share * static_cast<size_t>(i));
    };
    const size_t from = begin_of(rank_), to = begin_of(rank_ + 1);
    const auto* parts = all_slots(from * item);
    distributed::reduce(r, slot + from * item, parts, count(), to - from);
    segment_->mine().reduced.store(step_ + 1, std::memory_order_release);
    segment_->ring_bells();
    copy(data + from * item, slot + from * item, (to - from) * item);
    for_others([&](int other) {
      await([&] {
        return segment_->state(other).reduced.load(std::memory_order_acquire) >
               step_;
      });
      const size_t at = begin_of(other) * item;
      const size_t end = begin_of(other + 1) * item;
      copy(data + at, segment_->slot(other, step_) + at, end - at);
    });
    finish();
  }

  // Long tensors, see Note [Reading another rank's memory] --------------------

  bool is_direct(size_t bytes) const {
    return bytes >= kDirect && segment_->reads_directly() && size_ > 1;
  }
  // This rank's part of a step: where its values are.
  void publish(const std::vector<char*>& tensors) {
    auto* table = reinterpret_cast<uint64_t*>(open_slot());
    for (size_t i = 0; i < tensors.size(); ++i) {
      table[i] = reinterpret_cast<uint64_t>(tensors[i]);
    }
    post();
  }
  uint64_t address(int r, int entry) {
    return reinterpret_cast<const uint64_t*>(peer(r))[entry];
  }
  void read(int r, void* to, uint64_t from, size_t bytes) {
    if (segment_->read(r, to, from, bytes)) return;
    check(/*ready=*/[] { return false; }, /*quick=*/false);
    raise(str_cat("cannot read the memory of rank ", r));
  }
  // Ends the step when nobody reads this rank's memory any more.
  void finish_together() {
    const uint64_t end = step_ + 1;
    segment_->mine().finished.store(end, std::memory_order_release);
    segment_->ring_bells();
    for_others([&](int r) {
      await([&] {
        return segment_->state(r).finished.load(std::memory_order_acquire) >=
               end;
      });
    });
    step_ = end;
  }

  // Combines this rank's values, which may be the result's place, and those at
  // the other ranks' addresses.
  void reduce_directly(const Reduction& r,
                       char* out,
                       char* own,
                       const std::vector<uint64_t>& from,
                       size_t n) {
    const size_t item = element_size(r.dtype);
    const size_t most = kBlock / item;
    scratch_.resize(count() * kBlock);
    sources_.resize(count());
    for (size_t done = 0; done < n; done += most) {
      const size_t at = done * item;
      const size_t now = std::min(most, n - done);
      sources_[rank_] = own + at;
      for_others([&](int o) {
        char* place = scratch_.data() + kBlock * static_cast<size_t>(o);
        read(o, place, from[o] + at, now * item);
        sources_[o] = place;
      });
      distributed::reduce(r, out + at, sources_.data(), count(), now);
    }
  }

  // Each rank reduces its segment in place, then reads those of the others.
  void all_reduce_directly(const Reduction& r, char* data, size_t n) {
    publish({data});
    const size_t item = element_size(r.dtype);
    const size_t share = (n + count() - 1) / count();
    auto begin_of = [&](int i) {
      return std::min(n, share * static_cast<size_t>(i)) * item;
    };
    const size_t own = begin_of(rank_);
    std::vector<uint64_t> bases(count()), from(count());
    for_others([&](int o) {
      bases[o] = address(o, 0);
      from[o] = bases[o] + own;
    });
    const size_t mine = (begin_of(rank_ + 1) - own) / item;
    reduce_directly(r, data + own, data + own, from, mine);
    segment_->mine().reduced.store(step_ + 1, std::memory_order_release);
    segment_->ring_bells();
    for_others([&](int o) {
      await([&] {
        return segment_->state(o).reduced.load(std::memory_order_acquire) >
               step_;
      });
      const size_t at = begin_of(o);
      read(o, data + at, bases[o] + at, begin_of(o + 1) - at);
    });
    finish_together();
  }

  // The longest part that any rank sends to any other.
  size_t exchange_sizes(const std::vector<Span>& in,
                        const std::vector<Span>& out) {
    auto* sizes = reinterpret_cast<uint64_t*>(open_slot());
    for (int r = 0; r < size_; ++r) sizes[r] = in[r].bytes;
    post();
    uint64_t longest = 0;
    for (int r = 0; r < size_; ++r) {
      const auto* theirs = reinterpret_cast<const uint64_t*>(
          r == rank_ ? segment_->slot(r, step_) : peer(r));
      if (theirs[rank_] != out[r].bytes) {
        raise(str_cat("expected ",
                      out[r].bytes,
                      " bytes from rank ",
                      r,
                      ", which sends ",
                      theirs[rank_]));
      }
      for (int to = 0; to < size_; ++to) {
        if (to != r) longest = std::max(longest, theirs[to]);
      }
    }
    finish();
    return longest;
  }

  // Waiting -------------------------------------------------------------------

  template <class Ready>
  void await(Ready&& ready) {
    segment_->await(ready, [&] { check(ready, /*quick=*/false); });
  }

  template <class Ready>
  void check(Ready&& ready, bool quick) {
    segment_->raise_if_aborted();
    const int broken = segment_->broken_by();
    if (broken >= 0 && !ready()) {
      const int lost = segment_->find_lost();
      if (lost >= 0) raise_lost(lost);
      raise(str_cat("rank ",
                    broken,
                    " met an error, after which ranks cannot agree: ",
                    segment_->where_ranks_stand()));
    }
    if (quick) return;
    const int lost = segment_->find_lost();
    if (lost >= 0 && !ready()) raise_lost(lost);
    if (Clock::now() >= call_->end && !ready()) {
      raise(str_cat("timed out after ",
                    static_cast<int64_t>(call_->limit.count()),
                    " ms: ",
                    segment_->where_ranks_stand()));
    }
  }

  [[noreturn]] void raise_lost(int rank) const {
    raise(str_cat("rank ",
                  rank,
                  " has ended or left the group: ",
                  segment_->where_ranks_stand()));
  }
  [[noreturn]] void raise(const std::string& why) const {
    fail(Fault::Backend,
         describe(call_->head),
         " at rank ",
         rank_,
         " of ",
         size_,
         " in group '",
         segment_->place().group,
         "': ",
         why);
  }

  std::unique_ptr<Segment> segment_;
  Mailboxes mail_;
  const int rank_;
  const int size_;
  const size_t slot_size_;
  // Of the thread that runs collectives.
  uint64_t step_ = 0;
  const Call* call_ = nullptr;
  char* own_ = nullptr;
  std::vector<const void*> sources_;
  std::vector<char> scratch_;
};

}  // namespace

std::unique_ptr<Channel> open_shared_channel(const Place& place,
                                             Store& store,
                                             Millis limit) {
  auto segment = Segment::open(place, store, limit);
  if (!segment) return nullptr;
  return std::make_unique<SharedChannel>(std::move(segment));
}

}  // namespace taeda::distributed
