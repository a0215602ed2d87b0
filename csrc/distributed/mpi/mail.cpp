#include <taeda/csrc/distributed/mpi/mail.h>

#include <algorithm>
#include <cstring>

namespace taeda::distributed::mpi {

namespace {

// Between two looks of a thread that waits.
constexpr auto kPause = std::chrono::microseconds(50);

}  // namespace

bool has_ended(Library& mpi, std::vector<Handle>& requests) {
  while (!requests.empty()) {
    int flag = 0;
    Status status;
    mpi.check("MPI_Test", mpi.test(&requests.back(), &flag, &status));
    if (flag == 0) return false;
    requests.pop_back();
  }
  return true;
}

Mail::Mail(Library& mpi, Handle comm, const Place& place)
    : mpi_(mpi), comm_(comm), place_(place), incoming_(place.size) {}

Mail::~Mail() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  came_.notify_all();
  if (courier_.joinable()) courier_.join();
  // MPI may still write what nobody waits for any more.
  for (Incoming& in : incoming_) static_cast<void>(in.transfer.release());
}

void Mail::send(std::shared_ptr<Work> work,
                Span data,
                int to,
                uint64_t tag,
                TimePoint end_time) {
  const Letter letter{tag, data.bytes};
  auto transfer = std::make_unique<Transfer>();
  transfer->bytes.assign(reinterpret_cast<const char*>(&letter),
                         sizeof(letter));
  if (data.bytes > 0) transfer->bytes.append(data.data, data.bytes);
  auto post = [&](size_t at, size_t n, Tag kind) {
    Handle& request = transfer->requests.emplace_back(0);
    const char* from = transfer->bytes.data() + at;
    const int tag_number = static_cast<int>(kind);
    mpi_.check("MPI_Isend",
               mpi_.send(from,
                         static_cast<int>(n),
                         mpi_.byte,
                         to,
                         tag_number,
                         comm_,
                         &request));
  };
  {
    std::lock_guard lock(mutex_);
    if (reason_.empty()) {
      std::lock_guard mpi_lock(mpi_.mutex);
      post(0, sizeof(letter), Tag::Letter);
      for (size_t at = 0; at < data.bytes; at += kPiece) {
        const size_t n = std::min(kPiece, data.bytes - at);
        post(sizeof(letter) + at, n, Tag::Piece);
      }
      sends_.push_back({work, to, end_time, std::move(transfer)});
    } else {
      end(work, str_cat("send to rank ", to, ": ", reason_), -1);
    }
  }
  step();
}

void Mail::receive(std::shared_ptr<Work> work,
                   Span data,
                   int from,
                   uint64_t tag,
                   TimePoint end_time) {
  {
    std::lock_guard lock(mutex_);
    take_kept({std::move(work), data, from, tag, end_time});
  }
  step();
}

// Moves what can be at once; the rest is the courier's.
void Mail::step() {
  {
    std::lock_guard lock(mutex_);
    progress();
    expire();
    if (!is_idle()) {
      if (!courier_.joinable()) courier_ = std::thread([this] { run(); });
      came_.notify_all();
    }
  }
  tell();
}

void Mail::end(std::shared_ptr<Work>& work,
               const std::string& error,
               int source) {
  std::exception_ptr raised;
  if (!error.empty()) {
    raised = std::make_exception_ptr(DistError(
        Fault::Backend,
        str_cat(
            error, " (rank ", place_.rank, " of group '", place_.group, "')")));
  }
  ends_.push_back({std::move(work), std::move(raised), source});
}

void Mail::tell() {
  std::vector<End> ends;
  {
    std::lock_guard lock(mutex_);
    ends.swap(ends_);
  }
  for (End& e : ends) e.work->complete(std::move(e.error), e.source);
}

// An error of MPI ends all messages.
bool Mail::progress() {
  try {
    std::lock_guard mpi_lock(mpi_.mutex);
    return move_all();
  } catch (const DistError& error) {
    if (reason_.empty()) reason_ = error.what();
    return false;
  }
}

bool Mail::move_all() {
  const size_t before = ends_.size();
  bool moved = false;
  for (auto it = sends_.begin(); it != sends_.end();) {
    if (has_ended(mpi_, it->transfer->requests)) {
      end(it->work, "", -1);
      it = sends_.erase(it);
    } else {
      ++it;
    }
  }
  for (int r = 0; r < place_.size; ++r) {
    while (move(r)) moved = true;
  }
  return moved || ends_.size() > before;
}

bool Mail::is_awaited(int from) const {
  return std::any_of(
      receives_.begin(), receives_.end(), [&](const Receiving& r) {
        return r.from < 0 || r.from == from;
      });
}

// Takes a letter, or the end of what follows it.
bool Mail::move(int from) {
  Incoming& in = incoming_[from];
  const int letters = static_cast<int>(Tag::Letter);
  if (in.transfer == nullptr) {
    int flag = 0;
    Status status;
    if (!is_awaited(from)) return false;
    mpi_.check("MPI_Iprobe", mpi_.probe(from, letters, comm_, &flag, &status));
    if (flag == 0) return false;
    mpi_.check("MPI_Recv",
               mpi_.receive_now(&in.letter,
                                sizeof(Letter),
                                mpi_.byte,
                                from,
                                letters,
                                comm_,
                                &status));
    in.transfer = std::make_unique<Transfer>();
    in.transfer->bytes.resize(in.letter.bytes);
    for (size_t at = 0; at < in.letter.bytes; at += kPiece) {
      const int n = static_cast<int>(std::min(kPiece, in.letter.bytes - at));
      Handle& request = in.transfer->requests.emplace_back(0);
      mpi_.check("MPI_Irecv",
                 mpi_.receive(in.transfer->bytes.data() + at,
                              n,
                              mpi_.byte,
                              from,
                              static_cast<int>(Tag::Piece),
                              comm_,
                              &request));
    }
    return true;
  }
  if (!has_ended(mpi_, in.transfer->requests)) return false;
  std::string bytes = std::move(in.transfer->bytes);
  in.transfer.reset();
  if (!deliver(from, in.letter.tag, bytes)) {
    in.kept.emplace_back(in.letter.tag, std::move(bytes));
  }
  return true;
}

// Gives a message to who waits for it first; false where nobody does.
bool Mail::deliver(int from, uint64_t tag, const std::string& bytes) {
  for (auto it = receives_.begin(); it != receives_.end(); ++it) {
    if ((it->from >= 0 && it->from != from) || it->tag != tag) continue;
    std::string error;
    if (it->data.bytes != bytes.size()) {
      error = str_cat("recv: expected ",
                      it->data.bytes,
                      " bytes, got a message of ",
                      bytes.size(),
                      " bytes from rank ",
                      from);
    } else if (!bytes.empty()) {
      std::memcpy(it->data.data, bytes.data(), bytes.size());
    }
    end(it->work, error, from);
    receives_.erase(it);
    return true;
  }
  return false;
}

// A message may have come before anybody waited for it.
void Mail::take_kept(Receiving wanted) {
  const int source = wanted.from;
  const uint64_t tag = wanted.tag;
  receives_.push_back(std::move(wanted));
  for (int r = 0; r < place_.size; ++r) {
    if (source >= 0 && source != r) continue;
    auto& kept = incoming_[r].kept;
    for (auto it = kept.begin(); it != kept.end(); ++it) {
      if (it->first != tag) continue;
      const std::string bytes = std::move(it->second);
      kept.erase(it);
      // An older receive of the same tag would have taken it when it came.
      deliver(r, tag, bytes);
      return;
    }
  }
}

// Ends what cannot complete in time any more.
void Mail::expire() {
  const TimePoint now = Clock::now();
  auto why = [&](TimePoint end_time) -> std::string {
    if (!reason_.empty()) return reason_;
    return now >= end_time ? "it timed out" : "";
  };
  sends_.remove_if([&](Sending& s) {
    const std::string reason = why(s.end);
    if (reason.empty()) return false;
    end(s.work, str_cat("send to rank ", s.to, ": ", reason), -1);
    // MPI may read the bytes later.
    static_cast<void>(s.transfer.release());
    mpi_.has_failed = true;
    return true;
  });
  receives_.remove_if([&](Receiving& w) {
    const std::string reason = why(w.end);
    if (reason.empty()) return false;
    const std::string from = w.from < 0 ? "any rank" : str_cat("rank ", w.from);
    end(w.work, str_cat("recv from ", from, ": ", reason), -1);
    return true;
  });
}

void Mail::abort(const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason;
    expire();
  }
  tell();
}

void Mail::await(Work& work, Millis limit) {
  const TimePoint late = after(limit);
  while (!work.is_completed()) {
    step();
    if (work.is_completed()) break;
    if (Clock::now() >= late) Work::raise_late(limit);
    std::this_thread::sleep_for(kPause);
  }
  work.wait(limit);
}

void Mail::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    // Messages that are on their way when the group ends still arrive.
    came_.wait(lock, [&] { return stop_ || !is_idle(); });
    if (is_idle()) return;
    const bool moved = progress();
    expire();
    lock.unlock();
    tell();
    if (!moved) std::this_thread::sleep_for(kPause);
    lock.lock();
  }
}

}  // namespace taeda::distributed::mpi
