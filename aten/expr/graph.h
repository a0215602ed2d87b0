// Scalar expressions as nodes of a graph in which equal nodes are one.
#pragma once

#include <taeda/aten/expr/functions.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace taeda::expr {

// bool < int < float < complex: the kind of a value, without its width.
enum class Kind : uint8_t { Bool, Int, Float, Complex };
inline constexpr int kNumKinds = 4;

// Note [Expression words]
// A record's expressions are constant arrays of 16-bit words in postfix order:
// the node in the upper four bits, a payload in the lower twelve (the number of
// a name, function, constant or operator). An `Integer` holds its value, a
// `Literal` is followed by its bytes. A `Section` word stands before each
// expression and says its role, kind of compute type and index. Where a formula
// differs by parameters, a `Choice` section with their values as text (a byte a
// word, ended by 0) stands before the expressions of each; `Numbers` are names
// behind the arguments', with spaces between. The writer is
// tools/codegen/expr_code.py.
enum class Word : uint8_t {
  End,
  Name,
  Integer,
  Literal,
  Constant,
  Unary,
  Binary,
  Compare,
  Logic,
  Cond,
  Call,
  Cast,
  Section,
  Access,
};

enum class Role : uint8_t {
  Forward,
  Gradient,
  Init,
  Map,
  Combine,
  Finish,
  Element,  // of an index map: one element of the result
  Choice,   // which values of parameters the words behind it are for
  Numbers,  // names that are no arguments
  Step,     // of a scan: from one element to the next, 1 or -1
};

enum class UnaryOp : uint8_t { Neg, Not, Invert };
enum class BinaryOp : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  And,
  Or,
  Xor,
  ShiftLeft,
  ShiftRight,
};
enum class CompareOp : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
enum class LogicOp : uint8_t { And, Or };
// What an index map looks at; the first argument of all but At is the name of a
// tensor or a list. In the second one of Read the name "axis" runs over the
// tensor's axes.
enum class AccessOp : uint8_t {
  At,    // the element's index along an axis of the result
  Size,  // of a tensor along an axis
  Rank,
  Numel,
  Read,   // a tensor's element, by the index along each axis
  Flat,   // a tensor's element, by its number in row-major order
  Entry,  // of a list
  Len,
  Names,    // whether a list of axes has this one
  Along,    // sum of a list's entries where a list of axes names this one
  Missing,  // whether an argument is None
  Inside,   // whether a tensor has the element that Read would read
};
TAEDA_API uint8_t arity_of(AccessOp op);
enum class ConstantName : uint8_t { Pi, E, Inf, Nan, Lowest, Highest, Epsilon };
// A cast to a kind, or to the compute type itself.
inline constexpr uint8_t kCastToCompute = 4;

struct Literal {
  Kind kind = Kind::Int;
  int64_t integer = 0;  // also of a bool
  double real = 0;      // of Float and Complex
  double imag = 0;

  static Literal of(int64_t v) { return {Kind::Int, v}; }
  static Literal of(bool v) { return {Kind::Bool, v ? 1 : 0}; }
  static Literal of(double v) { return {Kind::Float, 0, v}; }
  static Literal of(double re, double im) { return {Kind::Complex, 0, re, im}; }
  // The real part of any kind.
  double value() const {
    return kind <= Kind::Int ? static_cast<double>(integer) : real;
  }
  bool is(double number) const {
    return kind != Kind::Bool && value() == number && imag == 0;
  }
  bool truth() const { return value() != 0 || imag != 0; }
};

using Id = uint32_t;

struct Node {
  Word type;
  uint16_t payload = 0;  // name, literal, function, operator: by type
  uint8_t count = 0;
  Id args[kMaxArity] = {};
  bool operator==(const Node&) const = default;
};

// Kinds of the names that an expression uses, and of the compute type.
struct Kinds {
  std::unordered_map<std::string, Kind> names;
  Kind compute = Kind::Float;
};

// Owns nodes; not shared between threads.
class TAEDA_API Graph {
 public:
  // The expression that starts at `words` and ends before the next section (or
  // the end). `names[i]` is the text of name i; special names need none.
  Id load(const uint16_t* words, const std::vector<std::string>& names = {});

  Id literal(const Literal& value);
  Id integer(int64_t value) { return literal(Literal::of(value)); }
  Id name(std::string_view text);
  Id constant(ConstantName which);
  Id unary(UnaryOp op, Id operand);
  Id binary(BinaryOp op, Id left, Id right);
  Id compare(CompareOp op, Id left, Id right);
  Id logic(LogicOp op, Id left, Id right);
  Id cond(Id test, Id then, Id other);
  Id call(int function, std::initializer_list<Id> args);
  Id cast(uint8_t kind, Id operand);

  const Node& operator[](Id id) const { return nodes_[id]; }
  const Literal& literal_of(Id id) const {
    return literals_[nodes_[id].payload];
  }
  bool is_literal(Id id) const { return nodes_[id].type == Word::Literal; }
  const std::string& name_of(Id id) const { return names_[nodes_[id].payload]; }
  const Function& function_of(Id id) const {
    return kFunctions[nodes_[id].payload];
  }
  bool is_unary(Id id, UnaryOp op) const {
    return nodes_[id].type == Word::Unary &&
           nodes_[id].payload == static_cast<uint16_t>(op);
  }
  bool is_binary(Id id, BinaryOp op) const {
    return nodes_[id].type == Word::Binary &&
           nodes_[id].payload == static_cast<uint16_t>(op);
  }
  bool is_access(Id id, AccessOp op) const {
    return nodes_[id].type == Word::Access &&
           nodes_[id].payload == static_cast<uint16_t>(op);
  }
  bool is_call(Id id, std::string_view function) const {
    return nodes_[id].type == Word::Call && function == function_of(id).name;
  }

  // The same node over other arguments.
  Id rebuilt(Id id, const Id* args);
  // Names replaced by expressions, all at once.
  Id substitute(Id id, const std::unordered_map<std::string, Id>& values);
  // Every occurrence of `part` replaced.
  Id replace(Id id, Id part, Id by);
  bool uses(Id id, std::string_view name) const;
  // Names in the order of their first occurrence.
  std::vector<std::string> names(Id id) const;

  // The kind of a value; RuntimeError for an illegal combination.
  Kind kind(Id id, const Kinds& kinds) const;
  // The kind that all arguments of a call are converted to.
  Kind argument_kind(Id call, const Kinds& kinds) const;

 private:
  Id intern(const Node& node);
  Id load_literal(const uint16_t*& words, uint16_t payload);

  struct NodeHash {
    size_t operator()(const Node& n) const;
  };
  std::vector<Node> nodes_;
  std::unordered_map<Node, Id, NodeHash> known_;
  std::vector<Literal> literals_;
  std::vector<std::string> names_;
};

// One section of a record's words.
struct Section {
  Role role;
  Kind kind;
  int index;
  const uint16_t* words;  // of the expression, behind the section's word
  std::string choice;     // under which it holds, "approximate: tanh"; or empty
};
// The sections that hold expressions.
TAEDA_API std::vector<Section> sections_of(const uint16_t* words);
// Names that expressions use besides the arguments, in the order of numbers.
TAEDA_API std::vector<std::string> numbers_of(const uint16_t* words);

inline Kind widest(Kind a, Kind b) { return a < b ? b : a; }

}  // namespace taeda::expr
