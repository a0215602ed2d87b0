"""The functions of aten/math by signature, as the documentation lists them."""

from __future__ import annotations

import re

from math_build import ROOT

UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh erf erfc erfinv sqrt rsqrt floor ceil trunc round frac abs sign "
    "sgn lgamma digamma trigamma i0 sinc sinpi cospi angle"
).split()
BINARY = (
    "pow atan2 hypot fmod remainder floor_divide div_trunc maximum minimum fmax fmin "
    "copysign nextafter xlogy xlog1py logaddexp logaddexp2"
).split()
TERNARY = ["clamp"]
COMPLEX = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh sqrt rsqrt sgn conj"
).split()
INTEGER_BINARY = (
    "div_trunc fmod remainder floor_divide pow gcd lcm shift_left shift_right "
    "maximum minimum fmax fmin"
).split()
# Functions of Note [Shared functions], by the number of their arguments.
_DECLARED = (ROOT / "aten/math/shared.h").read_text()
SHARED_UNARY = re.findall(r"^TAEDA_SHARED_1\((\w+)\)", _DECLARED, re.MULTILINE)
SHARED_BINARY = re.findall(
    r"^TAEDA_SHARED_(?:2|POLYNOMIAL)\((\w+)\)", _DECLARED, re.MULTILINE
)
# Data-dependent loops, or scalar by choice.
NOT_VECTORISED_DOUBLE = {"fmod", "remainder", "floor_divide"}
