#include <taeda/csrc/compiler/graph/sizes.h>
#include <taeda/csrc/compiler/loops/formula.h>
#include <taeda/csrc/compiler/loops/index_map.h>

#include <algorithm>
#include <cmath>

namespace taeda::compiler::loops {

namespace {

using expr::AccessOp;
using expr::BinaryOp;
using expr::CompareOp;
using expr::Id;
using expr::Word;

int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// Thrown inside of this file where a formula is no map of loops.
struct NotAMap {};
// And where an axis was parted, so that what was worked out is old.
struct Parted {};

class MapReader {
 public:
  MapReader(const Graph& graph,
            const Node& node,
            expr::Graph& expressions,
            Spaces& spaces)
      : graph_(graph),
        node_(node),
        g_(expressions),
        spaces_(spaces),
        dims_(spaces.dims(node.results[0])) {}

  IndexMap read(Id formula) {
    map_.formula = element(formula);
    return std::move(map_);
  }

 private:
  [[noreturn]] static void fail() { throw NotAMap(); }

  // Values ---------------------------------------------------------------

  Id element(Id id) {
    const expr::Node node = g_[id];
    switch (node.type) {
      case Word::Access:
        return access_element(id, node);
      case Word::Cond:
        return choice(node);
      case Word::Compare:
        return compared(id, node);
      case Word::Name:
        return name_element(id);
      default: {
        expr::Node made = node;
        for (int i = 0; i < node.count; ++i) {
          made.args[i] = element(node.args[i]);
        }
        return g_.rebuilt(id, made.args);
      }
    }
  }

  Id access_element(Id id, const expr::Node& node) {
    if (g_.is_access(id, AccessOp::Read)) return new_read(node, std::nullopt);
    if (g_.is_access(id, AccessOp::Inside)) fail();
    if (g_.is_access(id, AccessOp::Flat)) fail();
    return integer_element(integer(id));
  }

  // Numbers among the arguments stay names, which are bound later; integers
  // that count on the element's place are variables.
  Id name_element(Id id) {
    const std::string& name = g_.name_of(id);
    if (name != "position" && name != "axis") return id;
    return integer_element(integer(id));
  }

  Id integer_element(Linear value) {
    if (value.is_number()) return g_.integer(value.offset);
    map_.integers.push_back(std::move(value));
    return g_.name(str_cat("x", map_.integers.size() - 1));
  }

  Id choice(const expr::Node& node) {
    if (auto known = truth(node.args[0])) {
      return element(node.args[*known ? 1 : 2]);
    }
    Id test = node.args[0];
    if (g_.is_access(test, AccessOp::Inside)) {
      Id chosen = node.args[1];
      bool same_place = g_.is_access(chosen, AccessOp::Read) &&
                        g_[chosen].args[0] == g_[test].args[0] &&
                        g_[chosen].args[1] == g_[test].args[1];
      if (!same_place) fail();
      return new_read(g_[chosen], literal(node.args[2]));
    }
    Id made[] = {element(test), element(node.args[1]), element(node.args[2])};
    return g_.cond(made[0], made[1], made[2]);
  }

  Id compared(Id id, const expr::Node& node) {
    if (auto known = truth(id)) return g_.literal(expr::Literal::of(*known));
    if (!is_integer(node.args[0]) || !is_integer(node.args[1])) {
      Id made[] = {element(node.args[0]), element(node.args[1])};
      return g_.rebuilt(id, made);
    }
    Linear left = sum(integer(node.args[0]), scaled(integer(node.args[1]), -1));
    map_.tests.push_back({static_cast<CompareOp>(node.payload), left});
    return g_.name(str_cat("c", map_.tests.size() - 1));
  }

  expr::Literal literal(Id id) {
    if (g_.is_literal(id)) return g_.literal_of(id);
    if (g_[id].type != Word::Name) fail();
    int argument = argument_named(node_, g_.name_of(id));
    if (argument < 0) fail();
    const Value& out = graph_[node_.results[0]];
    expr::Kind kind = is_floating(out.dtype) ? expr::Kind::Float
                      : out.dtype == kBool   ? expr::Kind::Bool
                                             : expr::Kind::Int;
    const IValue& value = node_.arguments[static_cast<size_t>(argument)];
    auto given = number_in(value, kind);
    // A whole number that is written as a float.
    auto real = number_in(value, expr::Kind::Float);
    bool whole = real && std::trunc(real->real) == real->real &&
                 std::abs(real->real) < 0x1p53;
    if (!given && whole) {
      given = expr::Literal::of(static_cast<int64_t>(real->real));
    }
    if (!given) fail();
    return *given;
  }

  Id new_read(const expr::Node& node, std::optional<expr::Literal> fill) {
    MapRead read;
    read.value = tensor(node.args[0]);
    read.fill = fill;
    const Value& v = graph_[read.value];
    for (size_t d = 0; d < v.sizes.size(); ++d) {
      axis_ = static_cast<int64_t>(d);
      Linear at = integer(node.args[1]);
      axis_ = -1;
      bool inside = lies_inside(spaces_, at, v.sizes[d]);
      if (!inside && !(fill && may_be_bounded(at, v.sizes[d]))) fail();
      read.dims.push_back(std::move(at));
    }
    map_.reads.push_back(std::move(read));
    return g_.name(str_cat("r", map_.reads.size() - 1));
  }

  // Kernels compare the index in 32 bits.
  bool may_be_bounded(const Linear& at, const SymInt& size) const {
    bool falls = std::any_of(
        at.steps.begin(), at.steps.end(), [](auto s) { return s.second < 0; });
    bool small = !size.is_symbolic() && fits_int(spaces_, number(size.plain()));
    return !falls && small && fits_int(spaces_, at);
  }

  ValueId tensor(Id name) {
    int argument = argument_named(node_, g_.name_of(name));
    if (argument < 0) fail();
    ValueId v = used_value(node_, static_cast<size_t>(argument));
    if (v == kNoValue) fail();
    return v;
  }

  // Integers -------------------------------------------------------------

  // Whether an expression is one of places, not of elements.
  bool is_integer(Id id) const {
    const expr::Node& node = g_[id];
    if (node.type == Word::Literal) {
      return g_.literal_of(id).kind == expr::Kind::Int;
    }
    if (node.type == Word::Access) {
      return !g_.is_access(id, AccessOp::Read) &&
             !g_.is_access(id, AccessOp::Flat);
    }
    if (node.type == Word::Name) {
      const std::string& name = g_.name_of(id);
      if (name == "axis" || name == "position") return true;
      int argument = argument_named(node_, name);
      return argument >= 0 &&
             node_.arguments[static_cast<size_t>(argument)].is<int64_t>();
    }
    bool all = node.count > 0;
    for (int i = 0; i < node.count; ++i) all &= is_integer(node.args[i]);
    return all;
  }

  int64_t constant(Id id) {
    Linear at = integer(id);
    if (!at.is_number()) fail();
    return at.offset;
  }

  static int64_t plain(const SymInt& v) {
    if (v.is_symbolic()) fail();
    return v.plain();
  }

  Linear integer(Id id) {
    const expr::Node node = g_[id];
    switch (node.type) {
      case Word::Literal:
        if (g_.literal_of(id).kind != expr::Kind::Int) fail();
        return number(g_.literal_of(id).integer);
      case Word::Name:
        return named(g_.name_of(id));
      case Word::Access:
        return access(node);
      case Word::Unary:
        if (!g_.is_unary(id, expr::UnaryOp::Neg)) fail();
        return scaled(integer(node.args[0]), -1);
      case Word::Binary:
        return binary(node);
      case Word::Cond: {
        auto known = truth(node.args[0]);
        if (!known) fail();
        return integer(node.args[*known ? 1 : 2]);
      }
      // A truth among integers counts as 0 or 1.
      case Word::Compare:
      case Word::Logic: {
        auto known = truth(id);
        if (!known) fail();
        return number(*known ? 1 : 0);
      }
      case Word::Call:
        return call(id, node);
      default:
        fail();
    }
  }

  Linear named(const std::string& name) {
    if (name == "axis" && axis_ >= 0) return number(axis_);
    if (name == "position") return position();
    int argument = argument_named(node_, name);
    if (argument < 0) fail();
    const IValue& given = node_.arguments[static_cast<size_t>(argument)];
    if (!given.is<int64_t>()) fail();
    return number(given.get<int64_t>());
  }

  Linear index_along(size_t d) const {
    auto at = linear_in(spaces_, dims_[d]);
    if (!at) fail();
    return *at;
  }

  Linear position() {
    Linear at;
    int64_t stride = 1;
    const Value& out = graph_[node_.results[0]];
    for (size_t d = out.sizes.size(); d-- > 0;) {
      at = sum(std::move(at), scaled(index_along(d), stride));
      if (d > 0) stride *= plain(out.sizes[d]);
    }
    return at;
  }

  size_t dim(Id id, size_t rank) {
    int64_t d = constant(id), n = static_cast<int64_t>(rank);
    if (d < 0) d += n;
    if (d < 0 || d >= n) fail();
    return static_cast<size_t>(d);
  }

  SymIntArrayRef sizes_of(Id name) {
    bool result = g_.name_of(name) == "result";
    return graph_[result ? node_.results[0] : tensor(name)].sizes;
  }

  const std::vector<int64_t>& list(Id name) {
    int argument = argument_named(node_, g_.name_of(name));
    if (argument < 0) fail();
    const IValue& given = node_.arguments[static_cast<size_t>(argument)];
    if (!given.is<std::vector<int64_t>>()) fail();
    return given.get<std::vector<int64_t>>();
  }

  Linear access(const expr::Node& node) {
    switch (static_cast<AccessOp>(node.payload)) {
      case AccessOp::At:
        return index_along(dim(node.args[0], dims_.size()));
      case AccessOp::Size: {
        SymIntArrayRef sizes = sizes_of(node.args[0]);
        return number(plain(sizes[dim(node.args[1], sizes.size())]));
      }
      case AccessOp::Rank:
        return number(static_cast<int64_t>(sizes_of(node.args[0]).size()));
      case AccessOp::Numel: {
        int64_t count = 1;
        for (const SymInt& n : sizes_of(node.args[0])) count *= plain(n);
        return number(count);
      }
      case AccessOp::Entry: {
        const std::vector<int64_t>& values = list(node.args[0]);
        return number(values[dim(node.args[1], values.size())]);
      }
      case AccessOp::Len:
        return number(static_cast<int64_t>(list(node.args[0]).size()));
      case AccessOp::Along:
        return number(along(node));
      default:
        fail();
    }
  }

  bool names(const std::vector<int64_t>& dims, size_t i, int64_t axis) const {
    auto rank = static_cast<int64_t>(dims_.size());
    return dims[i] == axis || dims[i] + rank == axis;
  }

  int64_t along(const expr::Node& node) {
    const std::vector<int64_t>&values = list(node.args[0]),
          &dims = list(node.args[1]);
    int64_t axis = constant(node.args[2]), total = 0;
    for (size_t i = 0; i < std::min(values.size(), dims.size()); ++i) {
      if (names(dims, i, axis)) total += values[i];
    }
    return total;
  }

  Linear binary(const expr::Node& node) {
    Linear a = integer(node.args[0]), b = integer(node.args[1]);
    switch (static_cast<BinaryOp>(node.payload)) {
      case BinaryOp::Add:
        return sum(std::move(a), b);
      case BinaryOp::Sub:
        return sum(std::move(a), scaled(b, -1));
      case BinaryOp::Mul:
        if (a.is_number()) return scaled(std::move(b), a.offset);
        if (b.is_number()) return scaled(std::move(a), b.offset);
        fail();
      default:
        fail();
    }
  }

  Linear call(Id id, const expr::Node& node) {
    if (g_.is_call(id, "floor_divide") || g_.is_call(id, "remainder")) {
      int64_t by = constant(node.args[1]);
      if (by <= 0) fail();
      auto [q, r] = divided(integer(node.args[0]), by);
      return g_.is_call(id, "remainder") ? r : q;
    }
    if (g_.is_call(id, "abs")) {
      Linear a = integer(node.args[0]);
      Range r = range(a);
      if (r.least >= 0) return a;
      if (r.most <= 0) return scaled(a, -1);
      fail();
    }
    bool least = g_.is_call(id, "minimum"), most = g_.is_call(id, "maximum");
    if (!least && !most) fail();
    Linear a = integer(node.args[0]), b = integer(node.args[1]);
    Range r = range(sum(a, scaled(b, -1)));
    if (r.least >= 0) return least ? b : a;
    if (r.most <= 0) return least ? a : b;
    fail();
  }

  Range range(const Linear& at) const {
    auto r = range_of(spaces_, at);
    if (!r) fail();
    return *r;
  }

  struct Divided {
    Linear quotient, remainder;
  };
  Divided divided(const Linear& a, int64_t by) {
    if (by == 1) return {a, {}};
    Divided out;
    out.quotient.offset = floor_quotient(a.offset, by);
    out.remainder.offset = a.offset - out.quotient.offset * by;
    for (auto [axis, step] : a.steps) {
      if (step % by == 0) {
        out.quotient.steps[axis] = step / by;
      } else {
        out.remainder.steps[axis] = step;
      }
    }
    auto r = range_of(spaces_, out.remainder);
    if (r && r->least >= 0 && r->most < by) return out;
    for (auto [axis, step] : out.remainder.steps) part(axis, step, by);
    fail();
  }

  // Parts an axis where its index times `step` reaches `by`.
  void part(int axis, int64_t step, int64_t by) {
    const SymInt& size = spaces_.size(axis);
    if (step <= 0 || by % step != 0) return;
    int64_t inner = by / step;
    auto outer = quotient(size, inner);
    if (!outer || same(*outer, 1)) return;
    int fresh[] = {spaces_.axis(*outer), spaces_.axis(inner)};
    if (!spaces_.unify({axis}, {fresh[0], fresh[1]})) fail();
    throw Parted();
  }

  // Tests ----------------------------------------------------------------

  // What is known of a test wherever the loops are.
  std::optional<bool> truth(Id id) {
    const expr::Node node = g_[id];
    if (g_.is_literal(id)) return g_.literal_of(id).truth();
    if (node.type == Word::Unary && g_.is_unary(id, expr::UnaryOp::Not)) {
      auto a = truth(node.args[0]);
      if (!a) return std::nullopt;
      return !*a;
    }
    if (node.type == Word::Logic) {
      auto a = truth(node.args[0]), b = truth(node.args[1]);
      bool ends = node.payload == static_cast<uint16_t>(expr::LogicOp::Or);
      if (a && *a == ends) return ends;
      if (a && b) return *b;
      return std::nullopt;
    }
    if (g_.is_access(id, AccessOp::Names)) {
      const std::vector<int64_t>& dims = list(node.args[0]);
      int64_t axis = constant(node.args[1]);
      bool found = false;
      for (size_t i = 0; i < dims.size(); ++i) found |= names(dims, i, axis);
      return found;
    }
    if (node.type == Word::Name && !is_integer(id)) return flag(id);
    if (node.type != Word::Compare) return std::nullopt;
    return comparison(node);
  }

  std::optional<bool> flag(Id id) {
    int argument = argument_named(node_, g_.name_of(id));
    if (argument < 0) return std::nullopt;
    const IValue& given = node_.arguments[static_cast<size_t>(argument)];
    if (!given.is<bool>()) return std::nullopt;
    return given.get<bool>();
  }

  std::optional<bool> comparison(const expr::Node& node) {
    if (!is_integer(node.args[0]) || !is_integer(node.args[1])) {
      return std::nullopt;
    }
    Linear left = sum(integer(node.args[0]), scaled(integer(node.args[1]), -1));
    auto r = range_of(spaces_, left);
    if (!r) return std::nullopt;
    auto decided = [&](bool always, bool never) -> std::optional<bool> {
      if (always) return true;
      if (never) return false;
      return std::nullopt;
    };
    switch (static_cast<CompareOp>(node.payload)) {
      case CompareOp::Eq:
        return decided(r->least == 0 && r->most == 0,
                       r->least > 0 || r->most < 0);
      case CompareOp::Ne:
        return decided(r->least > 0 || r->most < 0,
                       r->least == 0 && r->most == 0);
      case CompareOp::Lt:
        return decided(r->most < 0, r->least >= 0);
      case CompareOp::Le:
        return decided(r->most <= 0, r->least > 0);
      case CompareOp::Gt:
        return decided(r->least > 0, r->most <= 0);
      case CompareOp::Ge:
        return decided(r->least >= 0, r->most < 0);
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const Node& node_;
  expr::Graph& g_;
  Spaces& spaces_;
  Spaces::Dims dims_;
  int64_t axis_ = -1;  // of the tensor that is read
  IndexMap map_;
};

expr::Kind element_kind(ScalarType dtype) {
  if (dtype == kBool) return expr::Kind::Bool;
  return is_floating(dtype) ? expr::Kind::Float : expr::Kind::Int;
}

}  // namespace

std::optional<IndexMap> index_map(const Graph& graph,
                                  const Node& node,
                                  expr::Graph& expressions,
                                  Spaces& spaces) {
  CallFormulas formulas(graph, node, expressions);
  expr::Kind kind = element_kind(graph[node.results[0]].dtype);
  auto formula = formulas.find(expr::Role::Element, kind);
  if (!formula) formula = formulas.find(expr::Role::Element, expr::Kind::Float);
  if (!formula) return std::nullopt;
  // Each round parts one axis more.
  for (int round = 0; round < 16; ++round) {
    try {
      return MapReader(graph, node, expressions, spaces).read(*formula);
    } catch (const NotAMap&) {
      return std::nullopt;
    } catch (const Parted&) {
      continue;
    }
  }
  return std::nullopt;
}

}  // namespace taeda::compiler::loops
