// Device memory that another process opens.
#pragma once

#include <taeda/c10/core/gpu_parts.h>

namespace taeda::cuda {

// Note [Shared device memory]
// A block that another process opens stays where it is. Of a segment that
// grows the process gets descriptors of the pages that the block lies in, and
// maps them one behind the other; of another segment the driver's handle. Each
// segment of another process is open once, for as long as something of it is
// in use. Who keeps the block from being given away again meanwhile is the
// bindings' matter (multiprocessing/_cuda_sharing.py).
GpuShared share(const void* data);
DataPtr open(const GpuShared& shared);

}  // namespace taeda::cuda
