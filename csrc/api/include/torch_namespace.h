// For ported C++ programs that say torch::: opt-in, because a program that also
// includes PyTorch's own headers must not see it.
#pragma once

#include <taeda/taeda.h>

namespace torch = taeda;
