"""The scalar expression language of the pointwise records: public face.

Syntax is Python's: `a + b`, `a ** b`, `a // b`, `a % b`, comparisons (also chained),
`and or not`, `x if test else y`, calls of `FUNCTIONS`, the constants of `CONSTANTS`,
casts `float(x)`, and `cast(x)` to the compute type.

    e = parse("self + alpha * other", {"self", "alpha", "other"})
    check(e, {"self": "float", "alpha": "float", "other": "float"})   # -> "float"
    cpp(e, "float"); compose(e, scalars={"alpha"}); to_numpy(e)
    backward_expr(e, "other", is_complex=True)      # grad * conj(alpha)
"""

from __future__ import annotations

from .expr_ast import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Cond,
    Constant,
    Expr,
    Literal,
    Logic,
    Name,
    Unary,
    map_children,
    names,
    replace,
    substitute,
    walk,
)
from .expr_compose import compose
from .expr_cpp import cpp, cpp_block, cpp_blocks
from .expr_diff import backward_expr, diff, forward_expr
from .expr_functions import CONSTANTS, FUNCTIONS
from .expr_parse import parse
from .expr_print import to_numpy, to_text
from .expr_simplify import simplify
from .expr_types import check

__all__ = [
    "CONSTANTS",
    "FUNCTIONS",
    "Access",
    "Binary",
    "Call",
    "Cast",
    "Compare",
    "Cond",
    "Constant",
    "Expr",
    "Literal",
    "Logic",
    "Name",
    "Unary",
    "backward_expr",
    "check",
    "compose",
    "cpp",
    "cpp_block",
    "cpp_blocks",
    "diff",
    "forward_expr",
    "map_children",
    "names",
    "parse",
    "replace",
    "simplify",
    "substitute",
    "to_numpy",
    "to_text",
    "walk",
]
