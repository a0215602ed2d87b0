// The ranks of a group over MPI: how they join, meet, wait and fail.
#pragma once

#include <taeda/csrc/distributed/mpi/mail.h>

namespace taeda::distributed::mpi {

// An address is wanted for no bytes as well.
inline std::shared_ptr<Transfer> made(size_t bytes) {
  auto transfer = std::make_shared<Transfer>();
  transfer->bytes.resize(std::max<size_t>(bytes, 1));
  return transfer;
}

// See Note [Collectives over MPI]. Its functions are called by the one thread
// that runs collectives; `break_off` by any.
class Circle {
 protected:
  Circle(const Place& place, Millis limit);
  ~Circle();
  Circle(const Circle&) = delete;
  Circle& operator=(const Circle&) = delete;

  // Returns when all ranks have told that they make this call.
  void meet(const Call& call);
  // Posts what MPI shall move, `post(request)`.
  template <class F>
  void start(const char* what, Transfer& transfer, F&& post) {
    std::lock_guard lock(mpi_.mutex);
    mpi_.check(what, post(&transfer.requests.emplace_back(0)));
  }
  // Waits for what was started.
  void finish(const Call& call, const std::shared_ptr<Transfer>& transfer);
  // Ends what runs here with an error, and tells the others.
  void break_off(const std::string& reason);

  size_t ranks() const { return static_cast<size_t>(place_.size); }

  Library& mpi_;
  const Place place_;
  Handle comm_ = 0;
  std::unique_ptr<Mail> mail_;

 private:
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
                  const std::vector<int>& ranks_in_comm);
  // Who has not come at the end of the time, "rank 1, rank 3".
  std::string wait_for_heads(Heads& heads,
                             TimePoint end,
                             const std::string& what);
  Handle join(Millis limit);
  void greet(TimePoint end, Millis limit);

  std::string here() const;
  template <class F>
  bool look_until(TimePoint end, const std::string& what, F&& done);
  void raise_if_broken(const std::string& what);
  void hear_of_failures();

  std::mutex mutex_;  // guards reason_
  std::string reason_;
};

}  // namespace taeda::distributed::mpi
