// Moves the bytes of a group's collectives and messages.
#pragma once

#include <taeda/csrc/distributed/call.h>
#include <taeda/csrc/distributed/store.h>
#include <taeda/csrc/distributed/work.h>

namespace taeda::distributed {

struct Place {
  int rank = 0;
  int size = 1;
  std::string group;
  std::vector<int> members = {};  // global ranks, where the channel wants them
};

// Collectives are called by one thread at a time, in the order that all ranks
// agree on; messages by any thread. Faults raise Fault::Backend.
class Channel {
 public:
  virtual ~Channel() = default;

  virtual void all_reduce(const Call&, const Reduction&, void*, size_t n) = 0;
  virtual void broadcast(const Call&, Span data) = 0;
  virtual void reduce(const Call&, const Reduction&, void*, size_t n) = 0;
  // `out[r]` receives what rank r gave, as many bytes as `in`.
  virtual void all_gather(const Call&,
                          Span in,
                          const std::vector<char*>& out) = 0;
  virtual void gather(const Call&, Span in, const std::vector<char*>& out) = 0;
  // `in` holds a part for each rank, at the root alone.
  virtual void scatter(const Call&, const std::vector<char*>& in, Span out) = 0;
  virtual void reduce_scatter(const Call&,
                              const Reduction&,
                              const std::vector<char*>& in,
                              void* out,
                              size_t n) = 0;
  virtual void all_to_all(const Call&,
                          const std::vector<Span>& in,
                          const std::vector<Span>& out) = 0;
  virtual void barrier(const Call&) = 0;

  virtual void send(std::shared_ptr<Work> work,
                    Span data,
                    int to,
                    uint64_t tag,
                    TimePoint end) = 0;
  // From any rank where `from` is negative.
  virtual void receive(std::shared_ptr<Work> work,
                       Span data,
                       int from,
                       uint64_t tag,
                       TimePoint end) = 0;
  // Waits for a message's work in place of Work::wait: moves bytes meanwhile.
  virtual void await(Work& work, Millis limit) { work.wait(limit); }

  // What is running or comes later raises this text.
  virtual void abort(const std::string& reason) = 0;
  virtual const char* name() const = 0;
};

// Through memory that all ranks of the group share; null where they do not.
// All ranks agree on which.
std::unique_ptr<Channel> open_shared_channel(const Place& place,
                                             Store& store,
                                             Millis limit);
// Through Gloo; Fault::Backend where there is none.
std::unique_ptr<Channel> open_gloo_channel(const Place& place,
                                           Store& store,
                                           Millis limit);
// Through the MPI library that was opened (mpi/library.h); all members call it.
std::unique_ptr<Channel> open_mpi_channel(const Place& place, Millis limit);
// Whether the library of gloo/ can be opened.
bool has_gloo();

}  // namespace taeda::distributed
