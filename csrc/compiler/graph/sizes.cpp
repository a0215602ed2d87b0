#include <taeda/csrc/compiler/graph/sizes.h>

#include <taeda/c10/core/symbolic_geometry.h>

#include <algorithm>

namespace taeda::compiler {

using symbolic::Expressions;
using symbolic::Id;
using symbolic::Truth;

bool same(const SymInt& a, const SymInt& b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.plain() == b.plain();
  SymBool equal = sym_eq(a, b);
  if (!equal.is_symbolic()) return equal.guard();
  const SymNode& node = *equal.node();
  return node.env->expressions().known(node.id) == Truth::Yes;
}

bool same(SymIntArrayRef a, SymIntArrayRef b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return false;
  }
  return true;
}

std::optional<SymInt> quotient(const SymInt& a, const SymInt& b) {
  if (same(b, 0)) return std::nullopt;
  SymInt q = a / b;
  if (!same(q * b, a)) return std::nullopt;
  return q;
}

bool is_dense(SymIntArrayRef sizes, SymIntArrayRef strides) {
  std::vector<size_t> order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!same(sizes[d], 1)) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return hint(strides[a]) < hint(strides[b]);
  });
  SymInt running(1);
  for (size_t d : order) {
    if (!same(strides[d], running)) return false;
    running *= sizes[d];
  }
  return true;
}

int64_t hint(const SymInt& v) { return hint_of(v, 64); }

SizeTable::SizeTable(const std::vector<SymInt>& symbols)
    : symbols_(symbols.size()) {
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (!symbols[i].is_symbolic()) continue;
    numbers_[symbols[i].node()->id] = static_cast<int>(i);
  }
}

int32_t SizeTable::place(const Expressions& e, Id id) {
  auto [at, added] =
      places_.try_emplace(id, static_cast<int32_t>(programs_.size()));
  if (added) programs_.emplace_back(e, id, numbers_);
  return at->second;
}

int32_t SizeTable::place(const SymInt& v) {
  if (!v.is_symbolic()) return -1;
  ShapeEnv& env = *v.node()->env;
  return place(env.expressions(), env.simplify(v.node()->id));
}

bool SizeTable::try_run(std::span<const int64_t> symbols,
                        SizeNumbers& values) const {
  TAEDA_CHECK(symbols.size() == symbols_,
              "compile: a graph of ",
              symbols_,
              " symbols got ",
              symbols.size());
  if (programs_.empty()) return true;
  values.resize(programs_.size());
  for (size_t i = 0; i < programs_.size(); ++i) {
    std::optional<int64_t> value = programs_[i].run(symbols.data());
    if (!value) return false;
    values[i] = *value;
  }
  return true;
}

void SizeTable::run(std::span<const int64_t> symbols,
                    SizeNumbers& values) const {
  TAEDA_CHECK(try_run(symbols, values), "integer division or modulo by zero");
}

SizeList::SizeList(SymIntArrayRef list, SizeTable& table) {
  for (size_t i = 0; i < list.size(); ++i) {
    int32_t place = table.place(list[i]);
    plain_.push_back(place < 0 ? list[i].plain() : 0);
    if (place >= 0) patches_.push_back({static_cast<uint32_t>(i), place});
  }
}

SizeArguments::SizeArguments(std::span<IValue> arguments, SizeTable& table) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    IValue& v = arguments[i];
    auto argument = static_cast<uint16_t>(i);
    if (v.is<SymInt>()) {
      int32_t place = table.place(v.get<SymInt>());
      v = place < 0 ? v.get<SymInt>().plain() : int64_t{0};
      if (place >= 0) patches_.push_back({argument, -1, place});
    } else if (v.is<std::vector<SymInt>>()) {
      std::vector<SymInt> list = v.get<std::vector<SymInt>>();
      std::vector<int64_t> plain;
      for (size_t k = 0; k < list.size(); ++k) {
        int32_t place = table.place(list[k]);
        plain.push_back(place < 0 ? list[k].plain() : 0);
        if (place < 0) continue;
        patches_.push_back({argument, static_cast<int16_t>(k), place});
      }
      v = std::move(plain);
    }
  }
}

void SizeArguments::put(std::span<IValue> arguments,
                        const int64_t* values) const {
  for (auto [argument, element, place] : patches_) {
    IValue& v = arguments[argument];
    if (element < 0) {
      v = values[place];
    } else {
      v.get<std::vector<int64_t>>()[static_cast<size_t>(element)] =
          values[place];
    }
  }
}

}  // namespace taeda::compiler
