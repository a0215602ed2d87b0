// cuBLASLt, which computes matrix products, as a table of function pointers;
// the interface is that of NVIDIA's cuBLAS documentation (12.x and 13.x).
#pragma once

#include <taeda/c10/cuda/driver.h>
#include <taeda/c10/cuda/library.h>

namespace taeda::cuda {

// Matrices are column by column, as in all of cuBLAS.
namespace lt {

using Status = int;  // cublasStatus_t
inline constexpr Status kNotSupported = 15;

using Handle = struct HandleObject*;
using Operation = struct OperationObject*;    // cublasLtMatmulDesc_t
using Layout = struct LayoutObject*;          // cublasLtMatrixLayout_t
using Preference = struct PreferenceObject*;  // cublasLtMatmulPreference_t

// cudaDataType_t
enum DataType : int {
  kReal32 = 0,
  kReal64 = 1,
  kReal16 = 2,
  kInt8 = 3,
  kComplex32 = 4,
  kComplex64 = 5,
  kInt32 = 10,
  kBrain16 = 14,
  kE4m3 = 28,
  kE5m2 = 29,
};
// cublasComputeType_t
enum ComputeType : int {
  kIn32 = 68,
  kIn64 = 70,
  kInInt32 = 72,
  kInTf32 = 77,
};
// cublasOperation_t
enum Turn : int { kAsIs = 0, kTransposed = 1, kAdjoint = 2 };
// cublasLtEpilogue_t, bits
enum Epilogue : int { kPlain = 1, kRelu = 2, kBias = 4, kGelu = 32 };
// cublasLtMatmulDescAttributes_t
enum OperationAttribute : int {
  kTurnA = 3,
  kTurnB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kScaleOfA = 17,  // pointers to a float of the device
  kScaleOfB = 18,
  kFastSums = 25,
};
// cublasLtMatrixLayoutAttribute_t
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
// cublasLtMatmulPreferenceAttributes_t
enum PreferenceAttribute : int {
  kMostWorkspace = 1,
  kReductions = 3,  // bits of the schemes that are allowed
  kAlignmentA = 5,  // of b, c and d: the numbers after it
};
inline constexpr uint32_t kAllReductions = 7, kReductionsInWideSums = 3;

struct Algorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct Choice {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

}  // namespace lt

#define TAEDA_CUBLASLT_FUNCTIONS(X)                                        \
  X(cublasLtCreate, create, (lt::Handle*))                                 \
  X(cublasLtMatmulDescCreate,                                              \
    operation_create,                                                      \
    (lt::Operation*, lt::ComputeType, lt::DataType of_scalars))            \
  X(cublasLtMatmulDescDestroy, operation_destroy, (lt::Operation))         \
  X(cublasLtMatmulDescSetAttribute,                                        \
    operation_set,                                                         \
    (lt::Operation, lt::OperationAttribute, const void*, size_t bytes))    \
  X(cublasLtMatrixLayoutCreate,                                            \
    layout_create,                                                         \
    (lt::Layout*, lt::DataType, uint64_t rows, uint64_t columns, int64_t)) \
  X(cublasLtMatrixLayoutDestroy, layout_destroy, (lt::Layout))             \
  X(cublasLtMatrixLayoutSetAttribute,                                      \
    layout_set,                                                            \
    (lt::Layout, lt::LayoutAttribute, const void*, size_t bytes))          \
  X(cublasLtMatmulPreferenceCreate, preference_create, (lt::Preference*))  \
  X(cublasLtMatmulPreferenceDestroy, preference_destroy, (lt::Preference)) \
  X(cublasLtMatmulPreferenceSetAttribute,                                  \
    preference_set,                                                        \
    (lt::Preference, lt::PreferenceAttribute, const void*, size_t bytes))  \
  X(cublasLtMatmulAlgoGetHeuristic,                                        \
    choose,                                                                \
    (lt::Handle,                                                           \
     lt::Operation,                                                        \
     lt::Layout a,                                                         \
     lt::Layout b,                                                         \
     lt::Layout c,                                                         \
     lt::Layout d,                                                         \
     lt::Preference,                                                       \
     int wanted,                                                           \
     lt::Choice*,                                                          \
     int* found))                                                          \
  X(cublasLtMatmul,                                                        \
    multiply,                                                              \
    (lt::Handle,                                                           \
     lt::Operation,                                                        \
     const void* alpha,                                                    \
     const void* a,                                                        \
     lt::Layout,                                                           \
     const void* b,                                                        \
     lt::Layout,                                                           \
     const void* beta,                                                     \
     const void* c,                                                        \
     lt::Layout,                                                           \
     void* d,                                                              \
     lt::Layout,                                                           \
     const lt::Algorithm*,                                                 \
     void* workspace,                                                      \
     size_t workspace_bytes,                                               \
     StreamHandle))

struct CublasLt {
#define TAEDA_MEMBER(symbol, name, parameters) lt::Status(*name) parameters;
  TAEDA_CUBLASLT_FUNCTIONS(TAEDA_MEMBER)
#undef TAEDA_MEMBER
  std::string error;  // why it cannot be used; empty where it can
};

// Loaded at the first call, of which the answer is kept.
const CublasLt& cublaslt();

}  // namespace taeda::cuda
