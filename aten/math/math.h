// All of aten/math.
#pragma once

#include <taeda/aten/math/bessel.h>
#include <taeda/aten/math/compare.h>
#include <taeda/aten/math/complex_trig.h>
#include <taeda/aten/math/division.h>
#include <taeda/aten/math/erf.h>
#include <taeda/aten/math/exp.h>
#include <taeda/aten/math/gamma.h>
#include <taeda/aten/math/hyperbolic.h>
#include <taeda/aten/math/integer.h>
#include <taeda/aten/math/inverse_trig.h>
#include <taeda/aten/math/log.h>
#include <taeda/aten/math/power.h>
#include <taeda/aten/math/rounding.h>
#include <taeda/aten/math/shared.h>
#include <taeda/aten/math/special.h>
#include <taeda/aten/math/trig.h>
