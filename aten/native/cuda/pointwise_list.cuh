// Pointwise programs over the tensors of a table, whose text elementwise.cpp
// prints: a block has a chunk of one tensor.
#pragma once

#include <taeda/aten/native/cuda/pointwise.cuh>
#include <taeda/aten/native/cuda/tables.cuh>
