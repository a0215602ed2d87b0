"""Spectral norm by a hook; `parametrizations.spectral_norm` is the newer form."""

from __future__ import annotations

import taeda

from .._types import MaybeInt
from . import _power
from ._weight_hook import WeightHook

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm(WeightHook):
    """The forward pre-hook that divides a weight by its largest singular value."""

    # 1: the right singular vector is kept as well (version 0 had only the left one).
    _version: int = 1
    _function = "spectral_norm"
    _suffixes = ("_orig", "_u", "_v")

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
        return _power.as_matrix(weight, self.dim)

    def compute_weight(self, module, do_power_iteration: bool):
        """weight / sigma; improves the singular vectors first on demand."""
        weight, u, v = self._parts(module)
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            # The right vector comes first here: the roles of the transpose.
            _power.iterate(matrix.mT, v, u, self.n_power_iterations, self.eps)
            # Copies, as a later forward changes the buffers before backward.
            u, v = u.clone(), v.clone()
        return weight / taeda.dot(u, taeda.mv(matrix, v))

    def remove(self, module) -> None:
        """Make the normalized weight an ordinary parameter."""
        with taeda.no_grad():
            self._restore(module, self.compute_weight(module, False))

    def __call__(self, module, inputs) -> None:
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps) -> SpectralNorm:
        """Keep the weight as `name_orig` and put the hook on `module`.

        Raises:
            RuntimeError: there is one already.
            ValueError: the weight is None or has no shape yet.
        """
        SpectralNorm._refuse_second(module, name)
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = hook._sized(module._parameters[name])
        if weight is None:
            raise ValueError(
                f"`SpectralNorm` cannot be applied as parameter `{name}` is None"
            )
        with taeda.no_grad():
            start = _power.start_vectors(hook.reshape_weight_to_matrix(weight), eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        for suffix, vector in zip(("_u", "_v"), start, strict=True):
            module.register_buffer(name + suffix, vector)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(hook._note_version)
        module._register_load_state_dict_pre_hook(hook._renew)
        return hook

    def _note_version(self, module, state_dict, prefix, local_metadata) -> None:
        """Write the version into the metadata of a state dictionary."""
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self._version

    def _renew(
        self, state_dict, prefix, local_metadata, strict, missing_keys, *rest
    ) -> None:
        """Give the state of version 0 its right singular vector."""
        versions = local_metadata.get("spectral_norm", {})
        version = versions.get(self.name + ".version")
        if version is not None and version >= 1:
            return
        key = prefix + self.name
        now = all(key + suffix in state_dict for suffix in self._suffixes)
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
            matrix = self.reshape_weight_to_matrix(original)
            vector = self._right_vector(matrix, state_dict[key + "_u"], sigma)
            state_dict[key + "_v"] = vector

    def _right_vector(self, matrix, u, sigma):
        """v such that u^T W v is sigma, for checkpoints without it."""
        columns = matrix.t()
        v = (columns.mm(matrix).pinverse() @ columns @ u.unsqueeze(1)).squeeze(1)
        return v.mul_(sigma / taeda.dot(u, taeda.mv(matrix, v)))


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
    return SpectralNorm._undo(module, name)
