// What a record says about an operator, as constants that hang on its entry.
#pragma once

#include <taeda/aten/core/dtype_rule.h>

#include <string>
#include <string_view>
#include <vector>

namespace taeda {

struct OperatorEntry;
struct PointwiseOp;
struct SymbolicRule;

// The order of VALUE_TYPES in tools/codegen/emit_info.py, by which codegen and
// the parser of user operators agree.
enum class ValueType : uint8_t {
  Tensor,
  Scalar,
  Int,
  SymInt,
  Float,
  Bool,
  Str,
  ScalarType,
  Layout,
  Device,
  MemoryFormat,
  Generator,
  Other,  // types of user schemas that no kernel can take
};

// One argument or result. Name and default are ranges of the schema's text, so
// that the tables hold no pointers.
struct ArgInfo {
  enum Flag : uint8_t {
    kOptional = 1,
    kList = 2,
    kOptionalElement = 4,  // Tensor?[]
    kKeywordOnly = 8,
    kHasDefault = 16,
    kWritten = 32,
  };
  static constexpr uint8_t kAnyAlias = 0x80;

  uint16_t name_at = 0;
  uint16_t default_at = 0;
  uint8_t name_size = 0;
  uint8_t default_size = 0;
  ValueType type = ValueType::Tensor;
  uint8_t flags = 0;
  // The alias sets it is in: bit 0 for `a`, bit 1 for `b`, ...; kAnyAlias `*`.
  uint8_t alias = 0;
  int8_t list_size = -1;  // N of T[N]

  bool has(Flag f) const { return (flags & f) != 0; }
  bool is_tensor() const { return type == ValueType::Tensor; }
  bool operator==(const ArgInfo&) const = default;
};

enum class Family : uint8_t {
  Pointwise,
  Reduction,
  Composite,
  View,
  Kernel,
  Foreach,  // a composite: one call of OpInfo::element for each entry of lists
  Map,      // with a formula of one element, beside a kernel or a composite
  Scan,     // with a formula of running values, beside one too
  User,     // of a library: known by its schema alone
};

enum class Form : uint8_t { Functional, InPlace, Out };

// With the numbers of PyTorch's `torch.Tag`.
enum class OpTag : uint8_t {
  DataDependentOutput = 2,
  DynamicOutputShape = 3,
  InPlace = 6,
  InPlaceView = 7,
  NondeterministicSeeded = 13,
  Out = 14,
  Pointwise = 16,
  Reduction = 18,
  ViewCopy = 19,
};

// What autocast does to calls of the functional form. The order is that of
// AUTOCAST in tools/codegen/record_types.py.
enum class Autocast : uint8_t {
  Keep,
  Lower,          // floating-point arguments become the thread's smaller dtype
  Float32,        // they become float32
  Float32Result,  // `dtype` is float32 where the caller gives none
  Promote,        // they become the widest dtype among them
  Refuse,         // an error: unsafe in small dtypes
};

// What the forms of one overload share.
struct RecordInfo {
  Family family = Family::User;
  bool differentiable = true;
  bool composite = false;  // levels and modes see what it is made of
  Autocast autocast_cpu = Autocast::Keep;
  Autocast autocast_cuda = Autocast::Keep;
  DtypeRule dtypes{};
  // See Note [Expression words] in aten/expr/graph.h; null without expressions.
  const uint16_t* expressions = nullptr;
  const char* axes = nullptr;  // null outside the kernel family
  // A function of the operator's type that computes it by other operators; null
  // where the record has no such definition.
  void* means = nullptr;
  // Its shape or view rule over SymInt (aten/iter/symbolic.h); null without
  // one.
  const SymbolicRule* rule = nullptr;
  // The loops of a pointwise record that has one formula
  // (aten/iter/pointwise.h); null elsewhere.
  const PointwiseOp* loops = nullptr;
  // A function of the operator's type that gives the numbers of its formulas
  // that C++ works out, in a tensor of float64, from sizes, dtypes and numbers
  // of the arguments; null where there are none.
  void* numbers = nullptr;
};

struct OpInfo {
  const RecordInfo* record = nullptr;
  const ArgInfo* values = nullptr;  // arguments, then results
  uint8_t arguments = 0;
  uint8_t results = 0;
  Form form = Form::Functional;
  uint32_t tags = 0;  // bits by OpTag
  // Of Family::Foreach: what is called for each entry, with argument i of the
  // entries for argument i; those left out at the end have their defaults.
  const OperatorEntry* element = nullptr;

  bool has(OpTag tag) const { return (tags >> static_cast<int>(tag) & 1) != 0; }
};

inline ArrayRef<ArgInfo> arguments_of(const OpInfo& info) {
  return {info.values, info.arguments};
}
inline ArrayRef<ArgInfo> results_of(const OpInfo& info) {
  return {info.values + info.arguments, info.results};
}
inline std::string_view name_of(const ArgInfo& a, std::string_view schema) {
  return schema.substr(a.name_at, a.name_size);
}
inline std::string_view default_of(const ArgInfo& a, std::string_view schema) {
  return schema.substr(a.default_at, a.default_size);
}

// A schema's text in parts.
struct ParsedSchema {
  std::string_view name;  // with the overload
  std::vector<ArgInfo> values;
  size_t arguments = 0;
};
// RuntimeError with the offending place where the text is no schema.
TAEDA_API ParsedSchema parse_schema(std::string_view text);

}  // namespace taeda
