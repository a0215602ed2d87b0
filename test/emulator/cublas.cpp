// cuBLASLt's functions, under their names: sums in double, element by element.
//
// They are as strict as the library: shapes, leading dimensions, types and
// epilogues that it has no kernel for are not supported, and memory is as
// aligned as was said when the kernel was chosen. What is read and written
// passes the memory checker.
#include "emulator.h"

#include <taeda/c10/cuda/cublaslt.h>
#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/float8.h>
#include <taeda/c10/util/half.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>

using namespace emulator;
namespace lt = taeda::cuda::lt;

#define EXPORT extern "C" __attribute__((visibility("default"))) lt::Status

namespace taeda::cuda::lt {
struct HandleObject {};
struct OperationObject {
  int compute, scalar;
  int32_t turn_a = 0, turn_b = 0;
  uint32_t epilogue = kPlain;
  const void* bias = nullptr;
  const void* scale_a = nullptr;
  const void* scale_b = nullptr;
  int8_t fast_sums = 0;
};
struct LayoutObject {
  int type;
  int64_t rows, columns, leading;
  int32_t batches = 1;
  int64_t stride = 0;
};
struct PreferenceObject {
  uint64_t workspace = 0;
  uint32_t reductions = kAllReductions;
  uint32_t alignment[4] = {256, 256, 256, 256};
};
}  // namespace taeda::cuda::lt

namespace {

using Number = std::complex<double>;
constexpr lt::Status kInvalidValue = 7;
constexpr uint64_t kMagic = 0x7461656461;
constexpr size_t kScratch = 4096;

size_t size_of(int type) {
  switch (type) {
    case lt::kReal16:
    case lt::kBrain16:
      return 2;
    case lt::kReal32:
    case lt::kInt32:
      return 4;
    case lt::kInt8:
    case lt::kE4m3:
    case lt::kE5m2:
      return 1;
    case lt::kComplex64:
      return 16;
    default:
      return 8;
  }
}

template <class T>
T at(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

Number load(int type, const void* p) {
  switch (type) {
    case lt::kReal32:
      return at<float>(p);
    case lt::kReal64:
      return at<double>(p);
    case lt::kReal16:
      return static_cast<float>(at<taeda::Half>(p));
    case lt::kBrain16:
      return static_cast<float>(at<taeda::BFloat16>(p));
    case lt::kInt8:
      return at<int8_t>(p);
    case lt::kE4m3:
      return static_cast<float>(at<taeda::Float8_e4m3fn>(p));
    case lt::kE5m2:
      return static_cast<float>(at<taeda::Float8_e5m2>(p));
    case lt::kInt32:
      return at<int32_t>(p);
    case lt::kComplex32:
      return at<std::complex<float>>(p);
    default:
      return at<Number>(p);
  }
}

void store(int type, Number value, void* p) {
  auto put = [p](auto v) { std::memcpy(p, &v, sizeof(v)); };
  switch (type) {
    case lt::kReal32:
      return put(static_cast<float>(value.real()));
    case lt::kReal64:
      return put(value.real());
    case lt::kReal16:
      return put(taeda::Half(static_cast<float>(value.real())));
    case lt::kBrain16:
      return put(taeda::BFloat16(static_cast<float>(value.real())));
    case lt::kInt32:
      return put(static_cast<int32_t>(value.real()));
    case lt::kComplex32:
      return put(std::complex<float>(value));
    default:
      return put(value);
  }
}

// To the 10 bits behind the point that TF32 has.
double tf32(double value) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if ((bits >> 23 & 0xff) == 0xff) return value;
  return std::bit_cast<float>((bits + 0x1000) & ~uint32_t{0x1fff});
}

double gelu(double x) {
  double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

// A product that was asked for, with all that it needs when it runs.
struct Call {
  lt::OperationObject how;
  lt::LayoutObject a, b, c, d;
  const char *at_a, *at_b, *at_c;
  char* at_d;
  Number alpha, beta;
  char* workspace;
  size_t workspace_bytes;
};

int64_t inner_of(const lt::OperationObject& how, const lt::LayoutObject& a) {
  return how.turn_a == lt::kAsIs ? a.columns : a.rows;
}

class Running {
 public:
  explicit Running(const Call& call) : call_(call) {}

  void run() {
    if (call_.workspace_bytes > 0 &&
        touch(call_.workspace, call_.workspace_bytes, true)) {
      std::memset(call_.workspace, 0x5a, call_.workspace_bytes);
    }
    for (int32_t batch = 0; batch < call_.d.batches; ++batch) {
      for (int64_t column = 0; column < call_.d.columns; ++column) {
        for (int64_t row = 0; row < call_.d.rows; ++row) {
          element(batch, row, column);
        }
      }
    }
  }

 private:
  template <class P>
  static P place(P start,
                 const lt::LayoutObject& layout,
                 int32_t batch,
                 int64_t row,
                 int64_t column) {
    int64_t i = batch * layout.stride + column * layout.leading + row;
    return start + i * static_cast<int64_t>(size_of(layout.type));
  }
  Number read(const char* start,
              const lt::LayoutObject& layout,
              int32_t turn,
              int32_t batch,
              int64_t row,
              int64_t column) {
    if (turn != lt::kAsIs) std::swap(row, column);
    const char* p = place(start, layout, batch, row, column);
    if (!touch(p, size_of(layout.type), false)) return 0;
    Number value = load(layout.type, p);
    if (call_.how.compute == lt::kInTf32) {
      value = {tf32(value.real()), tf32(value.imag())};
    }
    return turn == lt::kAdjoint ? std::conj(value) : value;
  }
  void element(int32_t batch, int64_t row, int64_t column) {
    Number sum = 0;
    int64_t inner = inner_of(call_.how, call_.a);
    for (int64_t k = 0; k < inner; ++k) {
      sum += read(call_.at_a, call_.a, call_.how.turn_a, batch, row, k) *
             read(call_.at_b, call_.b, call_.how.turn_b, batch, k, column);
    }
    sum *= call_.alpha * factor(call_.how.scale_a) * factor(call_.how.scale_b);
    if (call_.beta != Number(0)) {
      const char* c = place(call_.at_c, call_.c, batch, row, column);
      if (touch(c, size_of(call_.c.type), false)) {
        sum += call_.beta * load(call_.c.type, c);
      }
    }
    char* d = place(call_.at_d, call_.d, batch, row, column);
    if (!touch(d, size_of(call_.d.type), true)) return;
    store(call_.d.type, finished(sum, row), d);
  }
  static double factor(const void* scale) {
    bool is_there = scale != nullptr && touch(scale, sizeof(float), false);
    return is_there ? at<float>(scale) : 1;
  }
  Number finished(Number sum, int64_t row) {
    int type = call_.d.type;
    if (call_.how.epilogue & lt::kBias) {
      const char* bias = static_cast<const char*>(call_.how.bias) +
                         row * static_cast<int64_t>(size_of(type));
      if (touch(bias, size_of(type), false)) sum += load(type, bias);
    }
    if (call_.how.epilogue & lt::kRelu) {
      double value = sum.real();
      sum = value > 0 || std::isnan(value) ? value : 0;
    }
    if (call_.how.epilogue & lt::kGelu) sum = gelu(sum.real());
    return sum;
  }

  Call call_;
};

bool is_float8(int type) { return type == lt::kE4m3 || type == lt::kE5m2; }

bool is_type_known(const lt::OperationObject& how,
                   int of_sides,
                   int of_result) {
  auto is = [&](int compute, int scalar, int sides, int result) {
    return how.compute == compute && how.scalar == scalar &&
           of_sides == sides && of_result == result;
  };
  for (int narrow : {lt::kReal16, lt::kBrain16}) {
    if (is(lt::kIn32, lt::kReal32, narrow, narrow)) return true;
  }
  for (int compute : {lt::kIn32, lt::kInTf32}) {
    for (int type : {lt::kReal32, lt::kComplex32}) {
      if (is(compute, type, type, type)) return true;
    }
  }
  bool small = of_result == lt::kReal32 || of_result == lt::kReal16 ||
               of_result == lt::kBrain16;
  if (is_float8(of_sides) && small && how.scale_a && how.scale_b) {
    return how.compute == lt::kIn32 && how.scalar == lt::kReal32;
  }
  return is(lt::kIn64, lt::kReal64, lt::kReal64, lt::kReal64) ||
         is(lt::kIn64, lt::kComplex64, lt::kComplex64, lt::kComplex64) ||
         is(lt::kInInt32, lt::kInt32, lt::kInt8, lt::kInt32);
}

bool is_shape_right(const lt::OperationObject& how,
                    const lt::LayoutObject& a,
                    const lt::LayoutObject& b,
                    const lt::LayoutObject& c,
                    const lt::LayoutObject& d) {
  for (const lt::LayoutObject* l : {&a, &b, &c, &d}) {
    if (l->leading < l->rows || l->batches != d.batches) return false;
  }
  bool plain_a = how.turn_a == lt::kAsIs, plain_b = how.turn_b == lt::kAsIs;
  return (plain_a ? a.rows : a.columns) == d.rows &&
         (plain_b ? b.columns : b.rows) == d.columns &&
         inner_of(how, a) == (plain_b ? b.rows : b.columns) &&
         c.rows == d.rows && c.columns == d.columns && c.type == d.type &&
         (a.type == b.type || (is_float8(a.type) && is_float8(b.type)));
}

// What the library's tables leave out.
bool has_kernel(const lt::OperationObject& how,
                const lt::LayoutObject& a,
                const lt::LayoutObject& b,
                const lt::LayoutObject& d) {
  if (!is_type_known(how, a.type, d.type)) return false;
  bool small =
      d.type == lt::kReal32 || d.type == lt::kReal16 || d.type == lt::kBrain16;
  if (how.epilogue != lt::kPlain && !small) return false;
  if (a.type != lt::kInt8 && !is_float8(a.type)) return true;
  if (a.type == lt::kE5m2 && b.type == lt::kE5m2) return false;
  int unit = is_float8(a.type) ? 16 : 4;
  return how.turn_a == lt::kTransposed && how.turn_b == lt::kAsIs &&
         a.leading % unit == 0 && b.leading % unit == 0 &&
         d.leading % unit == 0;
}

bool is_aligned(const void* p, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

Number scalar(int type, const void* p) { return load(type, p); }

}  // namespace

EXPORT cublasLtCreate(lt::Handle* out) {
  *out = new lt::HandleObject;
  return 0;
}
EXPORT cublasLtMatmulDescCreate(lt::Operation* out, int compute, int scalar) {
  *out = new lt::OperationObject{compute, scalar};
  return 0;
}
EXPORT cublasLtMatmulDescDestroy(lt::Operation operation) {
  delete operation;
  return 0;
}
EXPORT cublasLtMatmulDescSetAttribute(lt::Operation operation,
                                      int which,
                                      const void* value,
                                      size_t bytes) {
  void* to = nullptr;
  size_t size = 4;
  if (which == lt::kTurnA) to = &operation->turn_a;
  if (which == lt::kTurnB) to = &operation->turn_b;
  if (which == lt::kEpilogue) to = &operation->epilogue;
  const void** pointer = which == lt::kBiasPointer ? &operation->bias
                         : which == lt::kScaleOfA  ? &operation->scale_a
                         : which == lt::kScaleOfB  ? &operation->scale_b
                                                   : nullptr;
  if (pointer != nullptr) {
    to = pointer;
    size = sizeof(void*);
  }
  if (which == lt::kFastSums) {
    to = &operation->fast_sums;
    size = 1;
  }
  if (to == nullptr || bytes != size) return kInvalidValue;
  std::memcpy(to, value, size);
  return 0;
}
EXPORT cublasLtMatrixLayoutCreate(lt::Layout* out,
                                  int type,
                                  uint64_t rows,
                                  uint64_t columns,
                                  int64_t leading) {
  *out = new lt::LayoutObject{
      type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading};
  return 0;
}
EXPORT cublasLtMatrixLayoutDestroy(lt::Layout layout) {
  delete layout;
  return 0;
}
EXPORT cublasLtMatrixLayoutSetAttribute(lt::Layout layout,
                                        int which,
                                        const void* value,
                                        size_t bytes) {
  if (which == lt::kBatchCount && bytes == 4) {
    layout->batches = at<int32_t>(value);
  } else if (which == lt::kBatchStride && bytes == 8) {
    layout->stride = at<int64_t>(value);
  } else {
    return kInvalidValue;
  }
  return 0;
}
EXPORT cublasLtMatmulPreferenceCreate(lt::Preference* out) {
  *out = new lt::PreferenceObject;
  return 0;
}
EXPORT cublasLtMatmulPreferenceDestroy(lt::Preference preference) {
  delete preference;
  return 0;
}
EXPORT cublasLtMatmulPreferenceSetAttribute(lt::Preference preference,
                                            int which,
                                            const void* value,
                                            size_t bytes) {
  int operand = which - lt::kAlignmentA;
  if (which == lt::kMostWorkspace && bytes == 8) {
    preference->workspace = at<uint64_t>(value);
  } else if (which == lt::kReductions && bytes == 4) {
    preference->reductions = at<uint32_t>(value);
  } else if (operand >= 0 && operand < 4 && bytes == 4) {
    preference->alignment[operand] = at<uint32_t>(value);
  } else {
    return kInvalidValue;
  }
  return 0;
}

// The algorithm carries the alignments that it counts on. Long sums get
// workspace.
EXPORT cublasLtMatmulAlgoGetHeuristic(lt::Handle,
                                      lt::Operation how,
                                      lt::Layout a,
                                      lt::Layout b,
                                      lt::Layout c,
                                      lt::Layout d,
                                      lt::Preference preference,
                                      int wanted,
                                      lt::Choice* choices,
                                      int* found) {
  *found = 0;
  if (wanted < 1 || !is_shape_right(*how, *a, *b, *c, *d)) {
    return kInvalidValue;
  }
  if (!has_kernel(*how, *a, *b, *d)) return lt::kNotSupported;
  lt::Choice choice{};
  choice.algorithm.data[0] = kMagic;
  for (int i = 0; i < 4; ++i) {
    choice.algorithm.data[i + 1] = preference->alignment[i];
  }
  bool is_long = inner_of(*how, *a) > 64 && preference->workspace >= kScratch;
  choice.workspace = is_long ? kScratch : 0;
  choice.algorithm.data[5] = choice.workspace;
  choices[0] = choice;
  *found = 1;
  return 0;
}

EXPORT cublasLtMatmul(lt::Handle,
                      lt::Operation how,
                      const void* alpha,
                      const void* a,
                      lt::Layout layout_a,
                      const void* b,
                      lt::Layout layout_b,
                      const void* beta,
                      const void* c,
                      lt::Layout layout_c,
                      void* d,
                      lt::Layout layout_d,
                      const lt::Algorithm* algorithm,
                      void* workspace,
                      size_t workspace_bytes,
                      taeda::cuda::StreamHandle stream) {
  std::lock_guard guard(Machine::get().mutex);
  if (!is_shape_right(*how, *layout_a, *layout_b, *layout_c, *layout_d) ||
      !has_kernel(*how, *layout_a, *layout_b, *layout_d) ||
      algorithm->data[0] != kMagic || workspace_bytes < algorithm->data[5]) {
    return kInvalidValue;
  }
  const void* operands[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    if (!is_aligned(operands[i], algorithm->data[i + 1])) return kInvalidValue;
  }
  auto call = std::make_shared<Call>(Call{*how,
                                          *layout_a,
                                          *layout_b,
                                          *layout_c,
                                          *layout_d,
                                          static_cast<const char*>(a),
                                          static_cast<const char*>(b),
                                          static_cast<const char*>(c),
                                          static_cast<char*>(d),
                                          scalar(how->scalar, alpha),
                                          scalar(how->scalar, beta),
                                          static_cast<char*>(workspace),
                                          algorithm->data[5]});
  auto run = [call]() -> Result {
    Opened opened;
    Machine::get().running = "cublasLtMatmul";
    Machine::get().reported = false;
    Running(*call).run();
    Machine::get().running.clear();
    return 0;
  };
  Result status = Machine::get().enqueue(stream, {"product", run});
  return status == 0 ? 0 : 13;  // CUBLAS_STATUS_EXECUTION_FAILED
}
