// CRC-32 of ISO 3309, the checksum of zip archives.
#pragma once

#include <taeda/c10/util/macros.h>

#include <cstddef>
#include <cstdint>

namespace taeda {

// Goes on from `crc`, the checksum of what comes before (0 at the start).
TAEDA_API uint32_t crc32(uint32_t crc, const void* data, size_t size);

}  // namespace taeda
