#include <taeda/csrc/autograd/node_names.h>

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <typeinfo>

namespace taeda::autograd {

// Generated: the class of each node and its names, an empty text behind them,
// and a second one at the end. One text, for pointers would have to be
// relocated at each start.
extern const char kNodeNames[];

namespace {
const char* behind(const char* text) { return text + std::strlen(text) + 1; }

std::string class_of(const Node& node) {
  int status = 0;
  char* text =
      abi::__cxa_demangle(typeid(node).name(), nullptr, nullptr, &status);
  if (text == nullptr) return {};
  std::string whole = text;
  std::free(text);
  size_t colon = whole.rfind(':');
  return colon == std::string::npos ? whole : whole.substr(colon + 1);
}
}  // namespace

const char* names_of_fields(const Node& node) {
  const std::string wanted = class_of(node);
  for (const char* at = kNodeNames; *at != '\0';) {
    const char* names = behind(at);
    if (wanted == at) return names;
    for (at = names; *at != '\0';) at = behind(at);
    ++at;
  }
  return nullptr;
}

}  // namespace taeda::autograd
