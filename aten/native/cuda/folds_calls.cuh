// Numbers of the kernels of folds.cuh, for the host too.
#pragma once

namespace taeda {

inline constexpr int kFoldThreads = 256;
inline constexpr int kFoldHeld = 4;  // elements of a thread beside each other
inline constexpr int kFoldTile = kFoldThreads * kFoldHeld;
inline constexpr int kFoldState = 64;  // bytes, at most

}  // namespace taeda
