#pragma once

#include <taeda/c10/util/array_ref.h>
#include <taeda/c10/util/check.h>

#include <cstdint>
#include <string_view>

namespace taeda {

enum class Layout : int8_t {
  Strided = 0,
  Sparse = 1,
  SparseCsr = 2,
  Mkldnn = 3,
  SparseCsc = 4,
  SparseBsr = 5,
  SparseBsc = 6,
  Jagged = 7,
};

enum class MemoryFormat : int8_t {
  Contiguous = 0,
  Preserve = 1,
  ChannelsLast = 2,
  ChannelsLast3d = 3,
};

constexpr std::string_view layout_name(Layout l) {
  constexpr std::string_view names[] = {"strided",
                                        "sparse_coo",
                                        "sparse_csr",
                                        "_mkldnn",
                                        "sparse_csc",
                                        "sparse_bsr",
                                        "sparse_bsc",
                                        "jagged"};
  return names[static_cast<int>(l)];
}
constexpr std::string_view memory_format_name(MemoryFormat f) {
  constexpr std::string_view names[] = {"contiguous_format",
                                        "preserve_format",
                                        "channels_last",
                                        "channels_last_3d"};
  return names[static_cast<int>(f)];
}
inline void append_to(std::string& out, Layout l) {
  out.append(layout_name(l));
}
inline void append_to(std::string& out, MemoryFormat f) {
  out.append(memory_format_name(f));
}

}  // namespace taeda
