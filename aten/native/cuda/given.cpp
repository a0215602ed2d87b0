#include <taeda/aten/native/cuda/given.h>

#include <taeda/aten/core/dispatcher.h>
#include <taeda/aten/native/cuda/program.h>
#include <taeda/c10/cuda/fault.h>
#include <taeda/c10/util/format.h>

#include <algorithm>
#include <cstring>

namespace taeda::cuda {

namespace {

constexpr int kMaxRank = 8;
constexpr int kMaxEntries = 16;
constexpr unsigned kThreads = 256;
constexpr int64_t kMostBlocksPerProcessor = 16;
constexpr size_t kMostSlots = 16;  // parameters of a kernel have 4 KiB

// As in formula.cuh.
struct Slot {
  void* data = nullptr;
  int64_t numel = 0;
  int32_t rank = 0, linear = 0, missing = 0, integral = 0;
  int64_t integer = 0;
  double real = 0, imag = 0;
  int64_t entries[kMaxEntries] = {};
};
static_assert(sizeof(Slot) == 184);

struct CallBytes {
  int64_t count = 0;
  Fault* fault = nullptr;
  const char* op = nullptr;
  Slot slots[kMostSlots] = {};
};

void refuse(bool refused, const char* op, const char* what, int64_t got) {
  TAEDA_CHECK_AS(NotImplemented, !refused, op, ": CUDA kernels ", what, got);
}

void set_tensor(Slot& slot, const TensorBase& t, const char* op) {
  refuse(t.dim() > kMaxRank, op, "take at most 8 dims, got ", t.dim());
  slot.data = const_cast<void*>(t.const_raw_data());
  slot.numel = t.numel();
  slot.rank = static_cast<int32_t>(t.dim());
  slot.linear = t.is_contiguous() ? 1 : 0;
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    slot.entries[d] = t.sizes()[d];
    slot.entries[d + kMaxRank] = t.strides()[d];
  }
}

void set_number(Slot& slot, const Scalar& v) {
  slot.integral = v.is_integral() || v.is_bool() ? 1 : 0;
  if (v.is_complex()) {
    complex<double> whole = v.to_complex();
    slot.real = whole.real();
    slot.imag = whole.imag();
  } else {
    slot.real = v.to_double();
  }
  bool in_range = std::abs(slot.real) < 9.2e18;
  slot.integer = slot.integral != 0 ? v.to_int()
                 : in_range         ? static_cast<int64_t>(slot.real)
                                    : 0;
}

void set_list(Slot& slot, const IValue& v, const char* op) {
  auto put = [&](const auto& list, auto store) {
    refuse(list.size() > static_cast<size_t>(kMaxEntries),
           op,
           "take lists of at most 16 numbers, got ",
           static_cast<int64_t>(list.size()));
    slot.numel = static_cast<int64_t>(list.size());
    for (size_t i = 0; i < list.size(); ++i) store(i, list[i]);
  };
  if (v.is<std::vector<double>>()) {
    put(v.get<std::vector<double>>(), [&](size_t i, double x) {
      std::memcpy(&slot.entries[i], &x, sizeof(x));
    });
  } else if (v.is<std::vector<bool>>()) {
    put(v.get<std::vector<bool>>(),
        [&](size_t i, bool x) { slot.entries[i] = x; });
  } else {
    put(v.get<std::vector<int64_t>>(),
        [&](size_t i, int64_t x) { slot.entries[i] = x; });
  }
}

void fill(Slot& slot, const Given& given, const char* op) {
  slot.missing = given.missing ? 1 : 0;
  if (given.missing) return;
  switch (given.type) {
    case Given::Type::Tensor:
      return set_tensor(slot, given.tensor, op);
    case Given::Type::List:
      return set_list(slot, *given.value, op);
    case Given::Type::Number:
      if (given.value == nullptr) {
        return set_number(slot, Scalar(given.integer));
      }
      return set_number(slot, given.value->to_scalar());
  }
}

// What elements of a dtype are computed in.
const char* computed_as(ScalarType t) {
  switch (t) {
    case kDouble:
      return "double";
    case kComplexDouble:
      return "complex<double>";
    default:
      if (is_complex(t)) return "complex<float>";
      return is_floating(t) ? "float" : "Long";
  }
}

std::string member_type(const Given& given) {
  switch (given.type) {
    case Given::Type::Tensor: {
      if (given.missing) return "Nothing";
      std::string_view as = given.read_as;
      if (as.empty()) as = computed_as(given.tensor.dtype());
      return message("Elements<{}, {}>", device_type(given.tensor.dtype()), as);
    }
    case Given::Type::List:
      return "Numbers";
    default:
      return "Number";
  }
}

std::string text_of_call(const GivenCall& call) {
  std::string members, starts;
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const Given& given = call.slots[i];
    members += message("  const {} {};\n", member_type(given), given.name);
    starts += message(
        "{}{}(call.slots[{}])", i == 0 ? "" : ",\n        ", given.name, i);
  }
  std::string type = message("GivenCall<{}>", call.slots.size());
  std::string text = str_cat(
      call.header, "namespace taeda {\n", call.text, "\nstruct Given {\n");
  text += members;
  text += str_cat("  __device__ inline explicit Given(const ",
                  type,
                  "& call)\n      : ",
                  starts,
                  " {}\n};\n");
  text += "extern \"C\" ";
  if (call.blocks) {
    text += message("__launch_bounds__({}) ", call.blocks->threads);
  }
  text += str_cat("__global__ void kernel(const __grid_constant__ ",
                  type,
                  " call) {\n  current_caller() = &call.caller;\n"
                  "  const Given g(call);\n");
  if (call.blocks) {
    text += str_cat("  ", call.body, "\n");
  } else {
    text += "  for_each(call.count, [&](Long i) {\n    ";
    text += str_cat(call.body, "\n  });\n");
  }
  return text + "}\n}  // namespace taeda\n";
}

ProgramKey key_of(const GivenCall& call) {
  ProgramKey key;
  key.formula = call.formula;
  key.add(call.variant);
  for (const Given& given : call.slots) {
    bool tensor = given.type == Given::Type::Tensor && !given.missing;
    key.add(tensor ? static_cast<int>(given.tensor.dtype()) + 8
                   : static_cast<int>(given.type));
  }
  return key;
}

// Of a loop over elements, whose threads do not know of each other.
Grid grid_of(const GivenCall& call) {
  int64_t blocks = (call.count + kThreads - 1) / kThreads;
  int64_t most =
      kMostBlocksPerProcessor * properties_of(current_device()).multiprocessors;
  Grid grid;
  grid.x = static_cast<unsigned>(std::min(blocks, most));
  grid.threads = static_cast<unsigned>(
      std::min<int64_t>(kThreads, (call.count + 31) / 32 * 32));
  return grid;
}

// Of the results, of which some may be missing.
int device_of(const GivenCall& call) {
  for (size_t i = call.slots.size(); i-- > 0;) {
    const TensorBase& t = call.slots[i].tensor;
    if (t.defined()) return t.device().index;
  }
  TAEDA_INTERNAL_ASSERT(false, call.op, ": a call without a tensor");
}

}  // namespace

ValueKind value_kind(ScalarType t) {
  if (is_complex(t)) return ValueKind::Complex;
  return is_floating(t) ? ValueKind::Float : ValueKind::Int;
}

void run_given(const GivenCall& call) {
  if (call.count == 0) return;
  refuse(call.slots.size() > kMostSlots,
         call.op,
         "take at most 16 arguments and results, got ",
         static_cast<int64_t>(call.slots.size()));
  DeviceGuard guard(device_of(call));
  CallBytes bytes;
  bytes.count = call.count;
  bytes.fault = fault_of(current_device());
  bytes.op = call.op;
  for (size_t i = 0; i < call.slots.size(); ++i) {
    fill(bytes.slots[i], call.slots[i], call.op);
  }
  FunctionHandle function =
      program(call.op, key_of(call), [&] { return text_of_call(call); });
  launch(call.op, function, call.blocks.value_or(grid_of(call)), &bytes);
}

DeviceCall::DeviceCall(const char* op, const char* header, const char* body) {
  call_.op = op;
  call_.formula = body;
  call_.header = header_text(header);
  call_.body = body;
}

DeviceCall& DeviceCall::tensor(const char* name, const TensorBase& t) {
  Given given;
  given.name = name;
  given.type = Given::Type::Tensor;
  given.missing = !t.defined();
  given.tensor = t;
  call_.slots.push_back(std::move(given));
  return *this;
}

DeviceCall& DeviceCall::number(const char* name, const Scalar& value) {
  Given given;
  given.name = name;
  kept_.push_back(std::make_unique<IValue>(value));
  given.value = kept_.back().get();
  call_.slots.push_back(std::move(given));
  return *this;
}

DeviceCall& DeviceCall::list(const char* name, IntArrayRef values) {
  Given given;
  given.name = name;
  given.type = Given::Type::List;
  kept_.push_back(std::make_unique<IValue>(
      std::vector<int64_t>(values.begin(), values.end())));
  given.value = kept_.back().get();
  call_.slots.push_back(std::move(given));
  return *this;
}

DeviceCall& DeviceCall::list(const char* name, std::vector<double> values) {
  Given given;
  given.name = name;
  given.type = Given::Type::List;
  kept_.push_back(std::make_unique<IValue>(std::move(values)));
  given.value = kept_.back().get();
  call_.slots.push_back(std::move(given));
  return *this;
}

void DeviceCall::run(int64_t count) {
  call_.count = count;
  run_given(call_);
}

std::string header_text(const char* name) {
  return message("#include <taeda/aten/native/cuda/{}.cuh>\n", name);
}

std::string result_name(const OperatorEntry& op, size_t i) {
  if (op.info->results == 1) return "result";
  std::string_view name = name_of(results_of(*op.info)[i], op.schema);
  return name.empty() ? str_cat("out", i) : std::string(name);
}

std::vector<Given> slots_of(const OperatorEntry& op,
                            const IValue* values,
                            const std::vector<TensorBase>& results) {
  std::vector<Given> slots;
  ArrayRef<ArgInfo> arguments = arguments_of(*op.info);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgInfo& a = arguments[i];
    bool usable = a.type <= ValueType::Bool && !a.has(ArgInfo::kWritten);
    if (!usable || (a.is_tensor() && a.has(ArgInfo::kList))) continue;
    Given given;
    given.name = name_of(a, op.schema);
    given.value = &values[i];
    given.missing = values[i].is_none();
    if (a.is_tensor()) {
      given.type = Given::Type::Tensor;
      if (!given.missing) given.tensor = values[i].get<TensorBase>();
      given.missing = !given.tensor.defined();
    } else if (a.has(ArgInfo::kList)) {
      given.type = Given::Type::List;
    }
    slots.push_back(std::move(given));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    Given given;
    given.name = result_name(op, i);
    given.type = Given::Type::Tensor;
    given.tensor = results[i];
    given.missing = !results[i].defined();
    slots.push_back(std::move(given));
  }
  return slots;
}

}  // namespace taeda::cuda
