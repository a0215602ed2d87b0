// See Note [Products by cuBLASLt].
#include <taeda/aten/native/cuda/gemm.h>

#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cuda/program.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/cuda/cublaslt.h>
#include <taeda/c10/cuda/stream.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace taeda::cuda {

namespace {

constexpr size_t kMostProblems = 1024;
constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;

void check_lt(lt::Status status, const char* op, const char* call) {
  TAEDA_CHECK(status == 0,
              op,
              ": CUDA error: cuBLAS status ",
              status,
              " when calling ",
              call);
}

// How the library sees a side: transposed (a row of ours is its column), or as
// it is with a turn of its own.
struct Seen {
  lt::Turn turn = lt::kAsIs;
  int64_t rows = 0, columns = 0, leading = 0;
};
bool see(const Side& s, int64_t rows, int64_t columns, Seen* seen) {
  bool by_rows = (s.column_stride == 1 || columns == 1) &&
                 (s.row_stride >= columns || rows == 1);
  bool by_columns = (s.row_stride == 1 || rows == 1) &&
                    (s.column_stride >= rows || columns == 1);
  if (by_rows && !s.conj) {
    *seen = {lt::kAsIs, columns, rows, rows == 1 ? columns : s.row_stride};
    return true;
  }
  if (!by_columns) return false;
  *seen = {s.conj ? lt::kAdjoint : lt::kTransposed,
           rows,
           columns,
           columns == 1 ? rows : s.column_stride};
  return true;
}

struct Types {
  lt::DataType element, result, scalar;
  lt::ComputeType compute;
  lt::DataType element_b = element;
};
lt::DataType float8_type(ScalarType dtype) {
  return dtype == kFloat8_e5m2 ? lt::kE5m2 : lt::kE4m3;
}
Types types_of_float8(const Product& p) {
  lt::DataType result = p.result_dtype == kHalf       ? lt::kReal16
                        : p.result_dtype == kBFloat16 ? lt::kBrain16
                                                      : lt::kReal32;
  return {float8_type(p.dtype),
          result,
          lt::kReal32,
          lt::kIn32,
          float8_type(p.b_dtype)};
}
Types types_of(ScalarType dtype) {
  bool tf32 = settings::product_tf32.load(std::memory_order_relaxed);
  lt::ComputeType in32 = tf32 ? lt::kInTf32 : lt::kIn32;
  switch (dtype) {
    case kFloat:
      return {lt::kReal32, lt::kReal32, lt::kReal32, in32};
    case kDouble:
      return {lt::kReal64, lt::kReal64, lt::kReal64, lt::kIn64};
    case kHalf:
      return {lt::kReal16, lt::kReal16, lt::kReal32, lt::kIn32};
    case kBFloat16:
      return {lt::kBrain16, lt::kBrain16, lt::kReal32, lt::kIn32};
    case kComplexFloat:
      return {lt::kComplex32, lt::kComplex32, lt::kComplex32, in32};
    case kComplexDouble:
      return {lt::kComplex64, lt::kComplex64, lt::kComplex64, lt::kIn64};
    default:
      TAEDA_INTERNAL_ASSERT(dtype == kChar, "no products of ", dtype);
      return {lt::kInt8, lt::kInt32, lt::kInt32, lt::kInInt32};
  }
}

uint32_t reductions_of(ScalarType dtype) {
  const std::atomic<bool>* narrow = dtype == kHalf ? &settings::half_sums
                                    : dtype == kBFloat16
                                        ? &settings::bfloat16_sums
                                        : nullptr;
  bool all = narrow == nullptr || narrow->load(std::memory_order_relaxed);
  return all ? lt::kAllReductions : lt::kReductionsInWideSums;
}

// A factor as the library reads it.
struct Factor {
  alignas(16) std::array<char, 16> bytes{};
  Factor(const Scalar& value, lt::DataType type) {
    static_assert(sizeof(complex<double>) == 16);
    ScalarType as = type == lt::kReal32      ? kFloat
                    : type == lt::kReal64    ? kDouble
                    : type == lt::kComplex32 ? kComplexFloat
                    : type == lt::kComplex64 ? kComplexDouble
                                             : kInt;
    value.store(as, bytes.data());
  }
};

uint32_t alignment_of(const void* data) {
  auto at = reinterpret_cast<uintptr_t>(data) | 256;
  return static_cast<uint32_t>(at & (~at + 1));
}

// All that the library chooses by.
using Key = std::array<int64_t, 20>;
struct HashOfKey {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0;
    for (int64_t n : key) {
      hash = (hash ^ static_cast<uint64_t>(n)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

struct Problem {
  Types types;
  Seen a, b;
  int64_t leading_c = 0;
  int epilogue = lt::kPlain;
  uint32_t reductions = lt::kAllReductions;
  Key key{};
};

Problem problem_of(const Product& p) {
  bool float8 = is_float8(p.dtype);
  Problem made{float8 ? types_of_float8(p) : types_of(p.dtype), {}, {}};
  see(p.a, p.rows, p.inner, &made.a);
  see(p.b, p.inner, p.columns, &made.b);
  made.leading_c = p.added == nullptr ? p.columns : p.added_row_stride;
  if (p.bias != nullptr) made.epilogue |= lt::kBias;
  if (p.activation == Activation::Relu) made.epilogue |= lt::kRelu;
  if (p.activation == Activation::Gelu) made.epilogue |= lt::kGelu;
  // The plain epilogue is no bit of the others.
  if (made.epilogue != lt::kPlain) made.epilogue &= ~lt::kPlain;
  made.reductions = reductions_of(p.dtype);
  const void* c = p.added == nullptr ? p.result : p.added;
  int64_t types = static_cast<int64_t>(p.dtype) << 8 | made.types.compute;
  if (float8) {
    types |= static_cast<int64_t>(p.b_dtype) << 16 |
             static_cast<int64_t>(p.result_dtype) << 24 |
             static_cast<int64_t>(p.fast_sums) << 32;
  }
  made.key = {types,
              made.epilogue << 4 | static_cast<int64_t>(made.reductions),
              p.batches,
              p.rows,
              p.columns,
              p.inner,
              made.a.turn << 4 | made.b.turn,
              made.a.leading,
              made.b.leading,
              made.leading_c,
              p.a.batch_stride,
              p.b.batch_stride,
              p.added == nullptr ? -1 : p.added_batch_stride,
              alignment_of(p.a.data),
              alignment_of(p.b.data),
              alignment_of(c),
              alignment_of(p.result),
              alignment_of(p.bias)};
  return made;
}

// What is made for a problem. Its bias is set for each call, under the lock.
struct Chosen {
  std::mutex mutex;
  lt::Operation operation = nullptr;
  lt::Layout a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  lt::Algorithm algorithm{};
  size_t workspace = 0;
  bool usable = false;

  Chosen() = default;
  Chosen(const Chosen&) = delete;
  Chosen& operator=(const Chosen&) = delete;
  ~Chosen() {
    const CublasLt& library = cublaslt();
    for (lt::Layout layout : {a, b, c, d}) {
      if (layout != nullptr) library.layout_destroy(layout);
    }
    if (operation != nullptr) library.operation_destroy(operation);
  }
};

class Choosing {
 public:
  Choosing(const char* op, const Product& p, const Problem& problem)
      : op_(op), p_(p), problem_(problem) {}

  std::shared_ptr<Chosen> choose(lt::Handle handle) {
    auto made = std::make_shared<Chosen>();
    check_lt(
        library_.operation_create(
            &made->operation, problem_.types.compute, problem_.types.scalar),
        op_,
        "cublasLtMatmulDescCreate");
    // The sides change places.
    set(made->operation, lt::kTurnA, static_cast<int32_t>(problem_.b.turn));
    set(made->operation, lt::kTurnB, static_cast<int32_t>(problem_.a.turn));
    if (problem_.epilogue != lt::kPlain) {
      set(made->operation,
          lt::kEpilogue,
          static_cast<uint32_t>(problem_.epilogue));
    }
    if (p_.bias != nullptr) set(made->operation, lt::kBiasPointer, p_.bias);
    if (p_.a_scale != nullptr) {
      set(made->operation, lt::kScaleOfA, p_.b_scale);
      set(made->operation, lt::kScaleOfB, p_.a_scale);
      set(made->operation, lt::kFastSums, static_cast<int8_t>(p_.fast_sums));
    }
    int64_t whole = p_.rows * p_.columns;
    lt::DataType result = problem_.types.result;
    made->a = layout(problem_.types.element_b, problem_.b, p_.b.batch_stride);
    made->b = layout(problem_.types.element, problem_.a, p_.a.batch_stride);
    made->c = layout(result,
                     {lt::kAsIs, p_.columns, p_.rows, problem_.leading_c},
                     p_.added == nullptr ? whole : p_.added_batch_stride);
    made->d =
        layout(result, {lt::kAsIs, p_.columns, p_.rows, p_.columns}, whole);
    ask(handle, made.get());
    return made;
  }

 private:
  template <class T>
  void set(lt::Operation operation, lt::OperationAttribute what, T value) {
    check_lt(library_.operation_set(operation, what, &value, sizeof(value)),
             op_,
             "cublasLtMatmulDescSetAttribute");
  }
  lt::Layout layout(lt::DataType type, const Seen& seen, int64_t stride) {
    lt::Layout made = nullptr;
    check_lt(library_.layout_create(&made,
                                    type,
                                    static_cast<uint64_t>(seen.rows),
                                    static_cast<uint64_t>(seen.columns),
                                    seen.leading),
             op_,
             "cublasLtMatrixLayoutCreate");
    if (p_.batches == 1) return made;
    auto count = static_cast<int32_t>(p_.batches);
    lt::Status status =
        library_.layout_set(made, lt::kBatchCount, &count, sizeof(count));
    if (status == 0) {
      status =
          library_.layout_set(made, lt::kBatchStride, &stride, sizeof(stride));
    }
    check_lt(status, op_, "cublasLtMatrixLayoutSetAttribute");
    return made;
  }
  template <class T>
  void prefer(lt::Preference preference, int what, T value) {
    check_lt(library_.preference_set(preference,
                                     static_cast<lt::PreferenceAttribute>(what),
                                     &value,
                                     sizeof(value)),
             op_,
             "cublasLtMatmulPreferenceSetAttribute");
  }
  void ask(lt::Handle handle, Chosen* made) {
    lt::Preference preference = nullptr;
    check_lt(library_.preference_create(&preference),
             op_,
             "cublasLtMatmulPreferenceCreate");
    std::unique_ptr<std::remove_pointer_t<lt::Preference>,
                    lt::Status (*)(lt::Preference)>
        kept(preference, library_.preference_destroy);
    prefer(preference, lt::kMostWorkspace, kMostWorkspace);
    prefer(preference, lt::kReductions, problem_.reductions);
    const void* c = p_.added == nullptr ? p_.result : p_.added;
    int which = lt::kAlignmentA;
    for (const void* data :
         {p_.b.data, p_.a.data, c, static_cast<const void*>(p_.result)}) {
      prefer(preference, which++, alignment_of(data));
    }
    lt::Choice choice{};
    int found = 0;
    lt::Status status = library_.choose(handle,
                                        made->operation,
                                        made->a,
                                        made->b,
                                        made->c,
                                        made->d,
                                        preference,
                                        1,
                                        &choice,
                                        &found);
    made->usable = status == 0 && found > 0 && choice.state == 0;
    made->algorithm = choice.algorithm;
    made->workspace = choice.workspace;
  }

  const CublasLt& library_ = cublaslt();
  const char* op_;
  const Product& p_;
  const Problem& problem_;
};

// Of a device; under the lock.
struct Products {
  std::mutex mutex;
  lt::Handle handle = nullptr;
  std::unordered_map<Key, std::shared_ptr<Chosen>, HashOfKey> problems;
};
Products& products_of(int device) {
  static auto& all = *new std::vector<Products>(
      static_cast<size_t>(std::max(device_count(), 1)));
  return all[static_cast<size_t>(device)];
}

std::shared_ptr<Chosen> choice_for(const char* op,
                                   const Product& p,
                                   const Problem& problem,
                                   lt::Handle* handle,
                                   int device) {
  Products& products = products_of(device);
  std::lock_guard guard(products.mutex);
  if (products.handle == nullptr) {
    check_lt(cublaslt().create(&products.handle), op, "cublasLtCreate");
  }
  *handle = products.handle;
  auto found = products.problems.find(problem.key);
  if (found != products.problems.end()) return found->second;
  if (products.problems.size() >= kMostProblems) products.problems.clear();
  auto made = Choosing(op, p, problem).choose(products.handle);
  products.problems.emplace(problem.key, made);
  return made;
}

// Of what is chosen once the pointers are those of the call.
void point_to(const char* op,
              const Chosen& chosen,
              lt::OperationAttribute what,
              const void* data) {
  if (data == nullptr) return;
  check_lt(
      cublaslt().operation_set(chosen.operation, what, &data, sizeof(data)),
      op,
      "cublasLtMatmulDescSetAttribute");
}

}  // namespace

bool has_cublaslt() {
  const std::string& error = cublaslt().error;
  if (TAEDA_LIKELY(error.empty())) return true;
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    warn("CUDA: matrix products run Taeda's own kernels, which are slower: " +
         error);
  }
  return false;
}

bool has_products_of(ScalarType t) {
  return t == kFloat || t == kDouble || t == kHalf || t == kBFloat16 ||
         t == kComplexFloat || t == kComplexDouble;
}

bool is_readable(const Side& side, int64_t rows, int64_t columns) {
  Seen ignored;
  return side.batch_stride >= 0 && see(side, rows, columns, &ignored);
}

bool multiply(const char* op, const Product& p, int device) {
  if (!has_cublaslt() || p.batches > INT32_MAX) return false;
  DeviceGuard guard(device);
  use_context();
  Problem problem = problem_of(p);
  lt::Handle handle = nullptr;
  std::shared_ptr<Chosen> chosen = choice_for(op, p, problem, &handle, device);
  if (!chosen->usable) return false;
  Factor alpha(p.alpha, problem.types.scalar);
  Factor beta(p.beta, problem.types.scalar);
  // No lock is held: taking memory may need the interpreter's.
  TensorBase workspace;
  if (chosen->workspace > 0) {
    auto bytes = static_cast<int64_t>(chosen->workspace);
    Device here{DeviceType::CUDA, static_cast<int8_t>(device)};
    workspace = make_tensor(op, {&bytes, 1}, kByte, here);
  }
  std::unique_lock<std::mutex> own(chosen->mutex, std::defer_lock);
  if (p.bias != nullptr || p.a_scale != nullptr) own.lock();
  point_to(op, *chosen, lt::kBiasPointer, p.bias);
  point_to(op, *chosen, lt::kScaleOfA, p.b_scale);
  point_to(op, *chosen, lt::kScaleOfB, p.a_scale);
  check_lt(cublaslt().multiply(
               handle,
               chosen->operation,
               alpha.bytes.data(),
               p.b.data,
               chosen->a,
               p.a.data,
               chosen->b,
               beta.bytes.data(),
               p.added == nullptr ? p.result : p.added,
               chosen->c,
               p.result,
               chosen->d,
               &chosen->algorithm,
               chosen->workspace > 0 ? workspace.mutable_raw_data() : nullptr,
               chosen->workspace,
               handle_of(current_stream())),
           op,
           "cublasLtMatmul");
  finish_launch();
  return true;
}

}  // namespace taeda::cuda
