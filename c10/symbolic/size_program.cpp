#include <taeda/c10/symbolic/size_program.h>
#include <taeda/c10/util/check.h>

#include <algorithm>

namespace taeda::symbolic {

SizeProgram::SizeProgram(const Expressions& expressions,
                         Id id,
                         const SymbolNumbers& numbers) {
  compile(expressions, id, numbers, 0);
}

void SizeProgram::combine(const Expressions& e,
                          const Expression& node,
                          Do what,
                          const SymbolNumbers& numbers,
                          int depth) {
  for (size_t i = 0; i < node.args.size(); ++i) {
    compile(e, node.args[i], numbers, depth + (i > 0));
    if (i > 0) add(what);
  }
}

void SizeProgram::compile(const Expressions& e,
                          Id id,
                          const SymbolNumbers& numbers,
                          int depth) {
  TAEDA_CHECK(depth < kDepth, "compile: the size ", e.text(id), " is too deep");
  const Expression& node = e[id];
  auto only = [&](Do what) {
    compile(e, node.args[0], numbers, depth);
    add(what);
  };
  auto all = [&](Do what) { combine(e, node, what, numbers, depth); };
  switch (node.type) {
    case Type::Integer:
      return add(Do::Constant, node.value);
    case Type::Symbol:
      return add(Do::Symbol, numbers.at(id));
    case Type::Sum:
      add(Do::Constant, node.value);
      for (size_t i = 0; i < node.args.size(); ++i) {
        compile(e, node.args[i], numbers, depth + 1);
        add(Do::AddScaled, node.coefficients[i]);
      }
      return;
    case Type::Product:
      return all(Do::Multiply);
    case Type::FloorDiv:
      return all(Do::FloorDiv);
    case Type::Mod:
      return all(Do::Mod);
    case Type::Min:
      return all(Do::Min);
    case Type::Max:
      return all(Do::Max);
    case Type::And:
      return all(Do::And);
    case Type::Or:
      return all(Do::Or);
    case Type::Equal:
      return only(Do::IsZero);
    case Type::NonNegative:
      return only(Do::IsNonNegative);
    case Type::Not:
      return only(Do::Not);
  }
}

std::optional<int64_t> SizeProgram::run(const int64_t* symbols) const {
  int64_t stack[kDepth + 1];
  int64_t* top = stack - 1;
  for (const Operation& o : operations_) {
    switch (o.what) {
      case Do::Constant:
        *++top = o.value;
        continue;
      case Do::Symbol:
        *++top = symbols[o.value];
        continue;
      case Do::IsZero:
        *top = *top == 0;
        continue;
      case Do::IsNonNegative:
        *top = *top >= 0;
        continue;
      case Do::Not:
        *top = *top == 0;
        continue;
      default:
        break;
    }
    // Those of two operands.
    int64_t b = *top--;
    int64_t& a = *top;
    switch (o.what) {
      case Do::AddScaled:
        a += o.value * b;
        break;
      case Do::Multiply:
        a *= b;
        break;
      case Do::FloorDiv:
        if (b == 0) return std::nullopt;
        a = floor_div(a, b);
        break;
      case Do::Mod:
        if (b == 0) return std::nullopt;
        a = floor_mod(a, b);
        break;
      case Do::Min:
        a = std::min(a, b);
        break;
      case Do::Max:
        a = std::max(a, b);
        break;
      case Do::And:
        a = a != 0 && b != 0;
        break;
      default:
        a = a != 0 || b != 0;
        break;
    }
  }
  return *top;
}

}  // namespace taeda::symbolic
