// The functions of an MPI library, found when a program asks for them.
#pragma once

#include <taeda/csrc/distributed/error.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace taeda::distributed::mpi {

// Note [Two MPIs]
// MPICH and what keeps its binary interface (Intel MPI, MVAPICH, Cray MPICH)
// have handles of 32 bits, Open MPI has pointers. Both fit 64 bits: an argument
// of 32 bits lies in the low half of a register, and one that is written
// through a pointer in the low half of a number that was zero (little-endian
// machines, which are all that this library is built for). So one declaration
// of each function serves both; only the constants and the place of a status's
// source differ, and bytes are the one type that is sent.
using Handle = int64_t;

struct alignas(8) Status {
  int words[16] = {};
};

// One line a function: its name, its name here, its parameters.
#define TAEDA_MPI_FUNCTIONS(X)                                                 \
  X(MPI_Initialized, initialized, (int* flag))                                 \
  X(MPI_Finalized, finalized, (int* flag))                                     \
  X(MPI_Init_thread, init, (int* argc, char*** argv, int wanted, int* got))    \
  X(MPI_Query_thread, thread_level, (int* level))                              \
  X(MPI_Finalize, finalize, ())                                                \
  X(MPI_Get_library_version, version, (char* text, int* size))                 \
  X(MPI_Error_string, error_text, (int code, char* text, int* size))           \
  X(MPI_Comm_rank, rank, (Handle comm, int* rank))                             \
  X(MPI_Comm_size, size, (Handle comm, int* size))                             \
  X(MPI_Comm_dup, duplicate, (Handle comm, Handle * made))                     \
  X(MPI_Comm_group, group_of, (Handle comm, Handle * group))                   \
  X(MPI_Group_incl, part_of, (Handle, int n, const int* ranks, Handle* made))  \
  X(MPI_Group_free, free_group, (Handle * group))                              \
  X(MPI_Comm_create_group, create, (Handle, Handle group, int tag, Handle*))   \
  X(MPI_Comm_free, free_comm, (Handle * comm))                                 \
  X(MPI_Comm_set_errhandler, set_handler, (Handle comm, Handle handler))       \
  X(MPI_Isend,                                                                 \
    send,                                                                      \
    (const void*, int n, Handle type, int to, int tag, Handle comm, Handle*))  \
  X(MPI_Irecv,                                                                 \
    receive,                                                                   \
    (void*, int n, Handle type, int from, int tag, Handle comm, Handle*))      \
  X(MPI_Iprobe, probe, (int from, int tag, Handle comm, int* flag, Status*))   \
  X(MPI_Recv,                                                                  \
    receive_now,                                                               \
    (void*, int n, Handle type, int from, int tag, Handle comm, Status*))      \
  X(MPI_Test, test, (Handle * request, int* flag, Status*))                    \
  X(MPI_Ibarrier, barrier, (Handle comm, Handle*))                             \
  X(MPI_Ibcast, broadcast, (void*, int, Handle, int root, Handle, Handle*))    \
  X(MPI_Iallgather,                                                            \
    all_gather,                                                                \
    (const void*, int, Handle, void*, int, Handle, Handle comm, Handle*))      \
  X(MPI_Igather,                                                               \
    gather,                                                                    \
    (const void*, int, Handle, void*, int, Handle, int root, Handle, Handle*)) \
  X(MPI_Iscatter,                                                              \
    scatter,                                                                   \
    (const void*, int, Handle, void*, int, Handle, int root, Handle, Handle*))

class Library {
 public:
  // Opens the first of `paths` that can be, unless one is open. Fault::Backend
  // where none can be, which names the packages that bring one.
  static Library& open(const std::vector<std::string>& paths);
  // The one that is open.
  static Library& get();

#define TAEDA_MEMBER(symbol, name, parameters) int(*name) parameters = nullptr;
  TAEDA_MPI_FUNCTIONS(TAEDA_MEMBER)
#undef TAEDA_MEMBER

  // MPI may be called by one thread at a time (MPI_THREAD_SERIALIZED).
  std::mutex mutex;
  Handle world = 0, byte = 0, returns_errors = 0;
  int any_source = 0;

  int source_of(const Status& status) const;
  // Raises what an MPI function returned, unless it is success.
  void check(const char* what, int code) const;
  // Begins MPI where nobody has; raises where threads cannot share it.
  void begin();
  // Ends MPI if begin() began it and no group has failed: an end waits for all
  // ranks.
  void end();
  std::string describe() const;
  std::atomic<bool> has_failed = false;

 private:
  explicit Library(void* handle);
  void find_constants(void* handle);
  bool is_open_mpi_ = false;
  bool begun_here_ = false;
};

}  // namespace taeda::distributed::mpi
