#include <taeda/aten/native/cuda/formulas.h>

#include <taeda/aten/native/cuda/folds.h>
#include <taeda/c10/util/format.h>

#include <algorithm>
#include <iterator>

namespace taeda::cuda {

// `step` is 2 of a map, 0 of a reduction, 1 or -1 of a scan; a text for each
// kind, null where the formula has none.
struct FormulaText {
  const char* op;
  int step;
  const char* texts[3];
};

namespace {

constexpr FormulaText kFormulas[] = {
#include <formulas.inc>
};

constexpr const char* kReadAs[] = {"Long", "double", "complex<double>"};
constexpr const char* kHeader =
    "#include <taeda/aten/native/cuda/formula.cuh>\n";

const IValue* value_of(const OperatorEntry& op,
                       const IValue* values,
                       std::string_view name) {
  ArrayRef<ArgInfo> arguments = arguments_of(*op.info);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (name_of(arguments[i], op.schema) == name && !values[i].is_none()) {
      return &values[i];
    }
  }
  return nullptr;
}

bool holds_places(const Given& given) {
  return given.name == "index" || given.name == "indices";
}

// The axes that are folded, as bits.
uint64_t folded_axes(const IValue* dim, int64_t rank) {
  uint64_t all = rank == 0 ? 0 : ~uint64_t{0} >> (64 - rank);
  if (dim == nullptr || rank == 0) return all;
  if (dim->is<int64_t>()) {
    int64_t d = dim->get<int64_t>();
    return uint64_t{1} << (d < 0 ? d + rank : d);
  }
  uint64_t named = 0;
  for (int64_t d : dim->get<std::vector<int64_t>>()) {
    named |= uint64_t{1} << (d < 0 ? d + rank : d);
  }
  return named == 0 ? all : named;
}

// The same elements with the folded axes last.
TensorBase folded_last(const TensorBase& t, uint64_t folded) {
  DimVector sizes, strides;
  for (uint64_t wanted : {uint64_t{0}, uint64_t{1}}) {
    for (size_t d = 0; d < t.sizes().size(); ++d) {
      if ((folded >> d & 1) != wanted) continue;
      sizes.push_back(t.sizes()[d]);
      strides.push_back(t.strides()[d]);
    }
  }
  return make_view(t, sizes, strides, t.storage_offset());
}

FoldedRows set_folded(GivenCall& call,
                      const OperatorEntry& op,
                      const FormulaText& formula,
                      const IValue* values,
                      size_t results) {
  const TensorBase* first = nullptr;
  for (Given& given : call.slots) {
    if (given.type == Given::Type::Tensor) {
      first = &given.tensor;
      break;
    }
  }
  TensorBase self = *first;
  uint64_t folded = folded_axes(value_of(op, values, "dim"), self.dim());
  int64_t count = 1;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if ((folded >> d & 1) != 0) count *= self.sizes()[d];
  }
  size_t begin = call.slots.size() - results;
  for (size_t i = 0; i < call.slots.size(); ++i) {
    Given& given = call.slots[i];
    bool moves = i < begin || formula.step != 0;
    if (given.type != Given::Type::Tensor || given.missing || !moves) continue;
    given.tensor = folded_last(given.tensor, folded);
  }
  call.count = formula.step == 0 ? call.slots.back().tensor.numel()
                                 : (count == 0 ? 0 : self.numel() / count);
  Given length;
  length.name = "count_";
  length.integer = count;
  call.slots.insert(call.slots.begin(), std::move(length));
  TensorBase rows = folded_last(self, folded);
  bool beside = rows.dim() == 0 || rows.strides().back() == 1;
  return {call.count, count, formula.step, beside};
}

}  // namespace

const FormulaText* formula_of(const OperatorEntry& op) {
  std::string name = op.name;
  if (*op.overload != '\0') name += str_cat(".", op.overload);
  for (const FormulaText& text : kFormulas) {
    if (name == text.op) return &text;
  }
  return nullptr;
}

bool run_formula(const OperatorEntry& op,
                 const FormulaText& formula,
                 const IValue* values,
                 const std::vector<TensorBase>& results) {
  GivenCall call;
  call.op = op.name;
  call.formula = &formula;
  call.slots = slots_of(op, values, results);
  ScalarType decides = results[0].dtype();
  if (formula.step == 0) {
    const Given& first = call.slots.front();
    if (first.type == Given::Type::Tensor) decides = first.tensor.dtype();
  }
  auto kind = static_cast<size_t>(value_kind(decides));
  if (formula.texts[kind] == nullptr) return false;
  call.variant = static_cast<int>(kind);
  call.text = formula.texts[kind];
  call.header = kHeader;
  call.body = "g.result.write(i, value_of(g, Place(g.result.slot, i)));";
  call.count = results[0].numel();
  for (Given& given : call.slots) {
    given.read_as = kReadAs[holds_places(given) ? 0 : kind];
  }
  if (formula.step != 2) {
    run_rows_of(call, set_folded(call, op, formula, values, results.size()));
    return true;
  }
  run_given(call);
  return true;
}

}  // namespace taeda::cuda
