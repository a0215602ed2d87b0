// One rank's part in a group: the order of its collectives, their limits of
// time, the record of them.
#pragma once

#include <taeda/csrc/distributed/channel.h>
#include <taeda/csrc/distributed/flight_record.h>

#include <deque>
#include <thread>

namespace taeda::distributed {

enum class Route : uint8_t { Any, SharedMemory, Gloo, Mpi };

class Group {
 public:
  // All ranks call it; it returns when all have.
  Group(Place place, std::shared_ptr<Store> store, Millis limit, Route route);
  ~Group();

  using Body = std::function<void(Channel&, const Call&)>;
  struct Options {
    bool async = false;
    Millis limit{0};               // none given: the group's
    std::string where;             // the caller's line
    Shape shape;                   // for the record
    std::shared_ptr<void> keep{};  // what the body reads and writes
  };
  // Runs it here where nothing else runs and nobody asked for `async`, in the
  // group's thread otherwise; collectives run in the order of these calls.
  // Without `async` it returns, or raises, at the end.
  std::shared_ptr<Work> run(Head head, Body body, Options options);

  std::shared_ptr<Work> send(Span data, int to, uint64_t tag, Options options);
  std::shared_ptr<Work> receive(Span data,
                                int from,
                                uint64_t tag,
                                Options options);
  // Waits for any work of this group.
  void await(Work& work, Millis limit) { channel_->await(work, limit); }

  void abort(const std::string& reason);
  // After what has been called is complete, no more may come.
  void shut_down();

  const Place& place() const { return place_; }
  const char* channel_name() const { return channel_->name(); }
  // Whether a collective failed or the group was aborted: no more can run.
  bool has_failed() const { return failed_ || aborted_; }
  Millis limit() const { return limit_.load(); }
  void set_limit(Millis limit) { limit_ = limit; }
  uint64_t sequence() const { return sequence_.load(); }

 private:
  struct Task {
    Head head;
    Body body;
    Millis limit;
    uint64_t record;
    std::shared_ptr<Work> work;
  };
  void execute(Task& task);
  void serve();
  std::exception_ptr explained(const DistError& error) const;
  uint64_t record(const Head& head, const Options& options, int peer);
  Millis limit_of(const Options& options) const;
  std::shared_ptr<Work> follow(std::shared_ptr<Work> work, uint64_t id);

  const Place place_;
  std::shared_ptr<Store> store_;
  std::atomic<Millis> limit_;
  std::unique_ptr<Channel> channel_;
  std::atomic<uint64_t> sequence_ = 0;
  std::atomic<bool> aborted_ = false;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Task> queue_;
  bool running_ = false;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace taeda::distributed
