// PyTorch's name for a part of torch/all.h.
#pragma once

#include <torch/all.h>
