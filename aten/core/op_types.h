// What the declarations of operators need.
#pragma once

#include <taeda/aten/core/dispatcher.h>
#include <taeda/c10/core/generator.h>

#include <tuple>
