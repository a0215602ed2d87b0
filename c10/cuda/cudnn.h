// cuDNN, which computes convolutions, as a table of function pointers: its
// backend interface, in which a computation is a graph of descriptors with
// attributes. Names and numbers are those of NVIDIA's documentation of cuDNN 9.
#pragma once

#include <taeda/c10/cuda/driver.h>
#include <taeda/c10/cuda/library.h>

namespace taeda::cuda {

namespace cudnn {

using Status = int;  // cudnnStatus_t; thousands are kinds of failure
inline constexpr Status kBadParameter = 2000, kNotSupported = 3000;

using Handle = struct HandleObject*;
using Descriptor = struct DescriptorObject*;

// cudnnDataType_t
enum DataType : int {
  kReal32 = 0,
  kReal64 = 1,
  kReal16 = 2,
  kBrain16 = 9,
};
// cudnnBackendDescriptorType_t
enum Kind : int {
  kConvolution = 1,
  kEngine = 2,
  kEngineChoice = 3,
  kHeuristics = 4,
  kPlan = 5,
  kForward = 10,
  kWeightGradient = 11,
  kInputGradient = 12,
  kGraph = 15,
  kPointers = 16,
  kTensor = 17,
};
// cudnnBackendAttributeName_t. Those of the three operations follow each other
// in an order of their own.
enum Attribute : int {
  kComputesIn = 100,
  kMode = 101,
  kDilations = 102,
  kStrides = 103,
  kPaddingBehind = 104,
  kPaddingBefore = 105,
  kSpatialDims = 106,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kEngineOfChoice = 300,
  kPlanHandle = 400,
  kPlanChoice = 401,
  kPlanWorkspace = 402,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kInputAlpha = 706,
  kInputBeta = 707,
  kInputConvolution = 708,
  kInputW = 709,
  kInputX = 710,
  kInputY = 711,
  kWeightAlpha = 712,
  kWeightBeta = 713,
  kWeightConvolution = 714,
  kWeightW = 715,
  kWeightX = 716,
  kWeightY = 717,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorSizes = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kPointerIds = 1000,
  kPointersOf = 1001,
  kWorkspace = 1003,
  kEngineNotes = 1303,
};
// cudnnBackendAttributeType_t
enum Type : int {
  kHandleType = 0,
  kDataTypeType = 1,
  kInt64Type = 3,
  kFloatType = 4,
  kDoubleType = 5,
  kPointerType = 6,
  kModeType = 7,
  kHeuristicsModeType = 8,
  kNoteType = 11,
  kDescriptorType = 15,
};
// cudnnBackendNumericalNote_t
enum Note : int {
  kTensorCore = 0,
  kNarrowsInputs = 1,
  kNarrowsSums = 2,
  kNotDeterministic = 4,
};
// cudnnBackendHeurMode_t
enum HeuristicsMode : int { kFallback = 2, kModeA = 3 };
// cudnnConvolutionMode_t
inline constexpr int kCrossCorrelation = 1;

}  // namespace cudnn

#define TAEDA_CUDNN_FUNCTIONS(X)                                              \
  X(cudnnGetVersion, size_t, version, ())                                     \
  X(cudnnCreate, cudnn::Status, create, (cudnn::Handle*))                     \
  X(cudnnSetStream, cudnn::Status, set_stream, (cudnn::Handle, StreamHandle)) \
  X(cudnnBackendCreateDescriptor,                                             \
    cudnn::Status,                                                            \
    descriptor_create,                                                        \
    (cudnn::Kind, cudnn::Descriptor*))                                        \
  X(cudnnBackendDestroyDescriptor,                                            \
    cudnn::Status,                                                            \
    descriptor_destroy,                                                       \
    (cudnn::Descriptor))                                                      \
  X(cudnnBackendSetAttribute,                                                 \
    cudnn::Status,                                                            \
    set,                                                                      \
    (cudnn::Descriptor,                                                       \
     cudnn::Attribute,                                                        \
     cudnn::Type,                                                             \
     int64_t count,                                                           \
     const void* values))                                                     \
  X(cudnnBackendGetAttribute,                                                 \
    cudnn::Status,                                                            \
    get,                                                                      \
    (cudnn::Descriptor,                                                       \
     cudnn::Attribute,                                                        \
     cudnn::Type,                                                             \
     int64_t wanted,                                                          \
     int64_t * found,                                                         \
     void* values))                                                           \
  X(cudnnBackendFinalize, cudnn::Status, finish, (cudnn::Descriptor))         \
  X(cudnnBackendExecute,                                                      \
    cudnn::Status,                                                            \
    execute,                                                                  \
    (cudnn::Handle, cudnn::Descriptor plan, cudnn::Descriptor pointers))

struct Cudnn {
#define TAEDA_MEMBER(symbol, result, name, parameters) result(*name) parameters;
  TAEDA_CUDNN_FUNCTIONS(TAEDA_MEMBER)
#undef TAEDA_MEMBER
  std::string error;  // why it cannot be used; empty where it can
};

// Loaded at the first call, of which the answer is kept.
const Cudnn& cudnn_library();

}  // namespace taeda::cuda
