#include <taeda/csrc/compiler/capture/dynamic.h>

#include <taeda/csrc/compiler/capture/capture.h>

#include <taeda/c10/core/tensor_impl.h>

#include <algorithm>
#include <numeric>

namespace taeda::capture {

using symbolic::Id;
using symbolic::Range;

namespace {

// What stays, is a symbol of its own, one shared by equal sizes, or one without
// a value.
enum How { kStatic, kOwn, kDuck, kUnbacked };

constexpr const char* kNodeName = "taeda.SymNode";

PyObject* mark_of(PyObject* tensor, const char* name) {
  PyObject* own = python::as_tensor(tensor)->dict;
  return own == nullptr ? nullptr : PyDict_GetItemString(own, name);
}

bool is_marked(PyObject* tensor, const char* name, int64_t dim) {
  PyObject* marks = mark_of(tensor, name);
  if (marks == nullptr) return false;
  Ref key(PyLong_FromLongLong(dim));
  int found = PySequence_Contains(marks, key.get());
  if (found < 0) PyErr_Clear();
  return found == 1;
}

// The limits that mark_dynamic was given for a dim.
std::pair<std::optional<int64_t>, std::optional<int64_t>> limits_of(
    PyObject* tensor, int64_t dim) {
  std::pair<std::optional<int64_t>, std::optional<int64_t>> out;
  PyObject* ranges = mark_of(tensor, "_dynamo_dynamic_range");
  if (ranges == nullptr) return out;
  Ref list = checked(PySequence_List(ranges));
  for (PyObject* each : python::items_of(list.get())) {
    Ref parts = checked(PySequence_Tuple(each));
    auto number = [&](int i) -> std::optional<int64_t> {
      PyObject* o = PyTuple_GET_ITEM(parts.get(), i);
      if (o == Py_None) return std::nullopt;
      return PyLong_AsLongLong(o);
    };
    if (number(0) != dim) continue;
    if (auto low = number(1)) out.first = low;
    if (auto high = number(2)) out.second = high;
  }
  return out;
}

}  // namespace

Ref wrap_symbol(const SymInt& v) {
  if (!v.is_symbolic()) return checked(PyLong_FromLongLong(v.plain()));
  Ref shared = checked(PyCapsule_New(v.node(), kNodeName, nullptr));
  return checked(
      PyObject_CallOneArg(library().shared_symbol.get(), shared.get()));
}

Ref wrap_symbols(const std::vector<SymInt>& values) {
  return python::new_tuple(values.size(), [&](size_t i) {
    return wrap_symbol(values[i]).release();
  });
}

bool is_symbol(PyObject* o) {
  PyObject* type = type_of(o);
  return type == library().sym_int.get() || type == library().sym_bool.get();
}
bool is_sym_float(PyObject* o) {
  auto* type = reinterpret_cast<PyTypeObject*>(library().sym_float.get());
  return PyObject_TypeCheck(o, type);
}

SymNode* node_of(PyObject* symbol) {
  Ref node = checked(PyObject_GetAttr(symbol, python::interned<"node">()));
  Ref shared = checked(
      PyObject_CallMethodNoArgs(node.get(), python::interned<"share">()));
  if (shared.get() == Py_None) return nullptr;
  return static_cast<SymNode*>(PyCapsule_GetPointer(shared.get(), kNodeName));
}

ShapeEnv& Dynamic::env() {
  if (!env_) {
    env_ = make_intrusive<ShapeEnv>();
    env_->stands_for_numbers = true;
  }
  return *env_;
}

const symbolic::Expressions& Dynamic::expressions() const {
  return env_->expressions();
}

void Dynamic::begin(History& seen, PyObject* dynamic) {
  history = &seen;
  Ref now =
      checked(PyObject_CallOneArg(library().dynamic_settings.get(), dynamic));
  bool* const fields[] = {&settings.automatic,
                          &settings.all,
                          &settings.integers,
                          &settings.floats,
                          &settings.static_parameters,
                          &settings.static_members,
                          &settings.scalar_outputs,
                          &settings.counted_outputs};
  Py_ssize_t i = 0;
  for (bool* field : fields) {
    *field = PyObject_IsTrue(PyTuple_GET_ITEM(now.get(), i++)) == 1;
  }
  PyObject* sources = PyTuple_GET_ITEM(now.get(), i);
  settings.sources = sources == Py_None ? Ref() : Ref::borrow(sources);
}

SourceKind Dynamic::kind_of_source(int place) const {
  if (!settings.sources) return SourceKind::Plain;
  Capture* running = active;
  if (running != nullptr) ++running->suspended;
  Ref kind(PyObject_CallFunction(
      settings.sources.get(), "s", guards_.name(place).c_str()));
  if (running != nullptr) --running->suspended;
  return static_cast<SourceKind>(PyLong_AsLong(checked(kind.release()).get()));
}

// Notes what a tensor has now; null where nothing may become a symbol.
SeenValue* Dynamic::note(const std::string& name, const TensorImpl& t) {
  auto [at, added] = history->try_emplace(name);
  SeenValue& seen = at->second;
  IntArrayRef sizes = t.sizes(), strides = t.strides();
  if (!added && seen.sizes.size() != sizes.size()) seen.several_ranks = true;
  if (added || seen.sizes.size() != sizes.size()) {
    seen.sizes = DimVector(sizes.begin(), sizes.end());
    seen.strides = DimVector(strides.begin(), strides.end());
    seen.size_differs.clear();
    seen.size_differs.resize(sizes.size(), seen.several_ranks);
    seen.stride_differs.clear();
    seen.stride_differs.resize(sizes.size(), false);
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    seen.size_differs[d] = seen.size_differs[d] || seen.sizes[d] != sizes[d];
    seen.stride_differs[d] =
        seen.stride_differs[d] || seen.strides[d] != strides[d];
  }
  return &seen;
}

SymInt Dynamic::add(
    SizeSource::Kind kind, int64_t hint, int place, int dim, int how) {
  std::string name = guards_.name(place);
  if (kind == SizeSource::Size) name += ".size()[" + std::to_string(dim) + "]";
  if (kind == SizeSource::Stride) {
    name += ".stride()[" + std::to_string(dim) + "]";
  }
  SymInt made;
  if (kind == SizeSource::Number) {
    made = env().create_integer(hint, name);
  } else if (how == kUnbacked) {
    made = env().create_unbacked();
  } else {
    made = env().create_size(
        hint, name, how == kDuck ? DynamicSize::Duck : DynamicSize::Marked);
  }
  if (!made.is_symbolic()) return made;
  // A symbol that equal sizes share may be known as an expression by now; what
  // the size must equal is the symbol.
  Id id = made.node()->id;
  if (how == kDuck && kind == SizeSource::Size) {
    id = shared_.try_emplace(hint, id).first->second;
  }
  auto [at, added] =
      numbers_.try_emplace(id, static_cast<int>(numbers_.size()));
  if (added) {
    ids_.push_back(id);
    inputs.push_back({-1, at->second});
  }
  sources_.push_back({kind, at->second, place, dim});
  return made;
}

Dynamic::Geometry Dynamic::geometry_of(PyObject* tensor,
                                       int place,
                                       bool is_fixed) {
  const TensorImpl& t = *python::unwrap(tensor).impl();
  Geometry out;
  IntArrayRef sizes = t.sizes(), strides = t.strides();
  bool has_marks = mark_of(tensor, "_has_dynamo_dim_marking") != nullptr;
  SourceKind source = kind_of_source(place);
  bool named = source != SourceKind::Plain;
  if (is_fixed && !has_marks && !named) return out;
  if (!settings.automatic && !settings.all && !has_marks && !named) return out;
  SeenValue* seen = note(guards_.name(place), t);
  bool automatic = settings.automatic && !is_fixed;
  for (size_t d = 0; d < sizes.size(); ++d) {
    auto dim = static_cast<int>(d);
    auto marked = [&](const char* name) {
      return has_marks && is_marked(tensor, name, dim);
    };
    How how = settings.all && !is_fixed ? kDuck : kStatic;
    if (automatic && seen->size_differs[d]) how = kOwn;
    if (marked("_dynamo_static_indices")) how = kStatic;
    if (marked("_dynamo_weak_dynamic_indices")) how = kOwn;
    bool asked = marked("_dynamo_dynamic_indices");
    if (asked || named) how = kOwn;
    bool unbacked = source == SourceKind::Unbacked;
    if (unbacked || marked("_dynamo_unbacked_indices")) how = kUnbacked;
    if (how == kOwn && sizes[d] < 2) how = kStatic;
    if (how == kStatic) {
      out.sizes.emplace_back(sizes[d]);
      continue;
    }
    SymInt size = add(SizeSource::Size, sizes[d], place, dim, how);
    out.sizes.push_back(size);
    out.symbolic |= size.is_symbolic();
    if (!asked || !size.is_symbolic()) continue;
    auto [low, high] = limits_of(tensor, dim);
    Id id = size.node()->id;
    marks_.push_back(
        {id,
         guards_.name(place) + ".size()[" + std::to_string(dim) + "]",
         low,
         high});
    env().expressions().narrow(
        id,
        {std::max<int64_t>(low.value_or(2), 2), high.value_or(Range::kHigh)});
  }
  // Strides that are products of sizes stay that; innermost first, of equal
  // ones the dim further right.
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return strides[a] != strides[b] ? strides[a] < strides[b] : a > b;
  });
  out.strides.resize(sizes.size());
  SymInt product(1);
  int64_t expected = 1;
  for (size_t d : order) {
    if (strides[d] != expected) {
      expected = strides[d];
      bool differs = automatic && seen->stride_differs[d] && expected > 1;
      auto dim = static_cast<int>(d);
      product = differs ? add(SizeSource::Stride, expected, place, dim, kOwn)
                        : SymInt(expected);
      out.symbolic |= product.is_symbolic();
    } else if (product.is_symbolic()) {
      strides_.push_back({place, static_cast<int>(d), product});
    }
    out.strides[d] = product;
    product = product * out.sizes[d];
    expected *= sizes[d];
  }
  if (out.symbolic) geometries_[place] = out;
  return out;
}

Ref Dynamic::geometry_at(int place) const {
  auto found = geometries_.find(place);
  if (found == geometries_.end()) return Ref::borrow(Py_None);
  Ref sizes = wrap_symbols(found->second.sizes);
  Ref strides = wrap_symbols(found->second.strides);
  return checked(PyTuple_Pack(2, sizes.get(), strides.get()));
}

namespace {

// Whether a value comes from what a call is given or a closure holds, and not
// from a module or from what C code told.
bool is_of_call(const Guards& guards, int place) {
  while (true) {
    const Step& s = guards.step_of(place);
    if (s.what == Do::Slot || s.what == Do::Content) return true;
    bool plain = s.what == Do::DictItem || s.what == Do::InstanceItem ||
                 s.what == Do::Attribute || s.what == Do::Item;
    if (!plain || s.parent < 0) return false;
    place = s.parent;
  }
}

}  // namespace

Ref Dynamic::integer(PyObject* number, int place) {
  bool named = kind_of_source(place) != SourceKind::Plain;
  bool may_be = settings.integers && (settings.automatic || settings.all) &&
                is_of_call(guards_, place);
  if (!named && !may_be) return {};
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow);
  // Beyond the numbers that a tagged integer holds by itself.
  if (overflow != 0 || value > (int64_t{1} << 61) ||
      value < -(int64_t{1} << 61)) {
    return {};
  }
  auto [at, added] = history->try_emplace(guards_.name(place));
  SeenValue& seen = at->second;
  if (added) seen.number = static_cast<double>(value);
  seen.number_differs |= seen.number != static_cast<double>(value);
  bool differs = settings.automatic && seen.number_differs;
  if (!settings.all && !differs && !named) return {};
  guards_.check(Do::CheckType, place, type_of(number));
  return wrap_symbol(add(SizeSource::Number, value, place, 0, kOwn));
}

bool Dynamic::float_differs(PyObject* number, int place) {
  double value = PyFloat_AS_DOUBLE(number);
  if (!settings.floats || !(settings.automatic || settings.all)) return false;
  if (!std::isfinite(value)) return false;
  auto [at, added] = history->try_emplace(guards_.name(place));
  SeenValue& seen = at->second;
  if (added) seen.number = value;
  seen.number_differs |= seen.number != value;
  return settings.all || (settings.automatic && seen.number_differs);
}

SymInt Dynamic::unbacked(int& position, int64_t low) {
  SymInt made = env().create_unbacked(low, Range::kHigh);
  position = static_cast<int>(numbers_.size());
  numbers_[made.node()->id] = position;
  ids_.push_back(made.node()->id);
  return made;
}

int Dynamic::program_of(PyObject* symbol) {
  SymNode* node = node_of(symbol);
  TAEDA_CHECK(node != nullptr && node->env == env_,
              "compile: a symbolic number of another trace");
  return program_of_id(env().simplify(node->id));
}

std::vector<int> Dynamic::new_assertions() {
  std::vector<int> out;
  if (!env_) return out;
  std::vector<Id> left;
  for (; asserted_ < env_->assertions().size(); ++asserted_) {
    left.push_back(env_->assertions()[asserted_].condition);
  }
  while (!left.empty()) {
    Id id = left.back();
    left.pop_back();
    const symbolic::Expression& e = expressions()[id];
    if (e.type == symbolic::Type::And) {
      left.insert(left.end(), e.args.begin(), e.args.end());
    } else {
      out.push_back(program_of_id(id));
    }
  }
  return out;
}

int Dynamic::program_of_id(Id id) {
  auto [at, added] =
      programs_by_id_.try_emplace(id, static_cast<int>(programs_.size()));
  if (added) {
    programs_.emplace_back(env().expressions(), id, numbers_);
    ids_of_programs_.push_back(id);
  }
  return at->second;
}

std::string Dynamic::text_of_program(int program) const {
  return expressions().text(ids_of_programs_[program]);
}

std::string Dynamic::name_of_symbol(int position) const {
  return expressions().name_of(ids_[position]);
}

Ref Dynamic::symbol_at(int position) const {
  return wrap_symbol(env_->wrap(ids_[position]));
}

bool Dynamic::is_needed(int position, const std::set<int>& places) const {
  for (const SizeSource& s : sources_) {
    bool of_tensor = s.kind != SizeSource::Number && places.contains(s.place);
    if (s.symbol == position && of_tensor) return true;
  }
  Id id = ids_[position];
  return std::any_of(
      ids_of_programs_.begin(), ids_of_programs_.end(), [&](Id program) {
        std::vector<Id> used = expressions().symbols_of(program);
        return std::find(used.begin(), used.end(), id) != used.end();
      });
}

int Dynamic::place_of_integer(int position) const {
  for (const SizeSource& s : sources_) {
    if (s.symbol == position) {
      return s.kind == SizeSource::Number ? s.place : -1;
    }
  }
  return -1;
}

// A size that a program marked, and that its code does not leave free.
void Dynamic::check_marks() {
  std::string text;
  for (const Mark& m : marks_) {
    Id now = env().simplify(m.symbol);
    const symbolic::Expressions& e = expressions();
    if (e.is_integer(now)) {
      text += "\n  - You marked " + m.name +
              " as dynamic but your code specialized it to be a constant (" +
              e.text(now) +
              "). If you're using mark_dynamic, either remove it or use "
              "maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it "
              "with either Dim.STATIC or Dim.AUTO.";
      continue;
    }
    if (!m.low && !m.high) continue;
    Range is = e.range_of(now);
    int64_t low = std::max<int64_t>(m.low.value_or(2), 2);
    int64_t high = m.high.value_or(Range::kHigh);
    if (is.low <= low && is.high >= high) continue;
    auto bound = [](int64_t v) { return std::to_string(v); };
    std::string given = m.low ? bound(*m.low) + " <= " + m.name : m.name;
    if (m.high) given += " <= " + bound(*m.high);
    text += "\n  - Not all values of " + m.name + " = " + m.name +
            " in the specified range " + given +
            " satisfy the generated guard " + bound(is.low) + " <= " + m.name;
    if (is.high != Range::kHigh) {
      text += " and " + m.name + " <= " + bound(is.high);
    }
  }
  if (text.empty()) return;
  std::string names;
  for (const Mark& m : marks_) names += (names.empty() ? "" : ", ") + m.name;
  text = "Constraints violated (" + names + ")!" + text;
  PyErr_SetString(library().constraint_error.get(), text.c_str());
  throw PythonError();
}

void Dynamic::finish() {
  if (!env_) return;
  check_marks();
  // Who gets the graph sees expressions.
  env_->stands_for_numbers = false;
  auto out = std::make_unique<SizeGuards>();
  // Those of symbols that come from data have no source.
  if (sources_.empty()) return;
  out->ranges.resize(numbers_.size());
  std::vector<bool> seen(numbers_.size());
  std::vector<SizeSource> others;
  for (SizeSource s : sources_) {
    s.first = !seen[s.symbol];
    seen[s.symbol] = true;
    (s.first ? out->sources : others).push_back(s);
    if (!s.first) continue;
    bool backed = env().hint(ids_[s.symbol]).has_value();
    int64_t low = backed ? env().lowest(ids_[s.symbol]) : 0;
    out->ranges[s.symbol] = {low, Range::kHigh};
  }
  out->sources.insert(out->sources.end(), others.begin(), others.end());
  for (const StrideOf& s : strides_) {
    out->strides.push_back(
        {s.place, s.dim, {expressions(), s.value.node()->id, numbers_}});
  }
  for (const ShapeGuard& g : env().guards()) {
    out->conditions.push_back({{expressions(), g.condition, numbers_},
                               expressions().text(g.condition),
                               g.where});
  }
  for (const Mark& m : marks_) {
    Range& range = out->ranges[numbers_.at(m.symbol)];
    range = range.meet(
        {m.low.value_or(Range::kLow), m.high.value_or(Range::kHigh)});
  }
  guards_.check_sizes(std::move(out));
}

}  // namespace taeda::capture
