// The arguments of searchsorted.
#pragma once

#include <optional>
#include <string_view>

namespace taeda::native {

using Side = std::optional<std::string_view>;

bool is_right(bool right, Side side);

}  // namespace taeda::native
