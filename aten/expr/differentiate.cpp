#include <taeda/aten/expr/differentiate.h>
#include <taeda/aten/expr/simplify.h>
#include <taeda/c10/util/check.h>

namespace taeda::expr {

namespace {

struct Partials {
  Id direct;   // by the argument
  Id by_conj;  // by its conjugate
};

class Differentiator {
 public:
  Differentiator(Graph& graph, const Kinds& kinds) : g_(graph), kinds_(kinds) {}

  // What `node` contributes to the gradient of `var`, given its own gradient.
  Id pull(Id node, Id gradient, std::string_view var);
  // The tangent of `node`.
  Id push(Id node, const std::unordered_map<std::string, std::string>& names);

 private:
  bool is_complex(Id id) { return g_.kind(id, kinds_) == Kind::Complex; }
  bool is_zero(Id id) { return is_number(g_, id, 0); }
  Id zero() { return g_.integer(0); }
  Id conj_of(Id id) { return is_complex(id) ? conj(g_, id) : id; }
  Id call1(const char* name, Id arg) {
    return g_.call(find_function(name), {arg});
  }
  // A complex gradient of a real value is its real part.
  Id fit(Id gradient, Id target) {
    bool narrows = !is_complex(target) && is_complex(gradient);
    return narrows ? call1("real", gradient) : gradient;
  }

  Id product(Id factor, Id partial);
  Id with_conjugate(Id gradient, Id partial);
  Id doubled(Id id);
  Id without_conj(Id id);
  Id partial_of(Id call, const uint16_t* words);
  Partials partials(Id call, int argument);
  Id pull_binary(Id node, Id gradient, std::string_view var);
  Id pull_call(Id call, int argument, Id gradient);
  Id push_binary(Id node, Id by_left, Id by_right);
  Id push_call(Id call, int argument, Id tangent);

  Graph& g_;
  const Kinds& kinds_;
};

// factor * partial, inside the branches of a piecewise partial.
Id Differentiator::product(Id factor, Id partial) {
  const Node node = g_[partial];
  if (node.type != Word::Cond) return mul(g_, factor, partial);
  return cond(g_,
              node.args[0],
              product(factor, node.args[1]),
              product(factor, node.args[2]));
}

Id Differentiator::with_conjugate(Id gradient, Id partial) {
  const Node node = g_[partial];
  if (node.type != Word::Cond) return product(gradient, conj_of(partial));
  return cond(g_,
              node.args[0],
              with_conjugate(gradient, node.args[1]),
              with_conjugate(gradient, node.args[2]));
}

Id Differentiator::doubled(Id id) {
  const Node node = g_[id];
  if (node.type == Word::Cond) {
    return cond(g_, node.args[0], doubled(node.args[1]), doubled(node.args[2]));
  }
  if (g_.is_binary(id, BinaryOp::Div)) {
    return div(g_, mul(g_, g_.integer(2), node.args[0]), node.args[1]);
  }
  return mul(g_, g_.integer(2), id);
}

// conj and real of what is real are that itself.
Id Differentiator::without_conj(Id id) {
  Node node = g_[id];
  for (int i = 0; i < node.count; ++i) {
    node.args[i] = without_conj(node.args[i]);
  }
  id = g_.rebuilt(id, node.args);
  bool passes = g_.is_call(id, "conj") || g_.is_call(id, "real");
  return passes && !is_complex(node.args[0]) ? node.args[0] : id;
}

Id Differentiator::partial_of(Id call, const uint16_t* words) {
  if (words == nullptr) return zero();
  const Node node = g_[call];
  constexpr const char* names[] = {"a", "b", "c"};
  std::unordered_map<std::string, Id> values;
  for (int i = 0; i < node.count; ++i) values[names[i]] = node.args[i];
  return without_conj(simplify(g_, g_.substitute(g_.load(words), values)));
}

Partials Differentiator::partials(Id call, int argument) {
  const Function& f = g_.function_of(call);
  bool complex = g_.argument_kind(call, kinds_) == Kind::Complex;
  const uint16_t* by_conj = complex ? f.conj_partials[argument] : nullptr;
  return {partial_of(call, f.partial(argument, complex)),
          partial_of(call, by_conj)};
}

Id Differentiator::pull_call(Id call, int argument, Id gradient) {
  Partials p = partials(call, argument);
  if (is_zero(p.by_conj)) return with_conjugate(gradient, p.direct);
  if (!is_complex(call)) return product(gradient, doubled(p.by_conj));
  Id second = product(conj_of(gradient), p.by_conj);
  return add(g_, with_conjugate(gradient, p.direct), second);
}

Id Differentiator::pull_binary(Id id, Id gradient, std::string_view var) {
  const Node node = g_[id];
  Id left = node.args[0], right = node.args[1];
  switch (static_cast<BinaryOp>(node.payload)) {
    case BinaryOp::Add:
      return add(g_, pull(left, gradient, var), pull(right, gradient, var));
    case BinaryOp::Sub:
      return sub(g_, pull(left, gradient, var), pull(right, gradient, var));
    case BinaryOp::Mul: {
      Id by_left = product(gradient, conj_of(right));
      Id by_right = product(gradient, conj_of(left));
      Id first = pull(left, by_left, var);
      return add(g_, first, pull(right, by_right, var));
    }
    case BinaryOp::Div: {
      Id quotient = conj_of(div(g_, div(g_, left, right), right));
      Id by_right = neg(g_, mul(g_, gradient, quotient));
      Id first = pull(left, div(g_, gradient, conj_of(right)), var);
      return add(g_, first, pull(right, by_right, var));
    }
    default:
      TAEDA_CHECK(false, "expression: no derivative of a bitwise operator");
  }
}

Id Differentiator::pull(Id id, Id gradient, std::string_view var) {
  bool flat = g_.kind(id, kinds_) < Kind::Float;
  if (flat || !g_.uses(id, var)) return zero();
  gradient = fit(gradient, id);
  const Node node = g_[id];
  switch (node.type) {
    case Word::Name:
      return gradient;
    case Word::Cast:
      return pull(node.args[0], gradient, var);
    case Word::Unary:
      return neg(g_, pull(node.args[0], gradient, var));
    case Word::Cond: {
      Id then = pull(node.args[1], gradient, var);
      return cond(g_, node.args[0], then, pull(node.args[2], gradient, var));
    }
    case Word::Binary:
      return pull_binary(id, gradient, var);
    case Word::Call: {
      Id total = zero();
      for (int i = 0; i < node.count; ++i) {
        if (!g_.uses(node.args[i], var)) continue;
        Id inner = pull_call(id, i, gradient);
        total = add(g_, total, pull(node.args[i], inner, var));
      }
      return total;
    }
    default:
      return zero();
  }
}

Id Differentiator::push_binary(Id id, Id by_left, Id by_right) {
  const Node node = g_[id];
  Id left = node.args[0], right = node.args[1];
  switch (static_cast<BinaryOp>(node.payload)) {
    case BinaryOp::Add:
      return add(g_, by_left, by_right);
    case BinaryOp::Sub:
      return sub(g_, by_left, by_right);
    case BinaryOp::Mul:
      return add(g_, product(by_left, right), product(by_right, left));
    case BinaryOp::Div: {
      Id quotient = div(g_, div(g_, left, right), right);
      return sub(g_, div(g_, by_left, right), mul(g_, by_right, quotient));
    }
    default:
      return zero();
  }
}

Id Differentiator::push_call(Id call, int argument, Id tangent) {
  Partials p = partials(call, argument);
  if (is_zero(p.by_conj)) return product(tangent, p.direct);
  if (!is_complex(call)) {
    return call1("real", product(tangent, doubled(p.direct)));
  }
  Id second = product(conj(g_, tangent), p.by_conj);
  return add(g_, product(tangent, p.direct), second);
}

Id Differentiator::push(
    Id id, const std::unordered_map<std::string, std::string>& names) {
  if (g_.kind(id, kinds_) < Kind::Float) return zero();
  const Node node = g_[id];
  switch (node.type) {
    case Word::Name: {
      auto found = names.find(g_.name_of(id));
      return found == names.end() ? zero() : g_.name(found->second);
    }
    case Word::Cast:
      return push(node.args[0], names);
    case Word::Unary:
      return neg(g_, push(node.args[0], names));
    case Word::Cond: {
      Id then = push(node.args[1], names);
      return cond(g_, node.args[0], then, push(node.args[2], names));
    }
    case Word::Binary: {
      Id by_left = push(node.args[0], names);
      return push_binary(id, by_left, push(node.args[1], names));
    }
    case Word::Call: {
      Id total = zero();
      for (int i = 0; i < node.count; ++i) {
        Id tangent = push(node.args[i], names);
        if (!is_zero(tangent)) {
          total = add(g_, total, push_call(id, i, tangent));
        }
      }
      return total;
    }
    default:
      return zero();
  }
}

Id named_result(Graph& g, Id found, Id value) {
  return g[value].count == 0 ? found
                             : g.replace(found, value, g.name("result"));
}

}  // namespace

Id gradient(Graph& g, Id value, std::string_view var, Kinds kinds) {
  value = simplify(g, value);
  kinds.names["grad"] = g.kind(value, kinds);
  Id grad = g.name("grad");
  Id found = simplify(g, Differentiator(g, kinds).pull(value, grad, var));
  return named_result(g, found, value);
}

Id tangent(Graph& g,
           Id value,
           const std::unordered_map<std::string, std::string>& names,
           Kinds kinds) {
  value = simplify(g, value);
  for (const auto& [var, tangent] : names) {
    auto known = kinds.names.find(var);
    Kind kind = known == kinds.names.end() ? kinds.compute : known->second;
    kinds.names[tangent] = kind;
  }
  Id found = simplify(g, Differentiator(g, kinds).push(value, names));
  return named_result(g, found, value);
}

}  // namespace taeda::expr
