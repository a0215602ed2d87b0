#include <taeda/csrc/distributed/group.h>

namespace taeda::distributed {

namespace {

std::unique_ptr<Channel> open_channel(const Place& place,
                                      Store& store,
                                      Millis limit,
                                      Route route) {
  if (route == Route::Mpi) return open_mpi_channel(place, limit);
  if (route != Route::Gloo) {
    if (auto channel = open_shared_channel(place, store, limit)) return channel;
    if (route == Route::SharedMemory) {
      fail(Fault::Backend,
           "init_process_group: the ranks of group '",
           place.group,
           "' are not on one host with room in /dev/shm");
    }
  }
  return open_gloo_channel(place, store, limit);
}

// Meets the others within the limit, however long the store may wait.
std::unique_ptr<Channel> join(const Place& place,
                              Store& store,
                              Millis limit,
                              Route route) {
  StoreDeadline deadline(limit);
  try {
    return open_channel(place, store, limit, route);
  } catch (const DistError& error) {
    if (error.fault() != Fault::Network) throw;
    fail(Fault::Network,
         "init_process_group: rank ",
         place.rank,
         " of ",
         place.size,
         " lost the store while it waited for the others to join: ",
         error.what());
  }
}

}  // namespace

Group::Group(Place place,
             std::shared_ptr<Store> store,
             Millis limit,
             Route route)
    : place_(std::move(place)),
      store_(std::move(store)),
      limit_(limit),
      channel_(join(place_, *store_, limit, route)) {}

Group::~Group() { shut_down(); }

void Group::shut_down() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Group::abort(const std::string& reason) {
  aborted_ = true;
  channel_->abort(reason);
}

Millis Group::limit_of(const Options& options) const {
  return options.limit == Millis::zero() ? limit() : options.limit;
}

uint64_t Group::record(const Head& head, const Options& options, int peer) {
  FlightEntry entry;
  entry.group = place_.group;
  entry.place = options.where;
  entry.head = head;
  entry.shape = options.shape;
  entry.peer = peer;
  entry.limit = limit_of(options);
  return FlightRecord::instance().add(std::move(entry));
}

std::shared_ptr<Work> Group::run(Head head, Body body, Options options) {
  auto work = std::make_shared<Work>(std::move(options.keep));
  std::unique_lock lock(mutex_);
  if (stopped_) {
    fail(Fault::Backend,
         name_of(head.kind),
         ": group '",
         place_.group,
         "' has been destroyed");
  }
  head.sequence = ++sequence_;
  const uint64_t id = record(head, options, -1);
  Task task{head, std::move(body), limit_of(options), id, work};
  if (!options.async && !running_ && queue_.empty()) {
    running_ = true;
    lock.unlock();
    execute(task);
    lock.lock();
    running_ = false;
    if (!queue_.empty()) changed_.notify_all();
  } else {
    queue_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
    changed_.notify_all();
  }
  lock.unlock();
  // The operation has a limit of its own, after which it raises.
  if (!options.async) work->wait(Millis(-1));
  return work;
}

void Group::execute(Task& task) {
  auto& record = FlightRecord::instance();
  record.start(task.record);
  std::exception_ptr error;
  try {
    task.body(*channel_, {task.head, after(task.limit), task.limit});
    record.end(task.record, /*well=*/true);
  } catch (const DistError& failure) {
    failed_ = true;
    record.end(task.record, /*well=*/false);
    error = explained(failure);
  } catch (...) {
    record.end(task.record, /*well=*/false);
    error = std::current_exception();
  }
  task.body = nullptr;
  task.work->complete(std::move(error));
}

// Who aborts a group knows why it has ended.
std::exception_ptr Group::explained(const DistError& error) const {
  const std::string report = aborted_ ? "" : report_of(place_.group);
  return std::make_exception_ptr(
      DistError(error.fault(), error.what() + report));
}

void Group::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock,
                  [&] { return !running_ && (stopped_ || !queue_.empty()); });
    if (queue_.empty()) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    lock.unlock();
    execute(task);
    lock.lock();
    running_ = false;
  }
}

std::shared_ptr<Work> Group::follow(std::shared_ptr<Work> work, uint64_t id) {
  FlightRecord::instance().start(id);
  work->then([id, weak = std::weak_ptr(work)] {
    auto ended = weak.lock();
    FlightRecord::instance().end(id, ended && !ended->error());
  });
  return work;
}

std::shared_ptr<Work> Group::send(Span data,
                                  int to,
                                  uint64_t tag,
                                  Options options) {
  const Head head{.bytes = data.bytes, .kind = Kind::Send};
  auto work = std::make_shared<Work>(std::move(options.keep));
  follow(work, record(head, options, to));
  channel_->send(work, data, to, tag, after(limit_of(options)));
  return work;
}

std::shared_ptr<Work> Group::receive(Span data,
                                     int from,
                                     uint64_t tag,
                                     Options options) {
  const Head head{.bytes = data.bytes, .kind = Kind::Receive};
  auto work = std::make_shared<Work>(std::move(options.keep));
  follow(work, record(head, options, from));
  channel_->receive(work, data, from, tag, after(limit_of(options)));
  return work;
}

}  // namespace taeda::distributed
