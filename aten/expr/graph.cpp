#include <taeda/aten/expr/graph.h>
#include <taeda/c10/util/check.h>

#include <algorithm>
#include <cstring>

namespace taeda::expr {

namespace {

constexpr uint16_t kPayload = 0xFFF;
// Numbers of names from here on are the special ones.
constexpr uint16_t kSpecial = 0x800;
constexpr const char* kSpecialNames[] = {"grad",
                                         "result",
                                         "a",
                                         "b",
                                         "c",
                                         "acc",
                                         "count",
                                         "axis",
                                         "position",
                                         "index"};

Word type_of(uint16_t word) { return static_cast<Word>(word >> 12); }

// Words of a literal's value behind its head.
size_t literal_words(uint16_t head) {
  constexpr size_t sizes[] = {1, 4, 4, 8};
  return sizes[head & 3];
}

template <class T>
T bytes_as(const uint16_t* words) {
  T value;
  std::memcpy(&value, words, sizeof(T));
  return value;
}

bool same_bits(const Literal& a, const Literal& b) {
  return a.kind == b.kind && a.integer == b.integer &&
         std::memcmp(&a.real, &b.real, sizeof(double)) == 0 &&
         std::memcmp(&a.imag, &b.imag, sizeof(double)) == 0;
}

}  // namespace

size_t Graph::NodeHash::operator()(const Node& n) const {
  size_t hash = static_cast<size_t>(n.type) << 16 | n.payload;
  for (int i = 0; i < n.count; ++i)
    hash = hash * 0x9E3779B97F4A7C15 + n.args[i];
  return hash ^ hash >> 29;
}

// Equal nodes are one: so comparing two expressions is comparing two numbers,
// and an expression that occurs twice is stored once.
Id Graph::intern(const Node& node) {
  auto [place, fresh] =
      known_.try_emplace(node, static_cast<Id>(nodes_.size()));
  if (fresh) nodes_.push_back(node);
  return place->second;
}

Id Graph::literal(const Literal& value) {
  auto same = [&](const Literal& other) { return same_bits(value, other); };
  auto found = std::find_if(literals_.begin(), literals_.end(), same);
  auto number = static_cast<uint16_t>(found - literals_.begin());
  if (found == literals_.end()) literals_.push_back(value);
  return intern({Word::Literal, number});
}

Id Graph::name(std::string_view text) {
  auto found = std::find(names_.begin(), names_.end(), text);
  auto number = static_cast<uint16_t>(found - names_.begin());
  if (found == names_.end()) names_.emplace_back(text);
  return intern({Word::Name, number});
}

Id Graph::constant(ConstantName which) {
  return intern({Word::Constant, static_cast<uint16_t>(which)});
}
Id Graph::unary(UnaryOp op, Id operand) {
  return intern({Word::Unary, static_cast<uint16_t>(op), 1, {operand}});
}
Id Graph::binary(BinaryOp op, Id left, Id right) {
  return intern({Word::Binary, static_cast<uint16_t>(op), 2, {left, right}});
}
Id Graph::compare(CompareOp op, Id left, Id right) {
  return intern({Word::Compare, static_cast<uint16_t>(op), 2, {left, right}});
}
Id Graph::logic(LogicOp op, Id left, Id right) {
  return intern({Word::Logic, static_cast<uint16_t>(op), 2, {left, right}});
}
Id Graph::cond(Id test, Id then, Id other) {
  return intern({Word::Cond, 0, 3, {test, then, other}});
}
Id Graph::call(int function, std::initializer_list<Id> args) {
  const Function& f = kFunctions[function];
  TAEDA_INTERNAL_ASSERT(args.size() == f.arity, f.name, ": wrong arity");
  Node node{Word::Call, static_cast<uint16_t>(function), f.arity};
  std::copy(args.begin(), args.end(), node.args);
  return intern(node);
}
Id Graph::cast(uint8_t kind, Id operand) {
  return intern({Word::Cast, kind, 1, {operand}});
}

Id Graph::load_literal(const uint16_t*& words, uint16_t payload) {
  Literal value;
  value.kind = static_cast<Kind>(payload);
  if (value.kind == Kind::Bool) {
    value.integer = *words;
  } else if (value.kind == Kind::Int) {
    value.integer = bytes_as<int64_t>(words);
  } else {
    value.real = bytes_as<double>(words);
    if (value.kind == Kind::Complex) value.imag = bytes_as<double>(words + 4);
  }
  words += literal_words(payload);
  return literal(value);
}

// Postfix words to nodes: an operand pushes itself, an operator takes as many
// nodes as it has operands. Ends where the next section begins.
Id Graph::load(const uint16_t* words, const std::vector<std::string>& names) {
  std::vector<Id> stack;
  for (;;) {
    uint16_t word = *words++;
    uint16_t payload = word & kPayload;
    Word type = type_of(word);
    Node node{type, payload};
    switch (type) {
      case Word::End:
      case Word::Section:
        TAEDA_INTERNAL_ASSERT(stack.size() == 1, "expression words: no value");
        return stack[0];
      case Word::Name:
        stack.push_back(payload >= kSpecial
                            ? name(kSpecialNames[payload - kSpecial])
                            : name(names.at(payload)));
        continue;
      case Word::Integer:
        // Sign extension of twelve bits.
        stack.push_back(integer((payload ^ kSpecial) - kSpecial));
        continue;
      case Word::Literal:
        stack.push_back(load_literal(words, payload));
        continue;
      case Word::Constant:
        break;
      case Word::Unary:
      case Word::Cast:
        node.count = 1;
        break;
      case Word::Binary:
      case Word::Compare:
      case Word::Logic:
        node.count = 2;
        break;
      case Word::Cond:
        node.count = 3;
        break;
      case Word::Call:
        node.count = kFunctions[payload].arity;
        break;
      case Word::Access:
        node.count = arity_of(static_cast<AccessOp>(payload));
        break;
    }
    size_t first = stack.size() - node.count;
    std::copy_n(stack.begin() + static_cast<std::ptrdiff_t>(first),
                node.count,
                node.args);
    stack.resize(first);
    stack.push_back(intern(node));
  }
}

// Operands of the parts of index maps; lists of indices are chains of two.
uint8_t arity_of(AccessOp op) {
  switch (op) {
    case AccessOp::At:
    case AccessOp::Rank:
    case AccessOp::Numel:
    case AccessOp::Len:
    case AccessOp::Missing:
      return 1;
    case AccessOp::Along:
      return 3;
    default:
      return 2;
  }
}

// The node with other operands; the same node if they are the same.
Id Graph::rebuilt(Id id, const Id* args) {
  Node node = nodes_[id];
  std::copy_n(args, node.count, node.args);
  return intern(node);
}

Id Graph::substitute(Id id, const std::unordered_map<std::string, Id>& values) {
  Node node = nodes_[id];
  if (node.type == Word::Name) {
    auto found = values.find(names_[node.payload]);
    return found == values.end() ? id : found->second;
  }
  for (int i = 0; i < node.count; ++i) {
    node.args[i] = substitute(node.args[i], values);
  }
  return intern(node);
}

Id Graph::replace(Id id, Id part, Id by) {
  if (id == part) return by;
  Node node = nodes_[id];
  for (int i = 0; i < node.count; ++i) {
    node.args[i] = replace(node.args[i], part, by);
  }
  return intern(node);
}

bool Graph::uses(Id id, std::string_view name) const {
  const Node& node = nodes_[id];
  if (node.type == Word::Name) return names_[node.payload] == name;
  for (int i = 0; i < node.count; ++i) {
    if (uses(node.args[i], name)) return true;
  }
  return false;
}

std::vector<std::string> Graph::names(Id id) const {
  std::vector<std::string> found;
  auto visit = [&](auto&& self, Id at) -> void {
    const Node& node = nodes_[at];
    if (node.type == Word::Name) {
      const std::string& text = names_[node.payload];
      bool seen = std::find(found.begin(), found.end(), text) != found.end();
      if (!seen) found.push_back(text);
    }
    for (int i = 0; i < node.count; ++i) self(self, node.args[i]);
  };
  visit(visit, id);
  return found;
}

namespace {

// Reads the bytes after a section's word, and goes behind the 0.
std::string take_text(const uint16_t*& words) {
  std::string text;
  while (*words != 0) text += static_cast<char>(*words++);
  ++words;
  return text;
}

Role role_of(uint16_t word) { return static_cast<Role>(word >> 8 & 15); }

}  // namespace

// Where each formula of a record begins, without building any: words are
// skipped by their length. A choice holds for all sections behind it.
std::vector<Section> sections_of(const uint16_t* words) {
  std::vector<Section> found;
  std::string choice;
  while (words != nullptr && type_of(*words) != Word::End) {
    uint16_t word = *words++;
    if (type_of(word) == Word::Literal) {
      words += literal_words(word);
    } else if (type_of(word) == Word::Section) {
      Role role = role_of(word);
      if (role == Role::Choice) {
        choice = take_text(words);
      } else if (role == Role::Numbers) {
        take_text(words);
      } else {
        Kind kind = static_cast<Kind>(word >> 6 & 3);
        found.push_back({role, kind, word & 63, words, choice});
      }
    }
  }
  return found;
}

std::vector<std::string> numbers_of(const uint16_t* words) {
  std::vector<std::string> names;
  // They come first.
  if (words == nullptr || type_of(*words) != Word::Section) return names;
  if (role_of(*words) != Role::Numbers) return names;
  names.emplace_back();
  for (char c : take_text(++words)) {
    if (c == ' ') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

int find_function(const char* name) {
  for (int i = 0; i < kNumFunctions; ++i) {
    if (std::strcmp(kFunctions[i].name, name) == 0) return i;
  }
  return -1;
}

}  // namespace taeda::expr
