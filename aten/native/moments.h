// The arguments of var and its kin.
#pragma once

#include <taeda/c10/util/small_vector.h>

#include <optional>

namespace taeda::native {

using DimList = std::optional<IntArrayRef>;

using Correction = std::optional<Scalar>;

}  // namespace taeda::native
