"""Ready parametrizations: orthogonal, weight norm, spectral norm."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .. import functional as F
from .._native import native
from .._types import MaybeInt, MaybeStr
from ..modules.module import Module
from . import _power, parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _tensor_of(module, name):
    found = getattr(module, name, None)
    if isinstance(found, Tensor):
        return found
    raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")


def _is_orthogonal(square) -> bool:
    size, kind = square.size(-1), square.dtype
    identity = taeda.eye(size, dtype=kind, device=square.device)
    slack = 10.0 * size * taeda.finfo(kind).eps
    return taeda.allclose(square.mH @ square, identity, atol=slack)


def _nearby_orthogonal(a):
    """The Q of the QR decomposition whose R has a positive diagonal."""
    q, r = taeda.linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Any matrix -> one with orthonormal columns (or rows, where it is wide)."""

    def __init__(self, weight, orthogonal_map: str, *, use_trivialization=True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError(
                "The householder parametrization does not support complex tensors."
            )
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:  # base @ Q, so that any start is reached at X = -I
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        X = X.mT if wide else X
        make = self._reflections if self.orthogonal_map == "householder" else self._skew
        q = make(X)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _skew(self, x):
        """exp(A), or (I - A/2)^-1 (I + A/2), of the skew part A of x."""
        rows, columns = x.shape[-2:]
        square = F.pad(x.tril(), (0, rows - columns))
        skew = square - square.mH
        if self.orthogonal_map == "matrix_exp":
            q = taeda.matrix_exp(skew)
        else:
            half = skew / 2
            one = taeda.eye(rows, dtype=x.dtype, device=x.device)
            q = taeda.linalg.solve(one - half, one + half)
        return q[..., :columns]

    def _reflections(self, x):
        """The product of Householder reflections by the columns below the diagonal."""
        below = x.tril(diagonal=-1)
        scales = 2.0 / (below.square().sum(dim=-2) + 1.0)
        q = taeda.linalg.householder_product(below, scales)
        # The diagonal, +-1, holds the signs of the columns; int() cuts its gradient.
        return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a "
                f"tensor of shape {Q.shape}."
            )
        with taeda.no_grad():
            wide = Q.size(-2) < Q.size(-1)
            q = Q.mT if wide else Q
            if hasattr(self, "base"):
                self.base = self._as_base(q)
                minus = taeda.zeros_like(Q)
                minus.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
                return minus
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the "
                    "Cayley parametrizations when use_trivialization=False."
                )
            x, tau = taeda.geqrf(q)
            diagonal = x.diagonal(dim1=-2, dim2=-1)
            diagonal.sign_()
            diagonal[tau == 0.0] *= -1
            return x.mT if wide else x

    def _as_base(self, q):
        """-Q completed to a square, so that base @ map(-I) is Q."""
        n, k = q.size(-2), q.size(-1)
        if n == k:
            return q.clone() if _is_orthogonal(q) else _nearby_orthogonal(q)
        size = (*q.shape[:-2], n, n - k)
        noise = taeda.randn(*size, dtype=q.dtype, device=q.device)
        return _nearby_orthogonal(taeda.cat([q, noise], dim=-1))


class _WeightNorm(Module):
    """(g, v) -> g v / ||v||, the norm over all dimensions but `dim`."""

    def __init__(self, dim: MaybeInt = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return native("_weight_norm")(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return native("norm_except_dim")(weight, 2, self.dim), weight


class _SpectralNorm(Module):
    """w -> w / sigma(w), sigma estimated by power iteration."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12) -> None:
        super().__init__()
        rank = weight.dim()
        if not -rank <= dim < rank:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{rank}, {rank - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % rank, eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            matrix = _power.as_matrix(weight, self.dim)
            for name, start in zip(
                "uv", _power.start_vectors(matrix, eps), strict=True
            ):
                self.register_buffer(f"_{name}", start)
            _power.iterate(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix, u, v = _power.as_matrix(weight, self.dim), self._u, self._v
        if self.training:
            _power.iterate(matrix, u, v, self.n_power_iterations, self.eps)
        # Copies, since the next forward changes the buffers before this backward.
        u, v = u.clone(), v.clone()
        return weight / taeda.vdot(u, taeda.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself: only what has this norm already stays as it is."""
        return value


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: MaybeStr = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix of `module` orthogonal (unitary, if complex) while it is trained.

    Lezcano Casado, "Trivializations for Gradient-Based Optimization on Manifolds",
    2019.

    Args:
        module: changed in place.
        name: of the matrix, or batch of matrices.
        orthogonal_map: "matrix_exp" (default of square and complex ones), "cayley" or
            "householder" (default of others).
        use_trivialization: move around the present value, which makes assignment
            possible, at the price of one more matrix.

    Raises:
        ValueError: no such tensor, fewer than two dimensions, another map.

    Example:
        >>> layer = taeda.nn.utils.parametrizations.orthogonal(taeda.nn.Linear(4, 2))
        >>> w = layer.weight
        >>> taeda.allclose(w @ w.T, taeda.eye(2), atol=1e-5)
        True
    """
    weight = _tensor_of(module, name)
    if weight.dim() < 2:
        raise ValueError(
            "Expected a matrix or batch of matrices. Got a tensor of "
            f"{weight.dim()} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f"orthogonal_map has to be one of {_MAPS}. Got: {orthogonal_map}"
        )
    kept = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, kept, unsafe=True)


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Split a weight into its length and its direction: w = g v / ||v||.

    Salimans and Kingma, "Weight Normalization", 2016. `original0` is g, `original1`
    is v; checkpoints of the older `nn.utils.weight_norm` load as well.

    Args:
        module: changed in place.
        name: of the weight.
        dim: dimension with a length for each index; None has one for all.

    Example:
        >>> layer = taeda.nn.utils.parametrizations.weight_norm(taeda.nn.Linear(4, 2))
        >>> tuple(layer.parametrizations.weight.original0.shape)
        (2, 1)
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict, prefix, *rest) -> None:
        old = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: MaybeInt = None,
) -> Module:
    """Divide a weight by its largest singular value, so that the layer is 1-Lipschitz.

    Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018.

    Args:
        module: changed in place.
        name: of the weight.
        n_power_iterations: steps of the estimate at each forward in training.
        eps: keeps the norms above zero.
        dim: dimension of the outputs; default 0, or 1 of transposed convolutions.

    Raises:
        ValueError: no such tensor, no iterations.
        IndexError: `dim` out of range.

    Example:
        >>> layer = taeda.nn.utils.parametrizations.spectral_norm(taeda.nn.Linear(4, 2))
        >>> bool(taeda.linalg.matrix_norm(layer.weight, 2) < 1.1)
        True
    """
    weight = _tensor_of(module, name)
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    kept = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, kept)
