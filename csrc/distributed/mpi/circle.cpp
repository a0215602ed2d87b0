#include <taeda/csrc/distributed/mpi/circle.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace taeda::distributed::mpi {

namespace {

// A thread that waits looks this often before it sleeps between looks.
constexpr int kTurns = 2000;
constexpr auto kCirclePause = std::chrono::microseconds(50);
// Between two looks for a rank that has failed.
constexpr auto kLook = std::chrono::milliseconds(2);

// Longer texts of failures are cut.
constexpr size_t kText = 1024;

}  // namespace

Circle::Circle(const Place& place, Millis limit)
    : mpi_(Library::get()), place_(place) {
  comm_ = join(limit);
  mail_ = std::make_unique<Mail>(mpi_, comm_, place);
}

Circle::~Circle() {
  mail_.reset();
  std::lock_guard lock(mpi_.mutex);
  int over = 0;
  if (mpi_.finalized(&over) == 0 && over == 0 && !mpi_.has_failed) {
    mpi_.free_comm(&comm_);
  }
}

std::string Circle::here() const {
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
Handle Circle::join(Millis limit) {
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

void Circle::greet(TimePoint end, Millis limit) {
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

Circle::Heads Circle::all_pairs(std::string_view mine,
                                Handle comm,
                                int tag,
                                const std::vector<int>& ranks_in_comm) {
  Heads heads{made(mine.size()), made(mine.size() * ranks()), {}, mine.size()};
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

std::string Circle::wait_for_heads(Heads& heads,
                                   TimePoint end,
                                   const std::string& what) {
  const bool all = look_until(end, what, [&] {
    bool done = has_ended(mpi_, heads.sent->requests);
    for (auto& pending : heads.pending) done = has_ended(mpi_, pending) && done;
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

void Circle::meet(const Call& call) {
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

// Waiting and failing.

// Calls `done` under the library's lock until it holds or the time is over.
// Raises where this group, or another rank of it, has failed.
template <class F>
bool Circle::look_until(TimePoint end, const std::string& what, F&& done) {
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
    std::this_thread::sleep_for(kCirclePause);
  }
}

void Circle::finish(const Call& call,
                    const std::shared_ptr<Transfer>& transfer) {
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

void Circle::raise_if_broken(const std::string& what) {
  std::lock_guard lock(mutex_);
  if (reason_.empty()) return;
  fail(Fault::Backend, what.empty() ? reason_ : str_cat(what, here(), reason_));
}

void Circle::break_off(const std::string& reason) {
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

void Circle::hear_of_failures() {
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

}  // namespace taeda::distributed::mpi
