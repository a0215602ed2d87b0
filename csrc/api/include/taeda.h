// The C++ front end: taeda::Tensor with every operator as a method, the
// operators as functions of namespace taeda, registration of user operators.
#pragma once

#include <taeda/aten/core/library.h>
#include <taeda/autograd.h>
#include <taeda/c10/core/local_state.h>
#include <taeda/gen/tensor.h>
#include <taeda/operators.h>
#include <taeda/tensor_members.h>
