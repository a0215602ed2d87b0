#include <taeda/aten/expr/print.h>
#include <taeda/c10/util/format.h>

#include <algorithm>
#include <cmath>

namespace taeda::expr {

namespace {

// Binding strengths of the language, which are Python's.
enum Level {
  kTernary,
  kOr,
  kAnd,
  kNot,
  kCompare,
  kBitOr,
  kBitXor,
  kBitAnd,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPower,
  kAtom,
};
constexpr const char* kUnaryText[] = {"-", "not ", "~"};
constexpr const char* kBinaryText[] = {
    "+", "-", "*", "/", "&", "|", "^", "<<", ">>"};
constexpr Level kBinaryLevel[] = {
    kSum, kSum, kProduct, kProduct, kBitAnd, kBitOr, kBitXor, kShift, kShift};
constexpr const char* kCompareText[] = {"==", "!=", "<", "<=", ">", ">="};
constexpr const char* kLogicText[] = {"and", "or"};
constexpr const char* kConstantText[] = {
    "pi", "e", "inf", "nan", "lowest", "highest", "epsilon"};
constexpr const char* kCastText[] = {"bool", "int", "float", "complex", "cast"};

// The shortest text that reads back as `v`, with a point or an exponent.
std::string float_text(double v) {
  std::string text = shortest_text(v);
  bool marked = text.find_first_of(".en") != text.npos;
  return marked ? text : text + ".0";
}

std::string literal_text(const Literal& v) {
  switch (v.kind) {
    case Kind::Bool:
      return v.integer != 0 ? "True" : "False";
    case Kind::Int:
      return str_cat(v.integer);
    case Kind::Float:
      return float_text(v.real);
    case Kind::Complex:
      break;
  }
  std::string imag = shortest_text(v.imag) + "j";
  if (v.real == 0 && !std::signbit(v.real)) return imag;
  bool signed_text = imag[0] == '-';
  return shortest_text(v.real) + (signed_text ? "" : "+") + imag;
}

class TextPrinter {
 public:
  explicit TextPrinter(const Graph& g) : g_(g) {}
  std::string text(Id id, Level outer = kTernary) const {
    auto [inner, level] = with_level(id);
    return level < outer ? "(" + inner + ")" : inner;
  }

 private:
  using Text = std::pair<std::string, Level>;

  static Level next(Level level) { return static_cast<Level>(level + 1); }

  Text with_level(Id id) const {
    const Node& n = g_[id];
    switch (n.type) {
      case Word::Literal: {
        std::string value = literal_text(g_.literal_of(id));
        bool atom =
            value[0] != '-' && std::ranges::find(value, '+') == value.end();
        return {value, atom ? kAtom : kUnary};
      }
      case Word::Constant:
        return {kConstantText[n.payload], kAtom};
      case Word::Name:
        return {g_.name_of(id), kAtom};
      case Word::Unary:
        return unary(n);
      case Word::Binary: {
        Level level = kBinaryLevel[n.payload];
        return {infix(n, kBinaryText[n.payload], level, next(level)), level};
      }
      case Word::Compare: {
        Level inner = next(kCompare);
        return {infix(n, kCompareText[n.payload], inner, inner), kCompare};
      }
      case Word::Logic: {
        Level level = n.payload == 0 ? kAnd : kOr;
        return {infix(n, kLogicText[n.payload], level, next(level)), level};
      }
      case Word::Cond:
        return {message("{} if {} else {}",
                        text(n.args[1], kOr),
                        text(n.args[0], kOr),
                        text(n.args[2])),
                kTernary};
      case Word::Cast:
        return {message("{}({})", kCastText[n.payload], text(n.args[0])),
                kAtom};
      case Word::Access:
        return access(n);
      default:
        return call(id, n);
    }
  }

  Text access(const Node& n) const {
    constexpr const char* names[] = {
        "at", "size", "rank", "numel", "", "flat", "", "len", "", "along"};
    Level side = next(kCompare);
    switch (static_cast<AccessOp>(n.payload)) {
      case AccessOp::Missing:
        return {text(n.args[0], side) + " is None", kCompare};
      case AccessOp::Names:
        return {text(n.args[1], side) + " in " + text(n.args[0], kAtom),
                kCompare};
      case AccessOp::Entry:
        return {message("{}[{}]", text(n.args[0], kAtom), text(n.args[1])),
                kAtom};
      case AccessOp::Read:
        return {element(n), kAtom};
      case AccessOp::Inside:
        return {"inside(" + element(n) + ")", kAtom};
      default:
        return {message("{}({})", names[n.payload], list(n)), kAtom};
    }
  }

  Text unary(const Node& n) const {
    if (n.payload == static_cast<uint16_t>(UnaryOp::Not)) {
      return {"not " + text(n.args[0], kNot), kNot};
    }
    std::string inner = text(n.args[0], kUnary);
    // A literal in parentheses, lest it be read as a negative literal.
    if (g_.is_literal(n.args[0])) inner = "(" + inner + ")";
    return {kUnaryText[n.payload] + inner, kUnary};
  }

  std::string infix(const Node& n, const char* op, Level l, Level r) const {
    return message("{} {} {}", text(n.args[0], l), op, text(n.args[1], r));
  }

  Text call(Id id, const Node& n) const {
    if (g_.is_call(id, "pow")) {
      return {text(n.args[0], kAtom) + " ** " + text(n.args[1], kUnary),
              kPower};
    }
    return {message("{}({})", g_.function_of(id).name, list(n)), kAtom};
  }

  std::string element(const Node& n) const {
    std::string index = text(n.args[1]);
    index = index == "at(axis)" ? "..." : "axis: " + index;
    return message("{}[{}]", text(n.args[0], kAtom), index);
  }

  std::string list(const Node& n) const {
    std::string inner;
    for (int i = 0; i < n.count; ++i) {
      if (i > 0) inner += ", ";
      inner += text(n.args[i]);
    }
    return inner;
  }

  const Graph& g_;
};

}  // namespace

std::string to_text(const Graph& g, Id id) { return TextPrinter(g).text(id); }

}  // namespace taeda::expr
