// What c10/core/gpu_parts.h asks of this library.
#pragma once

#include <taeda/c10/core/gpu_parts.h>

namespace taeda::cuda {

GpuPools& pools_part();
GpuGraphs& graphs_part();
GpuSharing& sharing_part();

}  // namespace taeda::cuda
