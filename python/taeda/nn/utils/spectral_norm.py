"""Spectral norm by a hook; `parametrizations.spectral_norm` is the newer form."""

from __future__ import annotations

import taeda

from .. import functional as F
from .._types import MaybeInt
from ..parameter import Parameter, is_lazy

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The forward pre-hook that divides a weight by its largest singular value."""

    # 1: the right singular vector is kept as well (version 0 had only the left one).
    _version: int = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def reshape_weight_to_matrix(self, weight):
        """The weight with the outputs as rows."""
        return weight.movedim(self.dim, 0).flatten(1)

    def compute_weight(self, module, do_power_iteration: bool):
        """weight / sigma; improves the singular vectors first on demand."""
        parts = (getattr(module, self.name + s) for s in ("_orig", "_u", "_v"))
        weight, u, v = parts
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            options = {"dim": 0, "eps": self.eps}
            with taeda.no_grad():
                for _ in range(self.n_power_iterations):
                    v = F.normalize(taeda.mv(matrix.t(), u), **options, out=v)
                    u = F.normalize(taeda.mv(matrix, v), **options, out=u)
                # Copies, as a later forward changes the buffers before backward.
                u, v = u.clone(), v.clone()
        return weight / taeda.dot(u, taeda.mv(matrix, v))

    def remove(self, module) -> None:
        """Make the normalized weight an ordinary parameter."""
        with taeda.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs) -> None:
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    def _right_vector(self, matrix, u, sigma):
        """v such that u^T W v is sigma, for checkpoints without it."""
        columns = matrix.t()
        v = (columns.mm(matrix).pinverse() @ columns @ u.unsqueeze(1)).squeeze(1)
        return v.mul_(sigma / taeda.dot(u, taeda.mv(matrix, v)))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps) -> SpectralNorm:
        """Keep the weight as `name_orig` and put the hook on `module`.

        Raises:
            RuntimeError: there is one already.
            ValueError: the weight is None or has no shape yet.
        """
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    "Cannot register two spectral_norm hooks on the same parameter "
                    f"{name}"
                )
        made, weight = (
            SpectralNorm(name, n_power_iterations, dim, eps),
            module._parameters[name],
        )
        if weight is None or is_lazy(weight):
            raise ValueError(
                f"`SpectralNorm` cannot be applied as parameter `{name}` is None or "
                "has no shape yet (run the module's forward once first)"
            )
        with taeda.no_grad():
            matrix = made.reshape_weight_to_matrix(weight)
            vectors = [
                F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps)
                for n in matrix.size()
            ]
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        for suffix, vector in zip(("_u", "_v"), vectors, strict=True):
            module.register_buffer(name + suffix, vector)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(_NoteVersion(made))
        module._register_load_state_dict_pre_hook(_LoadOld(made))
        return made


class _NoteVersion:
    """Writes the version into the metadata of a state dictionary."""

    def __init__(self, fn) -> None:
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class _LoadOld:
    """Brings the state of version 0 up to date."""

    def __init__(self, fn) -> None:
        self.fn = fn

    def __call__(
        self, state_dict, prefix, local_metadata, strict, missing_keys, *rest
    ) -> None:
        fn, key = self.fn, prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version")
        if version is not None and version >= 1:
            return
        now = all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v"))
        if version is None and now and key not in state_dict:
            return
        old = [key + suffix for suffix in ("_orig", "", "_u")]
        missing = [name for name in old if name not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with taeda.no_grad():
            original, weight = state_dict[key + "_orig"], state_dict.pop(key)
            sigma = (original / weight).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            vector = fn._right_vector(matrix, state_dict[key + "_u"], sigma)
            state_dict[key + "_v"] = vector


def spectral_norm(
    module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: MaybeInt = None,
):
    """Divide a weight by its largest singular value at every forward.

    Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018.

    Args:
        module: changed in place.
        name: of the weight.
        n_power_iterations: steps of the estimate at each forward in training.
        eps: keeps the norms above zero.
        dim: dimension of the outputs; default 0, or 1 of transposed convolutions.

    Example:
        >>> layer = taeda.nn.utils.spectral_norm(taeda.nn.Linear(4, 2))
        >>> tuple(layer.weight_u.shape)
        (2,)
    """
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name: str = "weight"):
    """Undo `spectral_norm`, keeping the normalized weight.

    Raises:
        ValueError: there is none of that name.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for table, kind in (
        (module._state_dict_hooks, _NoteVersion),
        (module._load_state_dict_pre_hooks, _LoadOld),
    ):
        for key, hook in list(table.items()):
            inner = getattr(hook, "hook", hook)
            if isinstance(inner, kind) and inner.fn.name == name:
                del table[key]
    return module
