#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cpu_fallback.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace taeda::native {

namespace {

bool is_program(Device d) { return d.type == DeviceType::PrivateUse1; }

// Whether no two elements lie at one address. False for some that do not.
bool is_apart(IntArrayRef sizes, IntArrayRef strides) {
  SmallVector<std::pair<int64_t, int64_t>, 6> dims;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1) dims.emplace_back(strides[d], sizes[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t extent = 0;
  for (auto [stride, size] : dims) {
    if (stride <= extent) return false;
    extent += stride * (size - 1);
  }
  return true;
}

// A copy on the CPU, with the same strides where that can be: what the operator
// gives is laid out as its arguments are.
TensorBase as_it_lies(std::string_view op, const TensorBase& t) {
  DimVector sizes(t.sizes());
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (t.strides()[d] == 0 && sizes[d] > 1) sizes[d] = 1;
  }
  bool lazy = t.is_conj() || t.is_neg();
  if (lazy || !is_apart(sizes, t.strides())) return on_cpu(t);
  TensorBase here = make_tensor_strided(op, sizes, t.strides(), t.dtype());
  copy_into(here, make_view(t, sizes, t.strides(), t.storage_offset()));
  if (sizes == DimVector(t.sizes())) return here;
  return make_view(here, t.sizes(), t.strides(), 0);
}

// Random factories ------------------------------------------------------------

// A new tensor and what draws into it, by the kernels of the device where it
// has some: its generators are its own.
struct Drawing {
  std::string_view factory;
  const char* draws;
  const char* overload;
};
constexpr Drawing kDrawings[] = {
    {"rand", "uniform_", ""},
    {"rand_like", "uniform_", ""},
    {"randn", "normal_", ""},
    {"randn_like", "normal_", ""},
    {"randint", "random_", "from"},
    {"randint_like", "random_", "from"},
};

// Arguments of `op` by name, from those of another operator; none for others.
class NamedArguments {
 public:
  NamedArguments(const OperatorEntry& op, std::span<const IValue> values)
      : op_(op), values_(values) {}
  IValue get(std::string_view name) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (name_of(op_.info->values[i], op_.schema) == name) return values_[i];
    }
    return {};
  }
  std::vector<IValue> of(const OperatorEntry& other) const {
    std::vector<IValue> found;
    for (const ArgInfo& a : arguments_of(*other.info)) {
      found.push_back(get(name_of(a, other.schema)));
    }
    return found;
  }

 private:
  const OperatorEntry& op_;
  std::span<const IValue> values_;
};

const OperatorEntry& known(const char* name, const char* overload) {
  const OperatorEntry* op = Dispatcher::get().find(name, overload);
  TAEDA_INTERNAL_ASSERT(op != nullptr, "no operator ", name, ".", overload);
  return *op;
}

bool draw_on_device(const OperatorEntry& op, Stack& stack) {
  if (op.info->form != Form::Functional) return false;
  const Drawing* drawing = nullptr;
  for (const Drawing& d : kDrawings) {
    if (d.factory == op.name) drawing = &d;
  }
  if (drawing == nullptr) return false;
  NamedArguments given(op, arguments_on(op, stack));
  bool like = !given.get("self").is_none();
  const OperatorEntry& empty =
      like ? known("empty_like", "") : known("empty", "memory_format");
  std::vector<IValue> options = given.of(empty);
  bool whole = std::string_view(drawing->draws) == "random_";
  for (size_t i = 0; i < options.size() && whole && !like; ++i) {
    bool is_dtype = empty.info->values[i].type == ValueType::ScalarType;
    if (is_dtype && options[i].is_none()) {
      options[i] = static_cast<int64_t>(kLong);
    }
  }
  IValue made = call_with(empty, options).front();
  IValue low = 0.0, high = 1.0;
  if (whole) {
    low = given.get("low").is_none() ? IValue(int64_t{0}) : given.get("low");
    high = given.get("high");
  }
  std::vector<IValue> limits{made, low, high, given.get("generator")};
  call_with(known(drawing->draws, drawing->overload), limits);
  stack.resize(stack.size() - op.info->arguments);
  stack.push_back(made);
  return true;
}

// Everything else -------------------------------------------------------------

// One call's tensors and their copies.
class Copies {
 public:
  explicit Copies(const OperatorEntry& op) : op_(op) {}

  void move_arguments(std::span<IValue> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const ArgInfo& a = op_.info->values[i];
      // Indices, and numbers in tensors, may lie on the CPU.
      bool anywhere = a.has(ArgInfo::kOptionalElement);
      bool written = a.has(ArgInfo::kWritten);
      each_tensor(values[i], [&](TensorBase& t) {
        t = copy_of(t, anywhere || (t.dim() == 0 && !written), written);
      });
      if (a.type != ValueType::Device) continue;
      if (values[i].is_none() && !device_) values[i] = default_device();
      if (values[i].is_none()) continue;
      Device wanted = values[i].get<Device>();
      if (is_program(wanted)) {
        device_ = wanted;
        values[i] = Device();
      }
    }
  }

  // Results that are arguments become these again.
  void move_results(std::span<IValue> results) {
    for (const Pair& p : pairs_) {
      if (p.written) write_back(p);
    }
    each_tensor(results, [&](TensorBase& t) { t = original_of(t); });
  }

 private:
  struct Pair {
    TensorBase there, here;
    bool written;
  };

  TensorBase copy_of(const TensorBase& t, bool anywhere, bool written) {
    if (!is_program(t.device())) {
      if (!anywhere || !t.is_cpu()) check_device(t);
      if (t.is_cpu()) others_.push_back(t);
      return t;
    }
    device_ = device_.value_or(t.device());
    if (first_.defined()) check_same_device(op_.name, first_, t);
    first_ = t;
    for (const TensorBase& other : strangers_) {
      check_same_device(op_.name, t, other);
    }
    for (Pair& p : pairs_) {
      if (!p.there.is_same(t)) continue;
      p.written = p.written || written;
      return p.here;
    }
    if (written) check_no_internal_overlap(op_.name, t);
    TensorBase here = as_it_lies(op_.name, t);
    here.impl()->is_wrapped_number = t.impl()->is_wrapped_number;
    pairs_.push_back({t, here, written});
    return here;
  }

  // A tensor of another device in a call of this one.
  void check_device(const TensorBase& t) {
    if (first_.defined()) check_same_device(op_.name, first_, t);
    strangers_.push_back(t);
  }

  void write_back(const Pair& p) const {
    bool same =
        p.there.sizes() == p.here.sizes() && p.there.dtype() == p.here.dtype();
    if (!same) {
      resize_tensor_strided(p.there, p.here.sizes(), p.here.strides());
    }
    copy_into(p.there, p.here);
  }

  TensorBase original_of(const TensorBase& t) const {
    for (const TensorBase& other : others_) {
      if (other.is_same(t)) return t;
    }
    for (const Pair& p : pairs_) {
      if (p.here.is_same(t)) return p.there;
      TAEDA_CHECK_AS(NotImplemented,
                     !t.storage() || p.here.storage() != t.storage(),
                     op_.qualified_name(),
                     ": its result shares memory with an argument, which the "
                     "CPU cannot make for device ",
                     p.there.device());
    }
    TensorBase there = make_tensor_strided(
        op_.name, t.sizes(), t.strides(), t.dtype(), *device_);
    copy_into(there, t);
    return there;
  }

  const OperatorEntry& op_;
  std::optional<Device> device_;
  TensorBase first_;
  std::vector<Pair> pairs_;
  std::vector<TensorBase> strangers_, others_;
};

}  // namespace

void cpu_fallback(const OperatorEntry& op, Stack& stack) {
  if (draw_on_device(op, stack)) return;
  size_t base = stack.size() - op.info->arguments;
  Copies copies(op);
  copies.move_arguments(arguments_on(op, stack));
  call_operator(op, stack);
  copies.move_results(std::span(stack).subspan(base));
}

}  // namespace taeda::native
