// Layers.
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>

namespace taeda::cuda {

Definitions layer_definitions() { return {}; }

}  // namespace taeda::cuda
