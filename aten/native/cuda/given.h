// Calls of kernels that see all arguments of an operator: each is a slot of the
// kernel's one parameter (formula.cuh).
#pragma once

#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/core/op_info.h>
#include <taeda/aten/native/cuda/call_text.h>
#include <taeda/aten/native/cuda/program.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace taeda::cuda {

// What a call computes in: the kind decides between the texts of a formula.
enum class ValueKind : uint8_t { Int, Float, Complex };
ValueKind value_kind(ScalarType t);

// An argument or a result of a call.
struct Given {
  enum class Type : uint8_t { Tensor, Number, List };
  std::string name;
  Type type = Type::Number;
  bool missing = false;  // None, or a result that nobody asked for
  TensorBase tensor{};
  const IValue* value = nullptr;  // of numbers and lists; null for a count
  int64_t integer = 0;            // where `value` is null
  // The type that elements are read as; empty: what their dtype computes in.
  std::string_view read_as{};
};

struct GivenCall {
  const char* op = "";            // for errors
  const void* formula = nullptr;  // part of the program's key
  int variant = 0;                // likewise: which of its texts
  std::vector<Given> slots{};
  std::string_view text{};  // before the kernel
  std::string header{};     // what the text includes
  std::string_view body{};  // of the loop over `i`, with `g` for the slots
  int64_t count = 0;        // how often the body runs
  // Of a body that whole blocks run once, of kFoldThreads threads each.
  std::optional<Grid> blocks{};
};

// The line that includes a file of this folder.
std::string header_text(const char* name);

// On the device of the results, whose number is the end of the slots.
void run_given(const GivenCall& call);

// A call put together by hand. Names are those that the body uses; what it
// writes comes last.
class DeviceCall {
 public:
  // `header` is a file of this folder, without its ending.
  DeviceCall(const char* op, const char* header, const char* body);
  // None where it is undefined.
  DeviceCall& tensor(const char* name, const TensorBase& t);
  DeviceCall& number(const char* name, const Scalar& value);
  DeviceCall& list(const char* name, IntArrayRef values);
  DeviceCall& list(const char* name, std::vector<double> values);
  void run(int64_t count);

 private:
  GivenCall call_;
  std::vector<std::unique_ptr<IValue>> kept_;
};

// Slots of the arguments of an operator, then of its results. Tensors of the
// CPU with one element are moved. `values` must outlive the call.
std::vector<Given> slots_of(const OperatorEntry& op,
                            const IValue* values,
                            const std::vector<TensorBase>& results);
// "result", or the names in the schema.
std::string result_name(const OperatorEntry& op, size_t i);

}  // namespace taeda::cuda
