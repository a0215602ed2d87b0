#include <taeda/c10/util/format.h>

#include <fmt/args.h>

namespace taeda {

std::string fill_message(const char* text,
                         const std::string* values,
                         size_t count) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (size_t i = 0; i < count; ++i) store.push_back(std::cref(values[i]));
  return fmt::vformat(text, store);
}

std::string shortest_text(double v) { return fmt::format("{}", v); }

std::string fill_template(
    const char* text,
    std::initializer_list<std::pair<const char*, std::string>> values) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const auto& [name, value] : values) {
    store.push_back(fmt::arg(name, std::cref(value)));
  }
  return fmt::vformat(text, store);
}

}  // namespace taeda
