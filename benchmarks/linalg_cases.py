"""Batches of 1,000 small matrices: cases of `run.py`, named OPERATOR_DTYPE_N."""

from __future__ import annotations

SIZES = (2, 3, 4, 8, 16)
DTYPES = ("float32", "float64", "complex64", "complex128")
COUNT = 1000

_SETUP = """
def matrices(dtype, *shape):
    array = random.standard_normal(shape)
    if dtype.startswith("complex"):
        array = array + 1j * random.standard_normal(shape)
    return array.astype(dtype)
array = matrices("{dtype}", {count}, {n}, {n})
a, b = T.from_numpy(array), T.from_numpy(matrices("{dtype}", {count}, {n}, {n}))
positive = array @ array.conj().swapaxes(-1, -2) + numpy.eye({n}, dtype="{dtype}")
s = T.from_numpy(positive.astype("{dtype}"))
"""
_FORWARD = {
    "det": "T.linalg.det(a)",
    "slogdet": "T.linalg.slogdet(a)",
    "inv": "T.linalg.inv(a)",
    "inv_ex": "T.linalg.inv_ex(a)",
    "solve": "T.linalg.solve(a, b)",
    "solve_ex": "T.linalg.solve_ex(a, b)",
    "lu_factor": "T.linalg.lu_factor(a)",
    "cholesky": "T.linalg.cholesky(s)",
    "cholesky_ex": "T.linalg.cholesky_ex(s)",
    "cholesky_solve": "T.cholesky_solve(b, s)",
    "cholesky_inverse": "T.cholesky_inverse(s)",
    "solve_triangular": "T.linalg.solve_triangular(s, b, upper=False)",
    "qr": "T.linalg.qr(a)",
    "eigh": "T.linalg.eigh(s)",
    "eigvalsh": "T.linalg.eigvalsh(s)",
    "eig": "T.linalg.eig(a)",
    "eigvals": "T.linalg.eigvals(a)",
    "svd": "T.linalg.svd(a, full_matrices=False)",
    "svdvals": "T.linalg.svdvals(a)",
}
# What is differentiated: results and their gradients. Those of eigenvectors and
# of singular vectors do not depend on phases.
_BACKWARD = {
    "det": ("a", "T.linalg.det(x),", "(y[0].detach(),)"),
    "inv": ("a", "T.linalg.inv(x),", "(b,)"),
    "solve": ("a", "T.linalg.solve(x, b),", "(b,)"),
    "cholesky": ("s", "T.linalg.cholesky(x),", "(b,)"),
    "qr": ("a", "T.linalg.qr(x)", "(b, b)"),
    "eigh": ("s", "T.linalg.eigh(x)", "(y[0].detach(), y[1].detach())"),
    "svd": (
        "a",
        "T.linalg.svd(x, full_matrices=False)",
        "tuple(t.detach() for t in y)",
    ),
}


def _each(operators: dict, case: object) -> dict[str, tuple[str, str]]:
    """The cases of a table, `case(operator)` giving set-up and statement."""
    return {
        f"{name}_{dtype}_{n}": tuple(
            part.replace("{dtype}", dtype)
            .replace("{count}", str(COUNT))
            .replace("{n}", str(n))
            for part in case(operators[name])
        )
        for name in operators
        for dtype in DTYPES
        for n in SIZES
    }


def _backward(parts: tuple[str, str, str]) -> tuple[str, str]:
    source, call, gradients = parts
    setup = f"x = {source}.clone().requires_grad_()\ny = ({call})\ng = {gradients}\n"
    return _SETUP + setup, "T.autograd.grad(y, x, g, retain_graph=True)"


LINALG = _each(_FORWARD, lambda statement: (_SETUP, statement))
LINALG_BACKWARD = _each(_BACKWARD, _backward)
