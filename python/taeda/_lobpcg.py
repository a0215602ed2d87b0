"""A few eigenvalues of a large symmetric matrix."""

from __future__ import annotations

import taeda

__all__ = ["lobpcg"]


def lobpcg(
    A,
    k: int | None = None,
    B=None,
    X=None,
    n: int | None = None,
    iK=None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker=None,
    ortho_iparams=None,
    ortho_fparams=None,
    ortho_bparams=None,
):
    """The k largest (or smallest) eigenvalues of A x = l B x, and eigenvectors.

    Locally optimal block preconditioned conjugate gradients (Knyazev, SIAM J. Sci.
    Comput. 23, 2001): in each step the best vectors of a space of up to 3n dims, which
    the residuals and the last step's direction add to. Where a gradient is wanted the
    matrix is decomposed as a whole, which gives the same values.

    Args:
        A (Tensor): symmetric, [..., m, m], real; with m of 3n or more.
        k: how many; by default as many as X has columns, or 1.
        B (Tensor): symmetric positive definite, of A's shape; None for the identity.
        X (Tensor): first vectors, [..., m, n]; by default random.
        n: how many vectors are kept, k or more.
        iK (Tensor): near to A's inverse, of its shape.
        niter: most steps; -1 for any number; by default 1000.
        tol: the least relative residual norm; by default the root of the dtype's
            precision.
        largest: the largest, or else the smallest; by default True.
        method: "basic" or "ortho"; both are one here, which keeps the vectors
            orthogonal.
        ortho_iparams, ortho_fparams, ortho_bparams: settings of that, not needed.

    Returns:
        (values [..., k], vectors [..., m, k]), the largest (smallest) first.

    Raises:
        ValueError: sizes that do not go together, an unknown method.
        NotImplementedError: `tracker`; a gradient with B.

    Example:
        >>> taeda.lobpcg(taeda.diag(taeda.arange(9.0)), k=2)[0]
        tensor([8.0000, 7.0000])
    """
    if tracker is not None:
        raise NotImplementedError("lobpcg: tracker is not implemented")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: expected method 'basic' or 'ortho', got {method!r}")
    m = A.shape[-1]
    given = 1 if X is None else X.shape[-1]
    k = given if k is None else k
    n = (k if X is None else given) if n is None else n
    if m < 3 * n:
        raise ValueError(
            f"lobpcg: the matrix has {m} rows, and 3 times as many as vectors ({n}) "
            "are needed; linalg.eigh takes any"
        )
    largest = largest is not False
    if taeda.is_grad_enabled() and A.requires_grad:
        return _whole(A, B, k, largest)
    steps = 1000 if niter is None else niter
    tol = tol if tol is not None else taeda.finfo(A.dtype).eps ** 0.5
    batch = A.shape[:-2]
    count = batch.numel()
    found = []
    for i in range(count):
        a, b, first, near = (
            None if t is None else t.reshape(count, *t.shape[-2:])[i]
            for t in (A, B, X, iK)
        )
        first = taeda.randn(m, n, dtype=A.dtype) if first is None else first
        with taeda.no_grad():
            found.append(_search(a, b, first, near, steps, tol, largest, k))
    values, vectors = (taeda.stack(part) for part in zip(*found, strict=True))
    return values.reshape(*batch, k), vectors.reshape(*batch, m, k)


def _whole(A, B, k: int, largest: bool):
    if B is not None:
        raise NotImplementedError("lobpcg: the gradient with B is not implemented")
    # The search reads both triangles, of which eigh would read one.
    values, vectors = taeda.linalg.eigh((A + A.mT) / 2)
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :k], vectors[..., :k]


def _orthogonal(space, B):
    """A basis of the columns' space in which B is the identity."""
    space, _ = taeda.linalg.qr(space)
    if B is None:
        return space
    gram = space.mT @ (B @ space)
    factor = taeda.linalg.cholesky((gram + gram.mT) / 2)
    return taeda.linalg.solve_triangular(factor.mT, space, upper=True, left=False)


def _search(A, B, X, iK, steps: int, tol: float, largest: bool, k: int):
    n = X.shape[-1]
    basis, direction = _orthogonal(X, B), None
    scale = A.abs().sum(-1).max()  # a bound of A's norm
    while True:
        small = basis.mT @ (A @ basis)
        values, mix = taeda.linalg.eigh((small + small.mT) / 2)
        if largest:
            values, mix = values.flip(0), mix.flip(1)
        values, mix = values[:n], mix[:, :n]
        X = basis @ mix
        residual = A @ X - (X if B is None else B @ X) * values
        size = residual.norm(dim=0) / (scale * X.norm(dim=0))
        if steps == 0 or bool((size[:k] <= tol).all()):
            return values[:k], X[:, :k]
        steps -= 1
        if basis.shape[-1] > n:
            # What this step added to the vectors that it began with.
            direction = basis[:, n:] @ mix[n:]
        added = residual if iK is None else iK @ residual
        parts = [X, added] if direction is None else [X, added, direction]
        parts = [part / part.norm(dim=0).clamp(min=1e-300) for part in parts]
        basis = _orthogonal(taeda.cat(parts, -1), B)
