// Messages from a text with "{}" where values go. fmt itself is seen by
// format.cpp alone: a source that includes it compiles four to six seconds
// longer.
#pragma once

#include <taeda/c10/util/check.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace taeda {

// A text with as many "{}" as there are values, checked when it is compiled.
template <class... Values>
struct MessageText {
  const char* text;

  consteval MessageText(const char* s) : text(s) {
    size_t places = 0;
    for (; *s != '\0'; ++s) {
      if (*s == '}' || (*s == '{' && *++s != '}')) throw "a lone brace";
      places += *s == '}';
    }
    if (places != sizeof...(Values)) throw "as many {} as values";
  }
};

// `count` values, already text, put into their places.
TAEDA_API std::string fill_message(const char* text,
                                   const std::string* values,
                                   size_t count);

// The shortest decimal text that reads back as `v`, as Python's repr has it,
// but without ".0" after an integer.
TAEDA_API std::string shortest_text(double v);

// `text` with each "{name}" replaced by that name's value.
TAEDA_API std::string fill_template(
    const char* text,
    std::initializer_list<std::pair<const char*, std::string>> values);

// Values appear as str_cat writes them.
template <class... Values>
std::string message(MessageText<std::type_identity_t<Values>...> text,
                    const Values&... values) {
  if constexpr (sizeof...(Values) == 0) {
    return text.text;
  } else {
    const std::string parts[] = {str_cat(values)...};
    return fill_message(text.text, parts, sizeof...(Values));
  }
}

}  // namespace taeda
