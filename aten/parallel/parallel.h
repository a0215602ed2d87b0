// Splitting a range over the process's one thread pool.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include <taeda/c10/util/macros.h>

namespace taeda {

// Threads used by one parallel_for, the caller included. One figure for the
// process: a count set on one thread holds for all.
TAEDA_API int get_num_threads();
TAEDA_API void set_num_threads(int count);

// Threads that run independent operators beside each other. Only stored here:
// whoever owns such a pool reads it once when the pool starts.
TAEDA_API int get_num_interop_threads();
TAEDA_API void set_num_interop_threads(int count);

// True on every thread, the caller's included, while it runs a part of a
// range. Nested calls of parallel_for run inline.
TAEDA_API bool in_parallel_region();

// 0 .. get_num_threads() - 1 within a region, 0 outside of one.
TAEDA_API int get_thread_num();

namespace detail {

// A borrowed callable: std::function would allocate and own.
struct RangeFn {
  void* context;
  void (*call)(void* context, int64_t begin, int64_t end);
};

TAEDA_API void parallel_for_threads(int64_t begin,
                                    int64_t end,
                                    int64_t grain,
                                    RangeFn fn);

}  // namespace detail

// Calls f(part_begin, part_end) for parts that cover [begin, end) once, each at
// least `grain` long where more than one is made. The split depends only on the
// range, the grain and get_num_threads(), so results that depend on it repeat.
// The first exception thrown by a part is rethrown here after all have ended.
template <typename F>
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (begin >= end) {
    return;
  }
  if (end - begin <= grain || in_parallel_region() || get_num_threads() == 1) {
    f(begin, end);
    return;
  }
  using Callable = std::remove_reference_t<F>;
  const void* address = std::addressof(f);
  detail::parallel_for_threads(
      begin,
      end,
      grain,
      {const_cast<void*>(address),
       [](void* context, int64_t part_begin, int64_t part_end) {
         (*static_cast<Callable*>(context))(part_begin, part_end);
       }});
}

}  // namespace taeda
