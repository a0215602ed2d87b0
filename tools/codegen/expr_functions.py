"""The functions of the expression language: arity, typing, derivatives, spellings.

Derivatives are text in the language itself over the arguments a, b, c. Formulas are the
textbook ones (Abramowitz & Stegun ch. 4, 6, 7); what happens on ties and at singular
points follows PyTorch's results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Names of numbers; None marks a limit of the compute type, known only in C++.
CONSTANTS: dict[str, float | None] = {
    "pi": math.pi,
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "lowest": None,
    "highest": None,
    "epsilon": None,
}

# How the kind of the result follows from the kinds of the arguments.
FLOAT = "float"  # at least float
SAME = "same"  # the widest of the arguments
REAL = "real"  # complex becomes float, others stay
REAL_FLOAT = "real_float"  # float for every argument
BOOL = "bool"


@dataclass(frozen=True)
class Function:
    """`partials[i]` is the derivative by argument i (None: nowhere differentiable,
    or zero). For complex arguments `complex_partials` take their place where given and
    `conj_partials` are the derivatives by the conjugate of the argument.

    `op` and `numpy` are formats over the printed arguments; `op` without braces names a
    tensor operator. `cpp` is a format that overrides the call `math::name(...)`.
    `shared`: of Note [Shared functions] in aten/math/prim.h.
    """

    name: str
    arity: int
    result: str
    partials: tuple[str | None, ...] = ()
    op: str = ""
    numpy: str = ""
    complex_ok: bool = False
    complex_partials: tuple[str | None, ...] | None = None
    conj_partials: tuple[str | None, ...] | None = None
    cpp: str | None = None
    shared: bool = False

    def partial(self, index: int, is_complex: bool) -> str | None:
        chosen = self.partials
        if is_complex and self.complex_partials is not None:
            chosen = self.complex_partials
        return chosen[index] if chosen else None

    def conj_partial(self, index: int) -> str | None:
        return self.conj_partials[index] if self.conj_partials else None


FUNCTIONS: dict[str, Function] = {}


def _add(
    name: str,
    result: str,
    *partials: str | None,
    arity: int = 1,
    op: str | None = None,
    numpy: str | None = None,
    complex_ok: bool = False,
    complex_partials: tuple[str | None, ...] | None = None,
    conj_partials: tuple[str | None, ...] | None = None,
    cpp: str | None = None,
    shared: bool = False,
) -> None:
    arity = len(partials) or arity
    arguments = ", ".join(f"{{{i}}}" for i in range(arity))
    FUNCTIONS[name] = Function(
        name,
        arity,
        result,
        partials,
        op or name,
        numpy or f"np.{name}({arguments})",
        complex_ok,
        complex_partials,
        conj_partials,
        cpp,
        shared,
    )


def _add_analytic() -> None:
    """Functions with one derivative formula for real and complex arguments."""
    ln2, ln10 = repr(math.log(2)), repr(math.log(10))
    for name, derivative, numpy in (
        ("exp", "exp(a)", None),
        ("exp2", f"exp2(a) * {ln2}", None),
        ("expm1", "expm1(a) + 1", None),
        ("log", "1 / a", None),
        ("log2", f"1 / (a * {ln2})", None),
        ("log10", f"1 / (a * {ln10})", None),
        ("log1p", "1 / (a + 1)", None),
        ("sin", "cos(a)", None),
        ("cos", "-sin(a)", None),
        ("tan", "1 + tan(a) ** 2", None),
        ("asin", "rsqrt(1 - a * a)", "np.arcsin({0})"),
        ("acos", "-rsqrt(1 - a * a)", "np.arccos({0})"),
        ("atan", "1 / (1 + a * a)", "np.arctan({0})"),
        ("sinh", "cosh(a)", None),
        ("cosh", "sinh(a)", None),
        ("tanh", "1 - tanh(a) ** 2", None),
        ("asinh", "rsqrt(a * a + 1)", "np.arcsinh({0})"),
        ("atanh", "1 / (1 - a * a)", "np.arctanh({0})"),
        ("sqrt", "1 / (2 * sqrt(a))", None),
        ("rsqrt", "-0.5 * rsqrt(a) ** 3", "(1 / np.sqrt({0}))"),
    ):
        _add(name, FLOAT, derivative, numpy=numpy, complex_ok=True)
    _add(
        "sigmoid",
        FLOAT,
        "sigmoid(a) * (1 - sigmoid(a))",
        numpy="(1 / (1 + np.exp(-{0})))",
        complex_ok=True,
        cpp="({t}(1) / ({t}(1) + {math}exp(-{0})))",
    )
    # On the complex plane the one root of a^2 - 1 would take the wrong branch.
    _add(
        "acosh",
        FLOAT,
        "rsqrt(a * a - 1)",
        numpy="np.arccosh({0})",
        complex_ok=True,
        complex_partials=("rsqrt(a - 1) * rsqrt(a + 1)",),
    )
    _add(
        "pow",
        SAME,
        "0 if b == 0 else b * pow(a, b - 1)",
        "0 if a == 0 and b >= 0 else pow(a, b) * log(a)",
        numpy="np.power({0}, {1})",
        complex_ok=True,
        complex_partials=(
            "0 if b == 0 else b * pow(a, b - 1)",
            "0 if a == 0 and real(b) >= 0 else pow(a, b) * log(a)",
        ),
    )


def _add_special() -> None:
    _add(
        "erf",
        FLOAT,
        f"{2 / math.sqrt(math.pi)!r} * exp(-(a * a))",
        numpy="special.erf({0})",
    )
    _add(
        "erfc",
        FLOAT,
        f"{-2 / math.sqrt(math.pi)!r} * exp(-(a * a))",
        numpy="special.erfc({0})",
    )
    _add(
        "erfinv",
        FLOAT,
        f"{math.sqrt(math.pi) / 2!r} * exp(erfinv(a) ** 2)",
        numpy="special.erfinv({0})",
    )
    _add("lgamma", FLOAT, "digamma(a)", numpy="special.gammaln({0})")
    _add("digamma", FLOAT, "polygamma(1, a)", numpy="special.digamma({0})")
    _add(
        "polygamma",
        FLOAT,
        None,
        "polygamma(a + 1, b)",
        numpy="special.polygamma({0}, {1})",
        shared=True,
    )
    _add(
        "atan2",
        FLOAT,
        "b / (a * a + b * b)",
        "-a / (a * a + b * b)",
        numpy="np.arctan2({0}, {1})",
    )
    _add(
        "xlogy",
        FLOAT,
        "0 if a == 0 and b <= 0 else log(b)",
        "a / b",
        numpy="special.xlogy({0}, {1})",
    )
    _add(
        "xlog1py",
        FLOAT,
        "0 if a == 0 and b <= -1 else log1p(b)",
        "a / (b + 1)",
        op="special_xlog1py",
        numpy="special.xlog1py({0}, {1})",
    )
    _add("logaddexp", FLOAT, "1 / (1 + exp(b - a))", "1 / (1 + exp(a - b))")
    _add("logaddexp2", FLOAT, "1 / (1 + exp2(b - a))", "1 / (1 + exp2(a - b))")
    _add(
        "sinc",
        FLOAT,
        "0 if a == 0 else (cos(pi * a) - sinc(a)) / a",
    )
    _add("hypot", FLOAT, "a / hypot(a, b)", "b / hypot(a, b)")
    _add("i0", FLOAT, "i1(a)", numpy="special.i0({0})")
    # The divisor is 1 where the other arm counts, for the slopes of both are finite.
    divisor = "(1 if a == 0 else a)"
    slope = f"0.5 if a == 0 else i0(a) - i1(a) / {divisor}"
    _add("i1", FLOAT, slope, numpy="special.i1({0})", op="special_i1")
    _add(
        "i0e",
        FLOAT,
        "i1e(a) - sign(a) * i0e(a)",
        numpy="special.i0e({0})",
        op="special_i0e",
    )
    slope = f"0.5 if a == 0 else i0e(a) - i1e(a) * (sign(a) + 1 / {divisor})"
    _add("i1e", FLOAT, slope, numpy="special.i1e({0})", op="special_i1e")


def _add_incomplete() -> None:
    """Distribution functions of gamma and how quantiles move with parameters."""
    density = "exp((a - 1) * log(b) - b - lgamma(a))"
    for name, sign in (("igamma", ""), ("igammac", "-")):
        _add(
            name,
            FLOAT,
            f"{'' if sign else '-'}gamma_quantile_slope(a, b) * {density}",
            f"{sign}{density}",
            numpy=f"special.gammainc{name[6:]}({{0}}, {{1}})",
            shared=True,
        )
    # A third derivative by the shape is NaN: there is no formula for it.
    for name, slope, op in (
        ("gamma_quantile_slope", "gamma_quantile_curve(a, b)", "_standard_gamma_grad"),
        ("gamma_quantile_curve", "nan", "_gamma_quantile_curve"),
    ):
        by_sample = (
            "digamma(a) - log(b) - gamma_quantile_slope(a, b) * ((a - 1) / b - 1)"
        )
        numpy = f"special.{name}({{0}}, {{1}})"
        second = by_sample if op[1] == "s" else "nan"
        _add(name, FLOAT, slope, second, op=op, numpy=numpy, shared=True)
    name = "beta_quantile_slope"
    _add(name, FLOAT, None, None, None, op=f"_{name}", shared=True)


def _add_shared() -> None:
    """Note [Shared functions] of aten/math. Derivatives without a formula are NaN."""
    root = repr(math.sqrt(2 / math.pi))
    slope = f"{math.sqrt(2 * math.pi)!r} * exp(0.5 * ndtri(a) ** 2)"
    scaled = "scaled_modified_bessel_k"
    for name, derivative, numpy in (
        ("erfcx", f"2 * a * erfcx(a) - {2 / math.sqrt(math.pi)!r}", "erfcx({0})"),
        ("log_ndtr", f"{root} / erfcx(-a * {math.sqrt(0.5)!r})", "log_ndtr({0})"),
        ("ndtri", slope, "ndtri({0})"),
        ("airy_ai", "nan", "airy({0})[0]"),
        ("bessel_j0", "-bessel_j1(a)", "j0({0})"),
        ("bessel_j1", "bessel_j0(a) - bessel_j1(a) / a", "j1({0})"),
        ("bessel_y0", "-bessel_y1(a)", "y0({0})"),
        ("bessel_y1", "bessel_y0(a) - bessel_y1(a) / a", "y1({0})"),
        (
            "spherical_bessel_j0",
            "(cos(a) - spherical_bessel_j0(a)) / a",
            "spherical_jn(0, {0})",
        ),
        ("modified_bessel_i0", "modified_bessel_i1(a)", "i0({0})"),
        (
            "modified_bessel_i1",
            "modified_bessel_i0(a) - modified_bessel_i1(a) / a",
            "i1({0})",
        ),
        ("modified_bessel_k0", "-modified_bessel_k1(a)", "k0({0})"),
        (
            "modified_bessel_k1",
            "-modified_bessel_k0(a) - modified_bessel_k1(a) / a",
            "k1({0})",
        ),
        (f"{scaled}0", f"{scaled}0(a) - {scaled}1(a)", "k0e({0})"),
        (f"{scaled}1", f"{scaled}1(a) * (1 - 1 / a) - {scaled}0(a)", "k1e({0})"),
    ):
        op, numpy = f"special_{name}", f"special.{numpy}"
        _add(name, FLOAT, derivative, op=op, numpy=numpy, shared=True)
    by_start = "-a * zeta(a + 1, b)"
    numpy = "special.zeta({0}, {1})"
    op = "special_zeta"
    _add("zeta", FLOAT, "nan", by_start, op=op, numpy=numpy, shared=True)
    for name, numpy in (
        *((f"chebyshev_polynomial_{k}", f"eval_cheby{k}") for k in "tu"),
        *((f"chebyshev_polynomial_{k}", "") for k in "vw"),
        *((f"shifted_chebyshev_polynomial_{k}", f"eval_sh_cheby{k}") for k in "tu"),
        *((f"shifted_chebyshev_polynomial_{k}", "") for k in "vw"),
        ("legendre_polynomial_p", "eval_legendre"),
        ("laguerre_polynomial_l", "eval_laguerre"),
        ("hermite_polynomial_h", "eval_hermite"),
        ("hermite_polynomial_he", "eval_hermitenorm"),
    ):
        numpy = f"special.{numpy or name}({{1}}, {{0}})"
        op = f"special_{name}"
        _add(name, FLOAT, "nan", "nan", op=op, numpy=numpy, shared=True)


def _add_rounding() -> None:
    for name in ("floor", "ceil", "trunc"):
        _add(name, SAME, None)
    _add("round", SAME, None, numpy="np.round({0})")
    _add("frac", SAME, "1", numpy="({0} - np.trunc({0}))")
    _add("fmod", SAME, "1", "-div_trunc(a, b)")
    _add("remainder", SAME, "1", "-floor_divide(a, b)")
    _add("floor_divide", SAME, None, None)
    _add(
        "div_trunc",
        SAME,
        None,
        None,
        op='ops::div({0}, {1}, "trunc")',
        numpy="np.trunc({0} / {1})",
    )

    # What float32 keeps of a number.
    _add(
        "single", FLOAT, "1", numpy="np.float64(np.float32({0}))", cpp="{t}(float({0}))"
    )
    _add("gcd", SAME, None, None)
    _add("lcm", SAME, None, None)


def _add_piecewise() -> None:
    # As in PyTorch, the sign of NaN is 0.
    _add("sign", SAME, None, numpy="(({0} > 0) * 1.0 - ({0} < 0))")
    _add("copysign", FLOAT, "sign(a) * copysign(1, b)", None)
    # A tie gives each side half; a NaN passes the gradient to both.
    _add(
        "maximum",
        SAME,
        "0.5 if a == b else (0 if a < b else 1)",
        "0.5 if a == b else (0 if a > b else 1)",
    )
    _add(
        "minimum",
        SAME,
        "0.5 if a == b else (0 if a > b else 1)",
        "0.5 if a == b else (0 if a < b else 1)",
    )
    # The side that is returned gets the gradient; a tie goes to the first.
    _add(
        "fmax",
        SAME,
        "1 if a >= b or is_nan(b) else 0",
        "0 if a >= b or is_nan(b) else 1",
    )
    _add(
        "fmin",
        SAME,
        "1 if a <= b or is_nan(b) else 0",
        "0 if a <= b or is_nan(b) else 1",
    )
    _add(
        "clamp",
        SAME,
        "1 if a >= b and a <= c else 0",
        "1 if a < b and b < c else 0",
        "1 if a > c or c < b else 0",
        numpy="np.minimum(np.maximum({0}, {1}), {2})",
    )
    _add("nextafter", FLOAT, "1", None)


def _add_complex() -> None:
    """Functions of a complex number that are not holomorphic."""
    _add(
        "abs",
        REAL,
        "sign(a)",
        complex_ok=True,
        complex_partials=("0.5 * conj(sgn(a))",),
        conj_partials=("0.5 * sgn(a)",),
    )
    _add(
        "sgn",
        SAME,
        None,
        numpy="np.sign({0})",
        complex_ok=True,
        complex_partials=("0 if a == 0 else 0.5 / abs(a)",),
        conj_partials=("0 if a == 0 else -0.5 * sgn(a) * sgn(a) / abs(a)",),
    )
    _add(
        "conj",
        SAME,
        "1",
        complex_ok=True,
        complex_partials=("0",),
        conj_partials=("1",),
    )
    # A product with 1j would make NaN of an infinite part.
    _add(
        "with_imag",
        SAME,
        "1",
        "0",
        numpy="np.real({0}) + (1j * np.real({1}) if np.iscomplexobj({0}) else 0)",
        complex_ok=True,
        complex_partials=("0.5", "0.5j"),
        conj_partials=("0.5", "0.5j"),
    )
    _add(
        "real",
        REAL,
        "1",
        complex_ok=True,
        complex_partials=("0.5",),
        conj_partials=("0.5",),
    )
    _add(
        "imag",
        REAL,
        None,
        complex_ok=True,
        complex_partials=("-0.5j",),
        conj_partials=("0.5j",),
    )
    # The angle of a is the imaginary part of log(a).
    _add(
        "angle",
        REAL_FLOAT,
        None,
        complex_ok=True,
        complex_partials=("0 if a == 0 else -0.5j / a",),
        conj_partials=("0 if a == 0 else 0.5j / conj(a)",),
    )


def _add_predicates() -> None:
    for name, op in (("is_nan", "isnan"), ("is_inf", "isinf"), ("is_finite", "")):
        op = op or "isfinite"
        _add(name, BOOL, None, op=op, numpy=f"np.{op}({{0}})", complex_ok=True)
    _add("signbit", BOOL, None)


_add_analytic()
_add_special()
_add_incomplete()
_add_shared()
_add_rounding()
_add_piecewise()
_add_complex()
_add_predicates()
