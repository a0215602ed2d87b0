// Messages between two ranks of a communicator.
#pragma once

#include <taeda/csrc/distributed/channel.h>
#include <taeda/csrc/distributed/mpi/library.h>

#include <deque>
#include <list>
#include <thread>

namespace taeda::distributed::mpi {

// What is under way: buffers that MPI reads and writes until its requests end.
// They are copies, since a caller who was told of a failure frees its own.
struct Transfer {
  std::string bytes;
  std::vector<Handle> requests;
};

// MPI's tags within a communicator; a program's own travel in letters.
enum class Tag : int { Head = 1, Letter, Piece, Exchange, Abort };
// Of MPI_COMM_WORLD, which programs may use too.
inline constexpr int kHello = 32001;
// MPI counts in 31 bits.
inline constexpr size_t kPiece = size_t{1} << 30;

// Asks for each; true when all have ended. Under the library's lock.
bool has_ended(Library& mpi, std::vector<Handle>& requests);

// A message is a letter, its tag and size, and pieces of its content. A rank
// reads letters only while somebody waits for a message of their sender; those
// with another tag are kept aside. So a message of any size meets its receiver
// first.
class Mail {
 public:
  Mail(Library& mpi, Handle comm, const Place& place);
  ~Mail();

  void send(std::shared_ptr<Work>, Span, int to, uint64_t tag, TimePoint);
  void receive(std::shared_ptr<Work>, Span, int from, uint64_t tag, TimePoint);
  void await(Work& work, Millis limit);
  void abort(const std::string& reason);

 private:
  struct Letter {
    uint64_t tag = 0;
    uint64_t bytes = 0;
  };
  struct Sending {
    std::shared_ptr<Work> work;
    int to;
    TimePoint end;
    std::unique_ptr<Transfer> transfer;
  };
  struct Receiving {
    std::shared_ptr<Work> work;
    Span data;
    int from;
    uint64_t tag;
    TimePoint end;
  };
  struct Incoming {
    std::unique_ptr<Transfer> transfer;  // null where nothing comes
    Letter letter;
    std::deque<std::pair<uint64_t, std::string>> kept;
  };
  struct End {
    std::shared_ptr<Work> work;
    std::exception_ptr error;
    int source = -1;
  };
  // All of these under the mutex.
  bool progress();
  bool move_all();
  bool move(int from);
  bool is_awaited(int from) const;
  bool deliver(int from, uint64_t tag, const std::string& bytes);
  void take_kept(Receiving wanted);
  void expire();
  void end(std::shared_ptr<Work>& work, const std::string& error, int source);
  bool is_idle() const { return sends_.empty() && receives_.empty(); }
  // Without it: tells those whose messages have ended.
  void tell();
  void step();
  void run();

  Library& mpi_;
  const Handle comm_;
  const Place place_;
  std::mutex mutex_;  // guards all below
  std::list<Sending> sends_;
  std::list<Receiving> receives_;
  std::vector<Incoming> incoming_;
  std::vector<End> ends_;
  std::string reason_;
  std::condition_variable came_;
  std::thread courier_;
  bool stop_ = false;
};

}  // namespace taeda::distributed::mpi
