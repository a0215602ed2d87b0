// What PYTORCH_CUDA_ALLOC_CONF and its like set.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace taeda::cuda {

// Options of the allocator, "name:value,...", from the first of
// TAEDA_CUDA_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF that is
// set. What is not here is refused where its value would change something.
struct MemoryOptions {
  bool expandable_segments = true;
  // Free blocks of a device that has more of its memory than this share are
  // given back, the oldest first, before more is taken; 0: never.
  double garbage_collection_threshold = 0;
  // Larger blocks of segments that do not grow are not split.
  size_t max_split_size = SIZE_MAX;
  // (sizes up to, parts of a power of two that sizes are rounded up to).
  std::vector<std::pair<size_t, size_t>> roundup_power2_divisions;
  std::optional<double> per_process_memory_fraction;
  std::string text;  // as it was given

  // RuntimeError with the name for an unknown option, ValueError for a value
  // that it does not have, NotImplementedError for what is not there yet.
  static MemoryOptions parse(std::string_view text);
  size_t rounded(size_t bytes, size_t unit) const;
};

// Those in force; the first call reads the environment.
const MemoryOptions& memory_options();
void set_memory_options(std::string_view text);

}  // namespace taeda::cuda
