// What the generated bindings of operators include.
#pragma once

#include <taeda/aten/core/op_types.h>
#include <taeda/csrc/python/arg_parser.h>
#include <taeda/csrc/python/generator.h>
#include <taeda/csrc/python/return_types.h>
