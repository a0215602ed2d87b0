#pragma once
#include "erf.h"
#include "exp.h"
#include "hyperbolic.h"
#include "inverse_trig.h"
#include "log.h"
#include "rounding.h"
#include "trig.h"
