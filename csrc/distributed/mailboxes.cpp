#include <taeda/csrc/distributed/mailboxes.h>

#include <algorithm>
#include <cstring>

namespace taeda::distributed {

namespace {

std::exception_ptr fault(const std::string& text) {
  return std::make_exception_ptr(DistError(Fault::Backend, text));
}

std::exception_ptr wrong_size(size_t expected, size_t got, int from) {
  return fault(str_cat("recv: expected ",
                       expected,
                       " bytes, got a message of ",
                       got,
                       " bytes from rank ",
                       from));
}

// Copies between a ring and a plain buffer, around the ring's end.
void copy_in(char* ring, size_t size, uint64_t at, const char* from, size_t n) {
  const size_t first = std::min<size_t>(n, size - at % size);
  std::memcpy(ring + at % size, from, first);
  std::memcpy(ring, from + first, n - first);
}
void copy_out(const char* ring, size_t size, uint64_t at, char* to, size_t n) {
  const size_t first = std::min<size_t>(n, size - at % size);
  std::memcpy(to, ring + at % size, first);
  std::memcpy(to + first, ring, n - first);
}

}  // namespace

Mailboxes::Mailboxes(Segment& segment)
    : segment_(segment),
      sends_(static_cast<size_t>(segment.size())),
      incoming_(static_cast<size_t>(segment.size())) {}

Mailboxes::~Mailboxes() {
  {
    Lock lock(*this);
    stop_ = true;
  }
  work_came_.notify_all();
  segment_.ring_bells();
  if (courier_.joinable()) courier_.join();
}

Mailboxes::Lock::~Lock() {
  std::vector<End> ends;
  ends.swap(mail_.ends_);
  lock_.unlock();
  for (End& e : ends) e.work->complete(std::move(e.error), e.source);
}

void Mailboxes::end(std::shared_ptr<Work>& work,
                    std::exception_ptr error,
                    int source) {
  pending_ -= 1;
  ends_.push_back({std::move(work), std::move(error), source});
}

// Under the lock, after something was added: what can be moved at once is, the
// rest is the courier's.
void Mailboxes::move_now() {
  if (progress()) segment_.ring_bells();
  if (pending_ == 0) return;
  if (!courier_.joinable()) courier_ = std::thread([this] { run(); });
  work_came_.notify_all();
  segment_.ring_bells();
}

void Mailboxes::send(std::shared_ptr<Work> work,
                     Span data,
                     int to,
                     uint64_t tag,
                     TimePoint end) {
  Lock lock(*this);
  pending_ += 1;
  sends_[to].push_back({std::move(work), data, tag, end});
  move_now();
}

void Mailboxes::receive(std::shared_ptr<Work> work,
                        Span data,
                        int from,
                        uint64_t tag,
                        TimePoint end) {
  Lock lock(*this);
  Receiving wanted{std::move(work), data, from, tag, end};
  pending_ += 1;
  if (take_kept(wanted)) return;
  receives_.push_back(std::move(wanted));
  move_now();
}

// Under the lock.
bool Mailboxes::progress() {
  bool moved = false;
  for (int r = 0; r < segment_.size(); ++r) {
    while (push(r)) moved = true;
    while (pull(r)) moved = true;
  }
  return moved;
}

bool Mailboxes::push(int to) {
  auto& queue = sends_[to];
  if (queue.empty()) return false;
  Sending& s = queue.front();
  Ring& ring = segment_.ring(segment_.rank(), to);
  char* bytes = segment_.ring_bytes(segment_.rank(), to);
  const size_t size = segment_.ring_size();
  uint64_t at = ring.written.load(std::memory_order_relaxed);
  size_t room = size - (at - ring.read.load(std::memory_order_acquire));
  if (!s.begun) {
    if (room < sizeof(Letter)) return false;
    const Letter head{s.tag, s.data.bytes};
    copy_in(
        bytes, size, at, reinterpret_cast<const char*>(&head), sizeof(head));
    at += sizeof(head), room -= sizeof(head);
    s.begun = true;
  } else if (room == 0) {
    return false;
  }
  const size_t n = std::min(room, s.data.bytes - s.done);
  if (n > 0) copy_in(bytes, size, at, s.data.data + s.done, n);
  s.done += n;
  ring.written.store(at + n, std::memory_order_release);
  if (s.done == s.data.bytes) {
    end(s.work);
    queue.pop_front();
  }
  return true;
}

bool Mailboxes::is_awaited(int from) const {
  return std::any_of(
      receives_.begin(), receives_.end(), [&](const Receiving& r) {
        return r.from < 0 || r.from == from;
      });
}

// A message's head has come: who waits for it first gets it.
void Mailboxes::begin(int from) {
  Incoming& in = incoming_[from];
  for (auto it = receives_.begin(); it != receives_.end(); ++it) {
    if ((it->from >= 0 && it->from != from) || it->tag != in.head.tag) continue;
    if (it->data.bytes != in.head.bytes) {
      end(it->work, wrong_size(it->data.bytes, in.head.bytes, from));
      receives_.erase(it);
      in.refused = true;
      break;
    }
    in.target.splice(in.target.end(), receives_, it);
    return;
  }
}

bool Mailboxes::pull(int from) {
  Incoming& in = incoming_[from];
  if (!in.begun && !is_awaited(from)) return false;
  Ring& ring = segment_.ring(from, segment_.rank());
  const char* bytes = segment_.ring_bytes(from, segment_.rank());
  const size_t size = segment_.ring_size();
  uint64_t at = ring.read.load(std::memory_order_relaxed);
  size_t there = ring.written.load(std::memory_order_acquire) - at;
  if (!in.begun) {
    if (there < sizeof(Letter)) return false;
    copy_out(
        bytes, size, at, reinterpret_cast<char*>(&in.head), sizeof(Letter));
    at += sizeof(Letter), there -= sizeof(Letter);
    in.begun = true;
    in.refused = false;
    in.done = 0;
    begin(from);
  } else if (there == 0) {
    return false;
  }
  const size_t n = std::min<size_t>(there, in.head.bytes - in.done);
  if (!in.target.empty()) {
    if (n > 0) {
      copy_out(bytes, size, at, in.target.front().data.data + in.done, n);
    }
  } else {
    const size_t before = in.aside.size();
    in.aside.resize(before + n);
    copy_out(bytes, size, at, in.aside.data() + before, n);
  }
  in.done += n;
  ring.read.store(at + n, std::memory_order_release);
  if (in.done == in.head.bytes) end_message(from);
  return true;
}

void Mailboxes::end_message(int from) {
  Incoming& in = incoming_[from];
  in.begun = false;
  if (in.target.empty()) {
    if (!in.refused) in.kept.emplace_back(in.head.tag, std::move(in.aside));
    in.aside.clear();
    return;
  }
  end(in.target.front().work, nullptr, from);
  in.target.clear();
}

// A message that came before anybody waited for it.
bool Mailboxes::take_kept(Receiving& wanted) {
  for (int r = 0; r < segment_.size(); ++r) {
    if (wanted.from >= 0 && wanted.from != r) continue;
    auto& kept = incoming_[r].kept;
    for (auto it = kept.begin(); it != kept.end(); ++it) {
      if (it->first != wanted.tag) continue;
      const std::string text = std::move(it->second);
      kept.erase(it);
      if (text.size() != wanted.data.bytes) {
        end(wanted.work, wrong_size(wanted.data.bytes, text.size(), r));
      } else {
        if (!text.empty()) {
          std::memcpy(wanted.data.data, text.data(), text.size());
        }
        end(wanted.work, nullptr, r);
      }
      return true;
    }
  }
  return false;
}

// Ends what cannot complete any more. Under the lock.
void Mailboxes::expire() {
  const TimePoint now = Clock::now();
  std::string aborted;
  try {
    segment_.raise_if_aborted();
  } catch (const DistError& error) {
    aborted = error.what();
  }
  std::vector<bool> alive(static_cast<size_t>(segment_.size()));
  bool others = false;
  for (int r = 0; r < segment_.size(); ++r) {
    alive[r] = r != segment_.rank() && segment_.is_alive(r);
    others = others || alive[r];
  }
  auto why = [&](int peer, TimePoint end) -> std::string {
    if (!aborted.empty()) return aborted;
    if (peer < 0 ? !others : !alive[peer]) {
      return peer < 0 ? std::string("all other ranks have ended")
                      : str_cat("rank ", peer, " has ended or left the group");
    }
    return now >= end ? "it timed out" : "";
  };
  const auto here = str_cat(
      " (rank ", segment_.rank(), " of group '", segment_.place().group, "')");
  for (int r = 0; r < segment_.size(); ++r) {
    sends_[r].remove_if([&](Sending& s) {
      const std::string reason = why(r, s.end);
      if (reason.empty()) return false;
      end(s.work, fault(str_cat("send to rank ", r, ": ", reason, here)));
      return true;
    });
    auto& target = incoming_[r].target;
    if (target.empty()) continue;
    const std::string reason = why(r, target.front().end);
    if (reason.empty()) continue;
    end(target.front().work,
        fault(str_cat("recv from rank ", r, ": ", reason, here)));
    target.clear();
    incoming_[r].aside.assign(incoming_[r].done, '\0');
  }
  receives_.remove_if([&](Receiving& w) {
    const std::string reason = why(w.from, w.end);
    if (reason.empty()) return false;
    const std::string from = w.from < 0 ? "any rank" : str_cat("rank ", w.from);
    end(w.work, fault(str_cat("recv from ", from, ": ", reason, here)));
    return true;
  });
}

void Mailboxes::await(Work& work, Millis limit) {
  const TimePoint end = after(limit);
  bool late = false;
  segment_.await(
      [&] {
        if (late || work.is_completed()) return true;
        {
          Lock lock(*this);
          if (progress()) segment_.ring_bells();
        }
        return work.is_completed();
      },
      [&] {
        {
          Lock lock(*this);
          if (!progress()) expire();
        }
        late = Clock::now() >= end;
      });
  if (late && !work.is_completed()) Work::raise_late(limit);
  work.wait(limit);
}

// Moves messages that nobody waits for at the moment.
void Mailboxes::run() {
  while (!stop_) {
    {
      std::unique_lock lock(mutex_);
      work_came_.wait(lock, [&] { return stop_ || pending_ > 0; });
    }
    segment_.await(
        [&] {
          Lock lock(*this);
          if (progress()) segment_.ring_bells();
          return stop_ || pending_ == 0;
        },
        [&] {
          Lock lock(*this);
          if (!progress()) expire();
        });
  }
}

}  // namespace taeda::distributed
