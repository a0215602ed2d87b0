// Tensors, operators and their registration under PyTorch's names.
#pragma once

#include <taeda/torch_library.h>
#include <taeda/torch_macros.h>
#include <taeda/torch_namespace.h>
