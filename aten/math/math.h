// All of aten/math.
#pragma once

#include "compare.h"
#include "division.h"
#include "erf.h"
#include "exp.h"
#include "gamma.h"
#include "hyperbolic.h"
#include "integer.h"
#include "inverse_trig.h"
#include "log.h"
#include "power.h"
#include "rounding.h"
#include "special.h"
#include "trig.h"
