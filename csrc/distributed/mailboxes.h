// Messages between two ranks, through rings in shared memory.
#pragma once

#include <taeda/csrc/distributed/segment.h>

#include <deque>
#include <list>
#include <thread>

namespace taeda::distributed {

// Note [Messages in rings]
// A message is its tag and length, 16 bytes, and its content, which may be
// longer than the ring: the sender goes on as the receiver reads. Sends to one
// rank leave in order. A receiver reads only while somebody waits for a message
// of that rank; messages of other tags which come before are kept aside.
class Mailboxes {
 public:
  explicit Mailboxes(Segment& segment);
  ~Mailboxes();

  void send(std::shared_ptr<Work> work,
            Span data,
            int to,
            uint64_t tag,
            TimePoint end);
  void receive(std::shared_ptr<Work> work,
               Span data,
               int from,
               uint64_t tag,
               TimePoint end);
  // Moves messages until the work is complete or the time is over.
  void await(Work& work, Millis limit);

 private:
  struct Sending {
    std::shared_ptr<Work> work;
    Span data;
    uint64_t tag;
    TimePoint end;
    size_t done = 0;
    bool begun = false;
  };
  struct Receiving {
    std::shared_ptr<Work> work;
    Span data;
    int from;
    uint64_t tag;
    TimePoint end;
  };
  struct Letter {
    uint64_t tag = 0;
    uint64_t bytes = 0;
  };
  // What arrives from one rank.
  struct Incoming {
    bool begun = false;
    bool refused = false;  // its receiver expected another size
    Letter head;
    size_t done = 0;
    std::list<Receiving> target;  // one, or none: it is kept aside
    std::string aside;
    std::deque<std::pair<uint64_t, std::string>> kept;
  };
  // Holds the mutex. What has ended meanwhile is told after its release, since
  // whoever hears of it may send again.
  class Lock {
   public:
    explicit Lock(Mailboxes& mail) : mail_(mail), lock_(mail.mutex_) {}
    ~Lock();

   private:
    Mailboxes& mail_;
    std::unique_lock<std::mutex> lock_;
  };
  struct End {
    std::shared_ptr<Work> work;
    std::exception_ptr error;
    int source;
  };
  void end(std::shared_ptr<Work>& work,
           std::exception_ptr error = nullptr,
           int source = -1);
  void move_now();

  bool progress();
  bool push(int to);
  bool pull(int from);
  bool is_awaited(int from) const;
  void begin(int from);
  void end_message(int from);
  bool take_kept(Receiving& wanted);
  void expire();
  void run();

  Segment& segment_;
  std::mutex mutex_;  // guards all below
  std::vector<std::list<Sending>> sends_;
  std::list<Receiving> receives_;
  std::vector<Incoming> incoming_;
  std::vector<End> ends_;
  std::thread courier_;
  std::condition_variable work_came_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> pending_ = 0;  // read without the mutex, too
};

}  // namespace taeda::distributed
