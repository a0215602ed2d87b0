#include <taeda/csrc/functorch/functional_forms.h>

#include <taeda/gen/ops/clone.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace taeda::functorch {

namespace {

// Note [Functional forms]
// The functional form of an operator that writes has its name, without the
// underscore of one that changes its first argument, or with `_functional`
// where that name is taken. It takes the same arguments, or, for out= forms,
// those that are not written, with options of new tensors behind them. Its
// results are the operator's own, then one for each argument that is written.
// Nothing is listed: schemas of records and of libraries are compared.
struct FunctionalForm {
  const OperatorEntry* op = nullptr;
  // For each of its arguments the place in the operator's; -1 for an option of
  // a new tensor, which is to be like the one that is written.
  std::vector<int> places{};
};

bool changes_in_place(const OperatorEntry& op) {
  return std::string_view(op.name).ends_with('_') && is_written(op, 0);
}

size_t count_written(const OperatorEntry& op) {
  size_t count = 0;
  for (size_t i = 0; i < op.info->arguments; ++i) count += is_written(op, i);
  return count;
}

size_t own_results(const OperatorEntry& op) {
  return op.info->results - op.written_count;
}

bool same_type(const ArgInfo& a, const ArgInfo& b) {
  constexpr uint8_t kShape =
      ArgInfo::kOptional | ArgInfo::kList | ArgInfo::kOptionalElement;
  return a.type == b.type && (a.flags & kShape) == (b.flags & kShape);
}

bool is_option(const ArgInfo& a) {
  return a.has(ArgInfo::kHasDefault) && a.has(ArgInfo::kOptional);
}

// The places of a candidate's arguments; nothing where it is no form.
std::optional<std::vector<int>> places_in(const OperatorEntry& candidate,
                                          const OperatorEntry& op,
                                          bool drops_written) {
  bool results_fit =
      candidate.info->results == own_results(op) + count_written(op);
  if (writes(candidate) || !results_fit) return std::nullopt;
  std::vector<int> places;
  size_t at = 0, count = op.info->arguments;
  for (const ArgInfo& a : arguments_of(*candidate.info)) {
    while (drops_written && at < count && is_written(op, at)) ++at;
    if (at < count && same_type(a, op.info->values[at])) {
      places.push_back(static_cast<int>(at++));
    } else if (drops_written && is_option(a)) {
      places.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  while (drops_written && at < count && is_written(op, at)) ++at;
  if (at < count) return std::nullopt;
  return places;
}

// Of several, that of the same overload, else the one with least options.
FunctionalForm find_named(const OperatorEntry& op,
                          std::string_view name,
                          bool drops_written) {
  FunctionalForm best;
  for (const OperatorEntry* candidate : Dispatcher::get().all()) {
    if (name != candidate->name) continue;
    auto places = places_in(*candidate, op, drops_written);
    if (!places) continue;
    FunctionalForm form{candidate, std::move(*places)};
    if (std::string_view(candidate->overload) == op.overload) return form;
    bool fewer = best.op == nullptr || form.places.size() < best.places.size();
    if (fewer) best = std::move(form);
  }
  return best;
}

FunctionalForm find_form(const OperatorEntry& op) {
  std::string_view name = op.name;
  if (!changes_in_place(op)) return find_named(op, name, true);
  name.remove_suffix(1);
  FunctionalForm found = find_named(op, name, false);
  if (found.op != nullptr) return found;
  return find_named(op, str_cat(name, "_functional"), false);
}

// Operators never go away; a library may define a form later than its operator.
FunctionalForm form_of(const OperatorEntry& op) {
  static std::mutex mutex;
  static auto* known =
      new std::unordered_map<const OperatorEntry*, FunctionalForm>;
  std::lock_guard guard(mutex);
  auto at = known->find(&op);
  if (at != known->end()) return at->second;
  FunctionalForm form = find_form(op);
  if (form.op != nullptr) known->emplace(&op, form);
  return form;
}

// An option of a form of out=: like the tensor that is written.
IValue option_like(const ArgInfo& option, const TensorBase& out) {
  if (option.type == ValueType::ScalarType) {
    return static_cast<int64_t>(out.dtype());
  }
  if (option.type == ValueType::Device) return out.device();
  return {};
}

Stack arguments_for(const FunctionalForm& form,
                    const OperatorEntry& op,
                    std::span<const IValue> args) {
  Stack stack;
  for (size_t i = 0; i < form.places.size(); ++i) {
    int place = form.places[i];
    stack.push_back(
        place >= 0 ? args[static_cast<size_t>(place)]
                   : option_like(form.op->info->values[i],
                                 args[op.written_first].get<TensorBase>()));
  }
  return stack;
}

Computed on_copies(const OperatorEntry& op, std::span<const IValue> args) {
  Stack stack(args.begin(), args.end());
  Computed computed;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!is_written(op, i)) continue;
    each_tensor(stack[i], [](TensorBase& t) { t = ops::clone(t); });
    computed.written.push_back(stack[i]);
  }
  call_operator(op, stack);
  computed.results.assign(stack.begin() + op.written_count, stack.end());
  return computed;
}

}  // namespace

bool writes(const OperatorEntry& op) {
  return std::ranges::any_of(arguments_of(*op.info), [](const ArgInfo& a) {
    return a.has(ArgInfo::kWritten);
  });
}

const OperatorEntry* functional_form(const OperatorEntry& op) {
  return form_of(op).op;
}

Computed compute_functionally(const OperatorEntry& op,
                              std::span<const IValue> args) {
  FunctionalForm form = form_of(op);
  if (form.op == nullptr) return on_copies(op, args);
  Stack all = arguments_for(form, op, args);
  call_operator(*form.op, all);
  auto middle = all.begin() + static_cast<std::ptrdiff_t>(own_results(op));
  return {Stack(all.begin(), middle), Stack(middle, all.end())};
}

}  // namespace taeda::functorch
