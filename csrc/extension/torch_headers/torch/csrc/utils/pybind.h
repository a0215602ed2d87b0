// PyTorch's name for what torch/extension.h has.
#pragma once

#include <torch/extension.h>
