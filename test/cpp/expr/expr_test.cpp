#include <taeda/aten/core/dispatcher.h>
#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/core/op_info.h>
#include <taeda/aten/expr/differentiate.h>
#include <taeda/aten/expr/evaluate.h>
#include <taeda/aten/expr/print.h>
#include <taeda/aten/expr/simplify.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace taeda::expr {
namespace {

using Values = std::unordered_map<std::string, Value>;

std::vector<std::string> argument_names(const OperatorEntry& op) {
  std::vector<std::string> names;
  for (const ArgInfo& a : arguments_of(*op.info)) {
    names.emplace_back(name_of(a, op.schema));
  }
  for (std::string& number : numbers_of(op.info->record->expressions)) {
    names.push_back(std::move(number));
  }
  return names;
}

const Section* find(const std::vector<Section>& sections,
                    Role role,
                    Kind kind,
                    const std::string& choice) {
  for (const Section& s : sections) {
    if (s.role == role && s.kind == kind && s.choice == choice) return &s;
  }
  return nullptr;
}

Kinds floats(const Graph& g, std::initializer_list<Id> ids) {
  Kinds kinds;
  for (Id id : ids) {
    for (const std::string& name : g.names(id)) kinds.names[name] = Kind::Float;
  }
  return kinds;
}

double at(const Graph& g, Id id, const Values& values) {
  return evaluate(g, id, values, Kind::Float).to(Kind::Float).number.real();
}

// d value / d name by central differences.
double slope(const Graph& g, Id id, Values values, const std::string& name) {
  constexpr double kStep = 1e-6;
  double x = values[name].number.real();
  values[name] = Value::of(x + kStep);
  double high = at(g, id, values);
  values[name] = Value::of(x - kStep);
  return (high - at(g, id, values)) / (2 * kStep);
}

// Arguments at which no two are equal and no threshold of a formula lies.
constexpr double kPoints[][3] = {
    {0.37, 0.61, 1.43}, {1.83, 0.29, 0.47}, {-0.57, 0.83, 2.61}};

struct Point {
  Values values;
  bool usable = true;
};

// Integers of the schema (the order of polygamma) stay whole numbers.
bool is_integer(const OperatorEntry& op, const std::string& name) {
  for (const ArgInfo& a : arguments_of(*op.info)) {
    if (name_of(a, op.schema) == name) return a.type == ValueType::Int;
  }
  return false;
}

bool is_argument(const OperatorEntry& op, const std::string& name) {
  ArrayRef<ArgInfo> all = arguments_of(*op.info);
  return std::any_of(all.begin(), all.end(), [&](const ArgInfo& a) {
    return name_of(a, op.schema) == name;
  });
}

IValue argument(const ArgInfo& a, double number) {
  if (a.type == ValueType::Tensor) {
    return IValue(make_tensor("test", {}, kDouble));
  }
  if (a.type == ValueType::Int) return IValue(static_cast<int64_t>(number));
  if (a.type == ValueType::Float) return IValue(number);
  return IValue(Scalar(number));
}

// The numbers that C++ works out of the arguments, if any of them is used.
void work_out(const OperatorEntry& op,
              const std::vector<std::string>& used,
              Values& values) {
  const RecordInfo& record = *op.info->record;
  auto is_known = [&](const auto& name) { return values.count(name) != 0; };
  if (record.numbers == nullptr ||
      std::all_of(used.begin(), used.end(), is_known)) {
    return;
  }
  std::vector<std::string> names = numbers_of(record.expressions);
  Stack stack;
  for (const ArgInfo& a : arguments_of(*op.info)) {
    auto known = values.find(std::string(name_of(a, op.schema)));
    double number = known == values.end() ? 1 : known->second.number.real();
    stack.push_back(argument(a, number));
  }
  op.from_stack(op, record.numbers, stack);
  TensorBase known = stack[0].get<TensorBase>();
  for (size_t i = 0; i < names.size(); ++i) {
    values.emplace(names[i], Value::of(known.const_data<double>()[i]));
  }
}

Point point(const OperatorEntry& op, const Graph& g, Id forward, int which) {
  Point p;
  int i = 0;
  for (const std::string& name : g.names(forward)) {
    if (!is_argument(op, name)) continue;
    double number = is_integer(op, name) ? which + 1 : kPoints[which][i++ % 3];
    p.values[name] = Value::of(number);
  }
  work_out(op, g.names(forward), p.values);
  double result = at(g, forward, p.values);
  p.usable = std::isfinite(result) && std::abs(result) < 1e6;
  p.values["grad"] = Value::of(1.0);
  p.values["result"] = Value::of(result);
  p.values.emplace("share", Value::of(1.0));  // of a loss without a mean
  return p;
}

// A derivative that nobody has a formula of is recorded as nan.
bool is_unknown(const Graph& g, Id derivative, const char* factor) {
  return to_text(g, derivative) == std::string(factor) + " * nan";
}

TEST(Expressions, RecordedAndDerivedGradientsAreSlopes) {
  int cells = 0;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    const RecordInfo& record = *op->info->record;
    if (record.expressions == nullptr || !record.differentiable) continue;
    if (op->info->form != Form::Functional) continue;
    std::vector<std::string> names = argument_names(*op);
    std::vector<Section> sections = sections_of(record.expressions);
    if (record.dtypes.out == OutKind::Bool) continue;
    for (const Section& s : sections) {
      if (s.role != Role::Gradient || s.kind != Kind::Float) continue;
      const Section* source =
          find(sections, Role::Forward, Kind::Float, s.choice);
      if (source == nullptr) continue;
      Graph g;
      Id forward = g.load(source->words, names);
      Id recorded = g.load(s.words, names);
      const std::string& var = names[static_cast<size_t>(s.index)];
      Id derived = gradient(g, forward, var, floats(g, {forward}));
      if (is_unknown(g, recorded, "grad")) {
        EXPECT_TRUE(is_unknown(g, derived, "grad")) << op->qualified_name();
        continue;
      }
      for (int which = 0; which < 3; ++which) {
        Point p = point(*op, g, forward, which);
        if (!p.usable) continue;
        work_out(*op, g.names(recorded), p.values);
        double expected = slope(g, forward, p.values, var);
        if (!std::isfinite(expected)) continue;
        double bound = 2e-4 * std::max(1.0, std::abs(expected));
        EXPECT_NEAR(at(g, recorded, p.values), expected, bound)
            << op->qualified_name() << " by " << var
            << ", recorded: " << to_text(g, recorded);
        EXPECT_NEAR(at(g, derived, p.values), expected, bound)
            << op->qualified_name() << " by " << var
            << ", derived: " << to_text(g, derived);
        ++cells;
      }
    }
  }
  EXPECT_GT(cells, 300);
}

TEST(Expressions, TangentsAreSlopes) {
  int cells = 0;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    const RecordInfo& record = *op->info->record;
    if (record.expressions == nullptr || !record.differentiable) continue;
    if (op->info->form != Form::Functional) continue;
    std::vector<Section> sections = sections_of(record.expressions);
    const Section* source = find(sections, Role::Forward, Kind::Float, "");
    if (source == nullptr || record.dtypes.out == OutKind::Bool) continue;
    Graph g;
    Id forward = g.load(source->words, argument_names(*op));
    for (const std::string& var : g.names(forward)) {
      if (!is_argument(*op, var)) continue;
      Id found = tangent(g, forward, {{var, "dx"}}, floats(g, {forward}));
      if (is_unknown(g, found, "dx")) continue;
      Point p = point(*op, g, forward, 0);
      double expected = slope(g, forward, p.values, var);
      if (!p.usable || !std::isfinite(expected)) continue;
      // A derivative that is not there is zero.
      p.values["dx"] = Value::of(1.0);
      double got = at(g, found, p.values);
      bool absent = is_number(g, found, 0);
      if (absent) continue;
      EXPECT_NEAR(got, expected, 2e-4 * std::max(1.0, std::abs(expected)))
          << op->qualified_name() << " by " << var << ": " << to_text(g, found);
      ++cells;
    }
  }
  EXPECT_GT(cells, 100);
}

TEST(Expressions, ComplexGradientsFollowWirtinger) {
  // f(z) = z * conj(z): real-valued, so the gradient of z is 2 z.
  Graph g;
  Id z = g.name("z");
  Id f = g.binary(BinaryOp::Mul, z, g.call(find_function("conj"), {z}));
  Kinds kinds{{{"z", Kind::Complex}}, Kind::Complex};
  Id by_z = gradient(g, f, "z", kinds);
  Values values{{"z", Value::of(std::complex<double>(0.5, -2))},
                {"grad", Value::of(std::complex<double>(1, 0))}};
  Value got = evaluate(g, by_z, values, Kind::Complex);
  EXPECT_NEAR(got.number.real(), 1, 1e-12);
  EXPECT_NEAR(got.number.imag(), -4, 1e-12);
}

TEST(Expressions, EqualNodesAreOne) {
  Graph g;
  Id x = g.name("x"), two = g.integer(2);
  EXPECT_EQ(g.binary(BinaryOp::Add, x, two), g.binary(BinaryOp::Add, x, two));
  EXPECT_NE(g.literal(Literal::of(2.0)), two);
  EXPECT_EQ(add(g, x, x), mul(g, two, x));
  EXPECT_EQ(mul(g, g.integer(0), x), g.integer(0));
  EXPECT_EQ(neg(g, neg(g, x)), x);
}

TEST(Expressions, RepeatedPartsAreNamedOnce) {
  Graph g;
  Id x = g.name("x");
  Id e = g.call(find_function("exp"), {x});
  Id f = g.binary(BinaryOp::Div, e, g.binary(BinaryOp::Add, g.integer(1), e));
  CppBlock block = to_cpp(g, {f}, Kinds{});
  ASSERT_EQ(block.statements.size(), 1u);
  EXPECT_EQ(block.statements[0], "const T t0_ = math::exp(x);");
  EXPECT_EQ(block.results[0], "(t0_ / (T(1) + t0_))");
  EXPECT_EQ(to_text(g, f), "exp(x) / (1 + exp(x))");
}

TEST(Expressions, IllegalKindsAreRefused) {
  Graph g;
  Id z = g.name("z");
  Kinds kinds{{{"z", Kind::Complex}}, Kind::Complex};
  Id ordered = g.compare(CompareOp::Lt, z, g.integer(0));
  EXPECT_THROW(g.kind(ordered, kinds), Error);
  EXPECT_THROW(g.kind(g.name("w"), kinds), Error);
  EXPECT_THROW(g.kind(g.cast(2, z), kinds), Error);
}

}  // namespace
}  // namespace taeda::expr
