#include <taeda/aten/core/op_info.h>
#include <taeda/aten/expr/print.h>
#include <taeda/aten/record_json.h>

namespace taeda {

namespace {

// By the order of their enumerations.
constexpr const char* kFamilies[] = {"pointwise",
                                     "reduction",
                                     "composite",
                                     "view",
                                     "kernel",
                                     "foreach",
                                     "map",
                                     "scan",
                                     "user"};
constexpr const char* kForms[] = {"functional", "inplace", "out"};
constexpr std::pair<OpTag, const char*> kTags[] = {
    {OpTag::DataDependentOutput, "data_dependent_output"},
    {OpTag::DynamicOutputShape, "dynamic_output_shape"},
    {OpTag::InPlace, "inplace"},
    {OpTag::InPlaceView, "inplace_view"},
    {OpTag::NondeterministicSeeded, "nondeterministic_seeded"},
    {OpTag::Out, "out"},
    {OpTag::Pointwise, "pointwise"},
    {OpTag::Reduction, "reduction"},
    {OpTag::ViewCopy, "view_copy"},
};
constexpr const char* kPromotions[] = {"default",
                                       "int_to_float",
                                       "int_through_double",
                                       "first",
                                       "int_to_long",
                                       "float_only"};
constexpr const char* kAutocast[] = {
    "keep", "lower", "float32", "float32_result", "promote", "refuse"};
constexpr const char* kOutKinds[] = {"same", "bool", "real"};
constexpr const char* kRoles[] = {"forward",
                                  "gradient",
                                  "init",
                                  "map",
                                  "combine",
                                  "finish",
                                  "element",
                                  "choice",
                                  "numbers",
                                  "step"};
constexpr const char* kKinds[] = {"bool", "int", "float", "complex"};

template <size_t N, class E>
const char* name_in(const char* const (&names)[N], E value) {
  return names[static_cast<size_t>(value)];
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Members of an object, or elements of a list, with commas between them.
class Json {
 public:
  explicit Json(char open) : text_(1, open) {}
  void add(std::string_view element) {
    if (text_.size() > 1) text_ += ", ";
    text_ += element;
  }
  void member(std::string_view key, std::string_view value) {
    add(str_cat('"', key, "\": ", value));
  }
  void string(std::string_view key, std::string_view value) {
    member(key, quoted(value));
  }
  void flag(std::string_view key, bool value) {
    if (value) member(key, "true");
  }
  std::string closed() && {
    text_ += text_[0] == '{' ? '}' : ']';
    return std::move(text_);
  }

 private:
  std::string text_;
};

// "a" of `(a!)`; "*" where it may share memory with anything.
std::string alias_names(uint8_t bits) {
  std::string out;
  for (int i = 0; i < 7; ++i) {
    if ((bits >> i & 1) != 0) out += static_cast<char>('a' + i);
  }
  return (bits & ArgInfo::kAnyAlias) != 0 ? out + '*' : out;
}

std::string value_json(const ArgInfo& value, std::string_view schema) {
  static constexpr const char* kTypes[] = {"Tensor",
                                           "Scalar",
                                           "int",
                                           "SymInt",
                                           "float",
                                           "bool",
                                           "str",
                                           "ScalarType",
                                           "Layout",
                                           "Device",
                                           "MemoryFormat",
                                           "Generator",
                                           "other"};
  Json out('{');
  out.string("name", name_of(value, schema));
  std::string type = name_in(kTypes, value.type);
  if (value.has(ArgInfo::kOptionalElement)) type += '?';
  if (value.has(ArgInfo::kList)) {
    type += value.list_size < 0 ? "[]" : str_cat('[', value.list_size, ']');
  }
  if (value.has(ArgInfo::kOptional)) type += '?';
  out.string("type", type);
  if (value.has(ArgInfo::kHasDefault)) {
    out.string("default", default_of(value, schema));
  }
  out.flag("keyword_only", value.has(ArgInfo::kKeywordOnly));
  if (value.alias != 0) out.string("alias", alias_names(value.alias));
  out.flag("written", value.has(ArgInfo::kWritten));
  return std::move(out).closed();
}

std::string values_json(ArrayRef<ArgInfo> values, std::string_view schema) {
  Json out('[');
  for (const ArgInfo& value : values) out.add(value_json(value, schema));
  return std::move(out).closed();
}

std::string dtypes_json(const DtypeRule& rule) {
  Json accepts('['), computes('['), out('{');
  for (int i = 0; i < kNumScalarTypes; ++i) {
    auto type = static_cast<ScalarType>(i);
    if (rule.takes(type)) accepts.add(quoted(dtype_name(type)));
  }
  for (int i = 0; i < kNumCompute; ++i) {
    auto type = static_cast<Compute>(i);
    if (rule.computes_in(type)) computes.add(quoted(dtype_name(type_of(type))));
  }
  out.member("accepts", std::move(accepts).closed());
  out.member("computes", std::move(computes).closed());
  out.string("promotes", name_in(kPromotions, rule.promote));
  out.string("result", name_in(kOutKinds, rule.out));
  out.member("conditions", str_cat(rule.conditions));
  return std::move(out).closed();
}

std::string autocast_json(const RecordInfo& record) {
  Json out('{');
  out.string("cpu", name_in(kAutocast, record.autocast_cpu));
  out.string("cuda", name_in(kAutocast, record.autocast_cuda));
  return std::move(out).closed();
}

std::string expressions_json(const OperatorEntry& op) {
  std::vector<std::string> names;
  for (const ArgInfo& a : arguments_of(*op.info)) {
    names.emplace_back(name_of(a, op.schema));
  }
  std::vector<std::string> numbers =
      expr::numbers_of(op.info->record->expressions);
  names.insert(names.end(), numbers.begin(), numbers.end());
  Json all('[');
  for (const expr::Section& s :
       expr::sections_of(op.info->record->expressions)) {
    expr::Graph graph;
    Json one('{');
    one.string("role", name_in(kRoles, s.role));
    one.string("kind", name_in(kKinds, s.kind));
    if (s.role == expr::Role::Gradient) {
      one.string("argument", names[static_cast<size_t>(s.index)]);
    }
    if (s.role >= expr::Role::Init && s.role <= expr::Role::Combine) {
      // Several accumulators come first among the names.
      auto index = static_cast<size_t>(s.index);
      one.string("accumulator", numbers.empty() ? "acc" : numbers[index]);
    }
    if (!s.choice.empty()) one.string("choice", s.choice);
    one.string("text", to_text(graph, graph.load(s.words, names)));
    all.add(std::move(one).closed());
  }
  return std::move(all).closed();
}

// What an operator of lists calls for each entry.
std::string element_json(const OperatorEntry* element) {
  if (element == nullptr) return "null";
  Json out('{');
  out.string("name", element->qualified_name());
  out.string("family", name_in(kFamilies, element->info->record->family));
  return std::move(out).closed();
}

}  // namespace

std::string record_json(const OperatorEntry& op) {
  const OpInfo& info = *op.info;
  const RecordInfo& record = *info.record;
  Json out('{'), tags('[');
  out.string("name", op.qualified_name());
  out.string("schema", op.schema);
  out.string("form", name_in(kForms, info.form));
  out.string("family", name_in(kFamilies, record.family));
  for (auto [tag, name] : kTags) {
    if (info.has(tag)) tags.add(quoted(name));
  }
  out.member("tags", std::move(tags).closed());
  out.member("differentiable", record.differentiable ? "true" : "false");
  out.member("arguments", values_json(arguments_of(info), op.schema));
  out.member("results", values_json(results_of(info), op.schema));
  bool typed = record.dtypes.computes != 0;
  out.member("dtypes", typed ? dtypes_json(record.dtypes) : "null");
  bool cast = info.form == Form::Functional;
  out.member("autocast", autocast_json(cast ? record : RecordInfo{}));
  bool has_axes = record.axes != nullptr;
  out.member("axes", has_axes ? quoted(record.axes) : "null");
  bool formula = record.expressions != nullptr;
  out.member("expressions", formula ? expressions_json(op) : "[]");
  out.member("element", element_json(info.element));
  return std::move(out).closed();
}

}  // namespace taeda
