#include <taeda/aten/native/cuda/elementwise.h>

#include <taeda/aten/iter/launch.h>
#include <taeda/aten/native/cuda/list_launch.h>
#include <taeda/aten/native/cuda/program.h>
#include <taeda/c10/util/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

namespace taeda::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kMostBlocksPerProcessor = 16;

// The form of a call, from which its text follows.
struct Form {
  Access access[kMaxOperands] = {};  // 0 is the output
  ScalarType stored[kMaxOperands] = {};
  ScalarType seen[kMaxOperands] = {};
  int count = 0;  // operands with the output
  int pack = 1;   // elements of one access where all lie linearly
  bool linear = true;
  bool wide = false;  // places need 64 bits
  int numbers = 0, scalars = 0;
  bool list = false;  // a row of a table, see list_launch.h
  // What holds the numbers, and how many elements there are, in the text.
  const char* numbers_of() const {
    return list ? "call.rows[chunk.tensor]" : "call";
  }
  const char* end() const { return list ? "chunk.count" : "call.count"; }
};

// The call's parameter, laid out as PointwiseCall of pointwise.cuh.
struct CallBytes {
  alignas(16) unsigned char bytes[2048];
  size_t used = 0;
  template <class T>
  void add(T value) {
    used = (used + alignof(T) - 1) / alignof(T) * alignof(T);
    std::memcpy(bytes + used, &value, sizeof(T));
    used += sizeof(T);
  }
};

IterationSpace space_of(const TensorBase& out,
                        ArrayRef<DeviceOperand> operands) {
  DimVector byte_strides[kMaxOperands];
  const int64_t* strides[kMaxOperands];
  operand_strides(out, out.sizes(), byte_strides[0]);
  size_t k = 1;
  for (const DeviceOperand& o : operands) {
    if (o.tensor != nullptr) {
      operand_strides(*o.tensor, out.sizes(), byte_strides[k]);
    } else {
      byte_strides[k].resize(out.sizes().size(), 0);
    }
    ++k;
  }
  for (size_t i = 0; i < k; ++i) strides[i] = byte_strides[i].data();
  return IterationSpace(out.sizes(), ArrayRef<const int64_t*>(strides, k));
}

// Bytes from the first to the last element, so how far places reach.
bool reaches_far(const IterationSpace& space, int operand, int64_t itemsize) {
  int64_t reach = 0;
  for (int d = 0; d < space.dim(); ++d) {
    reach += (space.size(d) - 1) * space.stride(operand, d) / itemsize;
  }
  return reach > INT_MAX || space.numel() > INT_MAX;
}

const void* memory_of(const TensorBase& out,
                      ArrayRef<DeviceOperand> operands,
                      int k) {
  if (k == 0) return out.mutable_raw_data();
  const TensorBase* t = operands[static_cast<size_t>(k - 1)].tensor;
  return t == nullptr ? nullptr : t->const_raw_data();
}

Form form_of(const Elementwise& what,
             const IterationSpace& space,
             const TensorBase& out,
             ArrayRef<DeviceOperand> operands,
             const Numbers& numbers,
             int scalars) {
  Form form;
  form.count = static_cast<int>(operands.size()) + 1;
  form.numbers = numbers.count;
  form.scalars = scalars;
  int64_t widest = 1;
  for (int k = 0; k < form.count; ++k) {
    const TensorBase* t =
        k == 0 ? &out : operands[static_cast<size_t>(k - 1)].tensor;
    form.seen[k] =
        k == 0 ? what.result : operands[static_cast<size_t>(k - 1)].seen;
    if (t == nullptr) {
      form.access[k] = Access::Number;
      form.stored[k] = form.seen[k];
      continue;
    }
    auto itemsize = static_cast<int64_t>(t->itemsize());
    form.stored[k] = t->dtype();
    bool one = k > 0 && t->numel() == 1;
    bool linear = !one && space.is_linear(k, itemsize);
    form.access[k] = one      ? Access::One
                     : linear ? Access::Linear
                              : Access::Strided;
    if (!one) {
      form.linear = form.linear && linear;
      form.wide = form.wide || reaches_far(space, k, itemsize);
      widest = std::max(widest, itemsize);
    }
  }
  if (!form.linear) return form;
  form.pack = static_cast<int>(std::max<int64_t>(1, 16 / widest));
  for (int k = 0; k < form.count; ++k) {
    if (form.access[k] != Access::Linear) continue;
    auto at = reinterpret_cast<uintptr_t>(memory_of(out, operands, k));
    if (at % (element_size(form.stored[k]) * static_cast<size_t>(form.pack))) {
      form.pack = 1;
    }
  }
  form.list = list_is_open() && form.count <= kTableLists &&
              form.numbers <= kTableNumbers;
  if (out.numel() < form.pack && !form.list) form.pack = 1;
  return form;
}

ProgramKey key_of(const Elementwise& what, const Form& form) {
  ProgramKey key;
  key.formula = what.formula;
  key.add(static_cast<int>(what.compute));
  key.add(form.count);
  key.add(form.pack | (form.linear ? 64 : 0) | (form.wide ? 128 : 0));
  for (int k = 0; k < form.count; ++k) {
    key.add(static_cast<int>(form.stored[k]));
    // Where elements lie linearly or not is one for all; one element and
    // numbers are an operand's own.
    bool strided =
        form.access[k] <= Access::Linear || form.access[k] == Access::Strided;
    key.add(strided ? 0 : static_cast<int>(form.access[k]));
  }
  if (form.list) key.add(1);
  return key;
}

// What stands for operand k in the call of the functor, given its value's text.
std::string seen_text(const Form& form, int k, const std::string& stored) {
  return message("converted<{}>({})", device_type(form.seen[k]), stored);
}

std::string pointers(const Form& form) {
  std::string text;
  int number = 0;
  for (int k = 0; k < form.count; ++k) {
    const char* type = device_type(form.stored[k]);
    if (form.access[k] == Access::Number) {
      text += message("  const {} v{} = number_of<{}>({}, {});\n",
                      type,
                      k,
                      type,
                      form.numbers_of(),
                      number++);
      continue;
    }
    bool one = form.access[k] == Access::One;
    text += message("  {}{}* const p{} = ", k == 0 ? "" : "const ", type, k);
    if (form.list) {
      const char* part = one ? "start" : "memory";
      text += message("chunk.{}<{}>(call.table, {});\n", part, type, k);
    } else {
      text += message("static_cast<{}*>(call.memory[{}]);\n", type, k);
    }
    if (one) {
      text += message("  const {} v{} = {};\n",
                      device_type(form.seen[k]),
                      k,
                      seen_text(form, k, message("element(p{}, 0)", k)));
    }
  }
  return text;
}

// The functor's call; `value` gives the text of an operand that is read.
template <class F>
std::string functor_call(const Elementwise& what, const Form& form, F value) {
  std::string text = message("{}_{}_of<{}>::call(",
                             what.functor,
                             what.kind,
                             device_type(what.compute));
  for (int k = 1; k < form.count; ++k) {
    bool read =
        form.access[k] == Access::Linear || form.access[k] == Access::Strided;
    text += k > 1 ? ", " : "";
    text += read ? seen_text(form, k, value(k)) : message("v{}", k);
  }
  for (int s = 0; s < form.scalars; ++s) {
    text += form.count + s > 1 ? ", " : "";
    text += message("number_of<{}>({}, {})",
                    device_type(what.compute),
                    form.numbers_of(),
                    form.numbers - form.scalars + s);
  }
  return text + ")";
}

std::string linear_loops(const Elementwise& what, const Form& form) {
  const char* out = device_type(form.stored[0]);
  std::string text =
      form.list
          ? "  const Long step = blockDim.x;\n"
            "  Long i = threadIdx.x;\n"
          : "  const Long step = static_cast<Long>(gridDim.x) * blockDim.x;\n"
            "  Long i = static_cast<Long>(blockIdx.x) * blockDim.x + "
            "threadIdx.x;\n";
  auto single = [&](int k) { return message("element(p{}, i)", k); };
  std::string one = functor_call(what, form, single);
  std::string store = message("p0[i] = converted<{}>({});\n", out, one);
  if (form.pack == 1) {
    return str_cat(text, "  for (; i < ", form.end(), "; i += step) ", store);
  }
  text += message("  constexpr int kPack = {};\n", form.pack);
  text += message("  const Long packs = {} / kPack;\n", form.end());
  text += "  for (Long j = i; j < packs; j += step) {\n";
  for (int k = 1; k < form.count; ++k) {
    if (form.access[k] != Access::Linear) continue;
    const char* type = device_type(form.stored[k]);
    text += message("    Pack<{}, kPack> q{};\n", type, k);
    text += message("    read_pack(q{}, p{} + j * kPack);\n", k, k);
  }
  auto packed = [](int k) { return message("element(q{}.at, n)", k); };
  text += message("    Pack<{}, kPack> q0;\n", out);
  text += "    TAEDA_MATH_UNROLL\n    for (int n = 0; n < kPack; ++n) {\n";
  text += message("      q0.at[n] = converted<{}>({});\n",
                  out,
                  functor_call(what, form, packed));
  text += "    }\n";
  text += "    write_pack(q0, p0 + j * kPack);\n  }\n";
  return str_cat(
      text, "  i += packs * kPack;\n  if (i < ", form.end(), ") ", store);
}

std::string strided_loop(const Elementwise& what, const Form& form) {
  auto value = [](int k) { return message("element(p{}, at.at[{}])", k, k); };
  return fill_template(
      R"(  const Long step = static_cast<Long>(gridDim.x) * blockDim.x;
  Long i = static_cast<Long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < call.count; i += step) {{
    const Places<{index}, {count}, {numbers}> at(call, static_cast<{index}>(i));
    p0[at.at[0]] = converted<{out}>({value});
  }}
)",
      {{"index", form.wide ? "Long" : "unsigned"},
       {"count", str_cat(form.count)},
       {"numbers", str_cat(form.numbers)},
       {"out", device_type(form.stored[0])},
       {"value", functor_call(what, form, value)}});
}

std::string text_of_call(const Elementwise& what, const Form& form) {
  std::string text = str_cat("#include <taeda/aten/native/cuda/pointwise",
                             form.list ? "_list" : "",
                             ".cuh>\n");
  text += "namespace taeda {\n";
  text += what.text;
  if (form.list) {
    text += str_cat("\nextern \"C\" __launch_bounds__(",
                    kTableThreads,
                    ") __global__ void kernel(\n    const __grid_constant__ "
                    "PointwiseTable<",
                    form.numbers,
                    "> call) {\n  const TableChunk chunk(call.table);\n");
  } else {
    text += message(
        "\nextern \"C\" __global__ void kernel(PointwiseCall<{}, {}> call)",
        form.count,
        form.numbers);
    text += " {\n";
  }
  text += pointers(form);
  text += form.linear ? linear_loops(what, form) : strided_loop(what, form);
  return text + "}\n}  // namespace taeda\n";
}

CallBytes bytes_of(const Form& form,
                   const IterationSpace& space,
                   const TensorBase& out,
                   ArrayRef<DeviceOperand> operands,
                   const Numbers& numbers) {
  CallBytes call;
  call.add(space.numel());
  for (int k = 0; k < form.count; ++k) {
    call.add(memory_of(out, operands, k));
  }
  call.add(space.dim());
  for (int d = 0; d < kMaxDims; ++d) {
    call.add(d < space.dim() ? static_cast<int>(space.size(d)) : 1);
  }
  for (int k = 0; k < form.count; ++k) {
    auto itemsize = static_cast<int64_t>(element_size(form.stored[k]));
    for (int d = 0; d < kMaxDims; ++d) {
      call.add(d < space.dim() ? space.stride(k, d) / itemsize : int64_t{0});
    }
  }
  call.used = (call.used + 15) / 16 * 16;
  size_t size = static_cast<size_t>(std::max(numbers.count, 1)) * 16;
  std::memcpy(call.bytes + call.used, numbers.slots, size);
  call.used += size;
  return call;
}

// Keeps the call with others of an open list.
void keep_for_list(const Elementwise& what,
                   const Form& form,
                   const TensorBase& out,
                   ArrayRef<DeviceOperand> operands,
                   const Numbers& numbers) {
  ListedCall call;
  call.function = program(what.functor, key_of(what, form), [&] {
    return text_of_call(what, form);
  });
  call.op = what.op;
  call.numel = out.numel();
  for (int k = 0; k < form.count; ++k) {
    if (form.access[k] == Access::Number) continue;
    const TensorBase& t =
        k == 0 ? out : *operands[static_cast<size_t>(k - 1)].tensor;
    call.add(k, t, memory_of(out, operands, k));
  }
  call.count = numbers.count;
  std::memcpy(call.numbers, numbers.slots, sizeof(call.numbers));
  keep_in_list(std::move(call));
}

}  // namespace

void run_elementwise(const Elementwise& what,
                     const TensorBase& out,
                     ArrayRef<DeviceOperand> operands,
                     const Numbers& numbers,
                     int scalars) {
  TAEDA_INTERNAL_ASSERT(operands.size() < kMaxOperands, what.op);
  IterationSpace space = space_of(out, operands);
  TAEDA_CHECK_AS(NotImplemented,
                 space.dim() <= kMaxDims,
                 what.op,
                 ": CUDA kernels take at most ",
                 kMaxDims,
                 " dims that do not lie behind each other, got ",
                 space.dim());
  for (int d = 0; d < space.dim(); ++d) {
    TAEDA_CHECK_AS(NotImplemented,
                   space.dim() == 1 || space.size(d) <= INT_MAX,
                   what.op,
                   ": a dim of ",
                   space.size(d),
                   " elements is too long for a CUDA kernel");
  }
  Form form = form_of(what, space, out, operands, numbers, scalars);
  if (TAEDA_UNLIKELY(form.list)) {
    return keep_for_list(what, form, out, operands, numbers);
  }
  FunctionHandle function = program(what.functor, key_of(what, form), [&] {
    return text_of_call(what, form);
  });
  CallBytes call = bytes_of(form, space, out, operands, numbers);
  int64_t work = (space.numel() + form.pack - 1) / form.pack;
  int64_t blocks = (work + kThreads - 1) / kThreads;
  int64_t most =
      kMostBlocksPerProcessor * properties_of(current_device()).multiprocessors;
  Grid grid;
  grid.x = static_cast<unsigned>(std::max<int64_t>(1, std::min(blocks, most)));
  grid.threads = kThreads;
  launch(what.op, function, grid, call.bytes);
}

}  // namespace taeda::cuda
