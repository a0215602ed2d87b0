#include <taeda/aten/native/cuda/texts.h>

#include <algorithm>
#include <iterator>

namespace taeda::cuda {

namespace {

// Both are sorted by name.
constexpr Header kTexts[] = {
#include <texts.inc>
};
constexpr Header kHeaders[] = {
#include <headers.inc>
};

}  // namespace

std::string_view text_of(const char* kernel) {
  std::string_view wanted = kernel;
  auto found = std::lower_bound(std::begin(kTexts),
                                std::end(kTexts),
                                wanted,
                                [](const Header& h, std::string_view name) {
                                  return std::string_view(h.name) < name;
                                });
  TAEDA_INTERNAL_ASSERT(
      found != std::end(kTexts) && std::string_view(found->name) == wanted,
      "no device text of ",
      wanted);
  return found->text;
}

Headers headers() { return {kHeaders, std::size(kHeaders)}; }

}  // namespace taeda::cuda
