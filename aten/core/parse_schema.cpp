// Schemas of user operators, in the grammar that records are written in.
#include <taeda/aten/core/op_info.h>

#include <array>
#include <cctype>

namespace taeda {

namespace {

constexpr std::array<std::pair<std::string_view, ValueType>, 12> kTypes = {{
    {"Tensor", ValueType::Tensor},
    {"Scalar", ValueType::Scalar},
    {"int", ValueType::Int},
    {"SymInt", ValueType::SymInt},
    {"float", ValueType::Float},
    {"bool", ValueType::Bool},
    {"str", ValueType::Str},
    {"ScalarType", ValueType::ScalarType},
    {"Layout", ValueType::Layout},
    {"Device", ValueType::Device},
    {"MemoryFormat", ValueType::MemoryFormat},
    {"Generator", ValueType::Generator},
}};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  ParsedSchema schema() {
    ParsedSchema out;
    size_t open = text_.find('(');
    require(open != text_.npos, "expected `name(arguments) -> returns`");
    out.name = text_.substr(0, open);
    at_ = open + 1;
    bool keyword_only = false;
    while (!accept(')')) {
      if (!out.values.empty() || keyword_only) expect(',');
      if (accept('*')) {
        keyword_only = true;
        continue;
      }
      ArgInfo argument = value();
      if (keyword_only) argument.flags |= ArgInfo::kKeywordOnly;
      default_value(argument);
      out.values.push_back(argument);
    }
    out.arguments = out.values.size();
    require(accept('-') && accept('>'), "expected `->`");
    returns(out);
    skip_blanks();
    require(at_ == text_.size(), "text behind the schema");
    return out;
  }

 private:
  void returns(ParsedSchema& out) {
    if (!accept('(')) {
      out.values.push_back(value());
      return;
    }
    for (bool first = true; !accept(')'); first = false) {
      if (!first) expect(',');
      out.values.push_back(value());
    }
  }

  // A type with its annotations, and the name where one follows.
  ArgInfo value() {
    ArgInfo out;
    auto [type_at, type_size] = word("a type");
    out.type = ValueType::Other;
    for (auto [name, type] : kTypes) {
      if (name == text_.substr(type_at, type_size)) out.type = type;
    }
    if (out.type == ValueType::Other) parameters();
    alias(out);
    bool optional = accept('?');
    if (accept('[')) {
      out.flags |= ArgInfo::kList;
      if (optional) out.flags |= ArgInfo::kOptionalElement;
      if (!accept(']')) {
        out.list_size = static_cast<int8_t>(number());
        expect(']');
      }
      alias(out);
      optional = accept('?');
    }
    if (optional) out.flags |= ArgInfo::kOptional;
    alias(out);
    skip_blanks();
    if (at_ < text_.size() && is_word(text_[at_])) {
      auto [at, size] = word("a name");
      out.name_at = static_cast<uint16_t>(at);
      out.name_size = static_cast<uint8_t>(size);
    }
    return out;
  }

  // `(str, int)` behind a type that is only kept as text.
  void parameters() {
    if (at_ >= text_.size() || text_[at_] != '(') return;
    int depth = 0;
    do {
      require(at_ < text_.size(), "expected `)`");
      depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
      ++at_;
    } while (depth > 0);
  }

  // `(a)`, `(a!)`, `(a -> *)`, `(a|b)`.
  void alias(ArgInfo& out) {
    if (at_ >= text_.size() || text_[at_] != '(') return;
    ++at_;
    while (!accept(')')) {
      require(at_ < text_.size(), "expected `)`");
      char c = text_[at_++];
      if (c == '*') out.alias |= ArgInfo::kAnyAlias;
      if (c == '!') out.flags |= ArgInfo::kWritten;
      if (c >= 'a' && c <= 'z') {
        out.alias |= static_cast<uint8_t>(1 << std::min(c - 'a', 6));
      }
    }
  }

  // The text up to the comma or parenthesis that ends the argument.
  void default_value(ArgInfo& out) {
    if (!accept('=')) return;
    skip_blanks();
    size_t begin = at_;
    int depth = 0;
    for (char quote = 0; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (quote != 0) {
        if (c == '\\') ++at_;
        if (c == quote) quote = 0;
        continue;
      }
      if (c == '"' || c == '\'') quote = c;
      if (c == '[') ++depth;
      if (c == ']') --depth;
      if (depth == 0 && (c == ',' || c == ')')) break;
    }
    require(at_ > begin, "expected a default value");
    out.flags |= ArgInfo::kHasDefault;
    out.default_at = static_cast<uint16_t>(begin);
    out.default_size = static_cast<uint8_t>(at_ - begin);
  }

  int64_t number() {
    auto [at, size] = word("a number");
    int64_t value = 0;
    for (char c : text_.substr(at, size)) {
      require(std::isdigit(static_cast<unsigned char>(c)), "expected a number");
      value = value * 10 + (c - '0');
      require(value < 128, "a list of this size is not supported");
    }
    return value;
  }

  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  }
  std::pair<size_t, size_t> word(const char* what) {
    skip_blanks();
    size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    require(at_ > begin && at_ - begin < 256, str_cat("expected ", what));
    return {begin, at_ - begin};
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n'))
      ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) { require(accept(c), str_cat("expected `", c, "`")); }
  void require(bool holds, std::string_view what) const {
    TAEDA_CHECK(
        holds, "schema: ", what, " at character ", at_, " of `", text_, "`");
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

ParsedSchema parse_schema(std::string_view text) {
  TAEDA_CHECK(text.size() < 65536, "schema: longer than 65535 characters");
  return Parser(text).schema();
}

}  // namespace taeda
