// Arguments as they are kept: sizes and dtypes in place of tensors.
#pragma once

#include <taeda/aten/core/observe.h>
#include <taeda/csrc/autograd/node.h>
#include <taeda/csrc/profiler/recorder.h>

namespace taeda::profiler {

std::vector<Argument> describe_values(const observe::Values& values);
std::vector<Argument> describe_tensors(const autograd::Tensors& tensors);

}  // namespace taeda::profiler
