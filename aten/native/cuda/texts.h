// The texts of records' formulas, and of what they include, as generated.
#pragma once

#include <taeda/c10/cuda/nvrtc.h>

#include <string_view>

namespace taeda::cuda {

// By PointwiseOp::kernel or ReduceOp::kernel; internal error for others.
std::string_view text_of(const char* kernel);

struct Headers {
  const Header* list;
  size_t count;
};
Headers headers();

}  // namespace taeda::cuda
