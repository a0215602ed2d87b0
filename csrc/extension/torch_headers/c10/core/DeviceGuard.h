// PyTorch's name for a part of taeda/torch_device.h.
#pragma once

#include <taeda/torch_device.h>
