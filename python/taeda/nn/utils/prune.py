"""Pruning: masks that keep parts of parameters at zero."""

from __future__ import annotations

from numbers import Integral, Real

import taeda

from .._types import MaybeTensor
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def _same_shape(scores, t) -> None:
    if scores.shape != t.shape:
        raise AssertionError(
            "importance_scores should have the same shape as the pruned tensor, got "
            f"{scores.shape} vs {t.shape}"
        )


# Pruning methods of programs call these by name.


def _validate_pruning_amount_init(amount) -> None:
    """Refuse what is neither a number of elements nor a part of them."""
    if not isinstance(amount, Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, Integral) and amount > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a "
            "non-negative integer"
        )


def _validate_pruning_amount(amount, tensor_size: int) -> None:
    """Refuse a number of elements that are not there."""
    if isinstance(amount, Integral) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _compute_nparams_toprune(amount, tensor_size: int) -> int:
    """How many of `tensor_size` elements an amount means."""
    whole = isinstance(amount, Integral)
    return amount if whole else round(amount * tensor_size)


def _validate_structured_pruning(t) -> None:
    """Refuse tensors without channels."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found "
            f"tensor of shape {t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t, dim: int) -> None:
    """Refuse a dimension that is not there."""
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t, n, dim: int):
    """The norm of each channel along `dim`."""
    others = [d for d in range(t.dim()) if d != dim % t.dim()]
    return taeda.norm(t, p=n, dim=others)


def _hooks_of(module, name):
    """(key, hook) of the pruning hooks on one tensor."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            yield key, hook


class BasePruningMethod:
    """A way to choose a mask; on a module it is the hook that applies the mask.

    A subclass defines `compute_mask` and PRUNING_TYPE: "unstructured" (elements),
    "structured" (channels along `dim`) or "global" (the whole tensor).
    """

    _tensor_name: str | None = None

    def __new__(cls, *args, **kwargs):
        if cls.compute_mask is BasePruningMethod.compute_mask:
            raise TypeError(
                f"Can't instantiate abstract class {cls.__name__} with abstract method "
                "compute_mask"
            )
        return super().__new__(cls)

    def __call__(self, module, inputs) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t, default_mask):
        """A mask of ones and zeros for `t`, zero wherever `default_mask` is.

        Args:
            t (Tensor): what decides (the parameter, or importance scores).
            default_mask (Tensor): the mask so far.
        """
        raise NotImplementedError("compute_mask")

    def apply_mask(self, module):
        """The parameter times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        names = (self._tensor_name + "_orig", self._tensor_name + "_mask")
        original, mask = (getattr(module, name) for name in names)
        return original * mask.to(original.dtype)

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune a parameter now and at every forward.

        The parameter becomes `name_orig`, the mask the buffer `name_mask`, and `name`
        their product. Pruning again adds to the mask.

        Args:
            module: changed in place.
            name: of the parameter.
            importance_scores (Tensor): decides instead of the parameter's values.
            args, kwargs: of the method's constructor.

        Returns:
            BasePruningMethod: the hook.
        """
        method, old = cls._stacked(module, name, args, kwargs)
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        _same_shape(scores, original)
        if old is None:
            before = taeda.ones_like(original)
        else:
            before = getattr(module, name + "_mask").detach().clone()
        # Whatever may fail comes before the first change of the module.
        mask = method.compute_mask(scores, default_mask=before)
        if old is None:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        else:
            del module._forward_pre_hooks[old]
        module.register_buffer(name + "_mask", mask)
        method(module, ())
        module.register_forward_pre_hook(method)
        return method

    @classmethod
    def _stacked(cls, module, name, args, kwargs):
        """A new method, on top of the one that the tensor has; the key of that one."""
        found = list(_hooks_of(module, name))
        if len(found) > 1:
            raise AssertionError(
                "Avoid adding multiple pruning hooks to the same tensor "
                f"{name} of module {module}. Use a PruningContainer."
            )
        method = cls(*args, **kwargs)
        method._tensor_name = name
        for key, old in found:
            earlier = old if isinstance(old, PruningContainer) else (old,)
            stack = PruningContainer()
            stack._tensor_name = name
            for part in (*earlier, method):
                stack.add_pruning_method(part)
            return stack, key
        return method, None

    def prune(self, t, default_mask: MaybeTensor = None, importance_scores=None):
        """A pruned copy of a tensor, on no module.

        Args:
            t (Tensor): what to prune.
            default_mask (Tensor): mask to start from; default ones.
            importance_scores (Tensor): decides instead of the values of `t`.
        """
        if importance_scores is None:
            importance_scores = t
        _same_shape(importance_scores, t)
        if default_mask is None:
            default_mask = taeda.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module) -> None:
        """Make the pruned tensor an ordinary parameter again."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before removal")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one tensor; each sees what the ones before left."""

    def __init__(self, *args) -> None:
        self._pruning_methods: tuple = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method) -> None:
        """Put a method on top.

        Raises:
            TypeError: it is no pruning method.
            ValueError: it is for another tensor.
        """
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The mask of the last method on what is left."""
        method = self._pruning_methods[-1]
        find = _LEFT.get(method.PRUNING_TYPE)
        if find is None:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        left = find(method, default_mask)
        chosen = method.compute_mask(t[left], default_mask=default_mask[left])
        mask = default_mask.to(t.dtype, copy=True)
        mask[left] = chosen.to(t.dtype)
        return mask


def _channels_left(method, mask):
    """Index of the channels along `method.dim` that are not wholly pruned."""
    rank = mask.dim()
    if not -rank <= method.dim < rank:
        raise IndexError(f"Index is out of bounds for a tensor of rank {rank}")
    by_channel = mask.movedim(method.dim, 0).reshape(mask.size(method.dim), -1)
    before = (slice(None),) * (method.dim % rank)
    return (*before, by_channel.sum(1) != 0)


# What a method on top of others still chooses from, as an index, by its PRUNING_TYPE.
_LEFT = {
    "unstructured": lambda method, mask: mask == 1,
    "structured": _channels_left,
    "global": lambda method, mask: ...,
}


class Identity(BasePruningMethod):
    """Prunes nothing, but makes mask and original."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """The mask as it is."""
        return default_mask

    @classmethod
    def apply(cls, module, name):
        """See `BasePruningMethod.apply`."""
        return super().apply(module, name)


class _Amount(BasePruningMethod):
    """Methods that prune a number (int) or a part (float in [0, 1])."""

    def __init__(self, amount) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        """How many of `size` to prune."""
        _validate_pruning_amount(self.amount, size)
        return _compute_nparams_toprune(self.amount, size)


class _Elements(_Amount):
    """Methods that prune the elements with the least score."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """The mask without the chosen elements."""
        count = self._count(t.numel())
        mask = default_mask.clone(memory_format=taeda.contiguous_format)
        if count:
            mask.view(-1)[self._choose(t, count)] = 0
        return mask


class RandomUnstructured(_Elements):
    """Prunes elements at random.

    Args:
        amount: how many (int), or which part (float).

    Example:
        >>> p = taeda.nn.utils.prune.RandomUnstructured(1).prune(taeda.ones(4))
        >>> p.sum()
        tensor(3.)
    """

    def _choose(self, t, count):
        return taeda.topk(taeda.rand_like(t).view(-1), k=count).indices

    @classmethod
    def apply(cls, module, name, amount):
        """See `BasePruningMethod.apply`."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Elements):
    """Prunes the elements of least magnitude.

    Args:
        amount: how many (int), or which part (float).

    Example:
        >>> t = taeda.tensor([3.0, -1.0])
        >>> taeda.nn.utils.prune.L1Unstructured(0.5).prune(t)
        tensor([3., -0.])
    """

    def _choose(self, t, count):
        return taeda.topk(t.abs().view(-1), k=count, largest=False).indices

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        """See `BasePruningMethod.apply`."""
        scores = importance_scores
        return super().apply(module, name, amount=amount, importance_scores=scores)


class _Channels(_Amount):
    """Methods that prune whole channels along `dim`."""

    PRUNING_TYPE = "structured"

    def compute_mask(self, t, default_mask):
        """The mask without the chosen channels.

        Raises:
            ValueError: the tensor has one dimension.
            IndexError: `dim` out of range.
        """
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = self._count(size)
        if count == 0:
            return default_mask
        mask = taeda.zeros_like(t)
        kept = self._kept(t, size, count)
        mask[(slice(None),) * (self.dim % t.dim()) + (kept,)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Channels):
    """Prunes channels at random.

    Args:
        amount: how many (int), or which part (float).
        dim: dimension of the channels.

    Example:
        >>> method = taeda.nn.utils.prune.RandomStructured(1, dim=0)
        >>> method.prune(taeda.ones(3, 2)).sum()
        tensor(4.)
    """

    def __init__(self, amount, dim=-1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _kept(self, t, size, count):
        drawn = taeda.rand(size)
        return drawn > taeda.kthvalue(drawn, k=count).values

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        """See `BasePruningMethod.apply`."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Channels):
    """Prunes the channels of least norm.

    Args:
        amount: how many (int), or which part (float).
        n: exponent of the norm.
        dim: dimension of the channels.

    Example:
        >>> t = taeda.tensor([[3.0, 3.0], [1.0, 1.0]])
        >>> taeda.nn.utils.prune.LnStructured(1, n=2, dim=0).prune(t)
        tensor([[3., 3.],
                [0., 0.]])
    """

    def __init__(self, amount, n, dim=-1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def _kept(self, t, size, count):
        norms = _compute_norm(t, self.n, self.dim)
        return taeda.topk(norms, k=size - count, largest=True).indices

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        """See `BasePruningMethod.apply`."""
        options = {"amount": amount, "n": n, "dim": dim}
        scores = importance_scores
        return super().apply(module, name, importance_scores=scores, **options)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Args:
        mask (Tensor): ones and zeros.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask) -> None:
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """Both masks together."""
        own, wanted = self.mask, default_mask.shape
        if own.shape != wanted:
            raise AssertionError(f"mask has shape {own.shape}, the tensor {wanted}")
        return default_mask * own.to(default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        """See `BasePruningMethod.apply`."""
        return super().apply(module, name, mask=mask)


def _pruned(module, method, *args):
    method.apply(module, *args)
    return module


def identity(module, name: str):
    """Apply `Identity`; returns the module."""
    return _pruned(module, Identity, name)


def random_unstructured(module, name: str, amount):
    """Apply `RandomUnstructured`; returns the module.

    Example:
        >>> prune = taeda.nn.utils.prune
        >>> layer = prune.random_unstructured(taeda.nn.Linear(2, 2), "weight", 1)
        >>> layer.weight_mask.sum()
        tensor(3.)
    """
    return _pruned(module, RandomUnstructured, name, amount)


def l1_unstructured(module, name: str, amount, importance_scores=None):
    """Apply `L1Unstructured`; returns the module."""
    return _pruned(module, L1Unstructured, name, amount, importance_scores)


def random_structured(module, name: str, amount, dim: int):
    """Apply `RandomStructured`; returns the module."""
    return _pruned(module, RandomStructured, name, amount, dim)


def ln_structured(module, name: str, amount, n, dim: int, importance_scores=None):
    """Apply `LnStructured`; returns the module."""
    return _pruned(module, LnStructured, name, amount, n, dim, importance_scores)


def custom_from_mask(module, name: str, mask):
    """Apply `CustomFromMask`; returns the module."""
    return _pruned(module, CustomFromMask, name, mask)


def global_unstructured(
    parameters, pruning_method, importance_scores=None, **kwargs
) -> None:
    """Prune several parameters as if they were one vector.

    Args:
        parameters: iterable of (module, name).
        pruning_method: an unstructured method's class.
        importance_scores: (module, name) -> scores that decide.
        kwargs: of the method's constructor.

    Raises:
        TypeError: arguments of the wrong kind, or a structured method.

    Example:
        >>> layer, prune = taeda.nn.Linear(2, 2), taeda.nn.utils.prune
        >>> both = [(layer, "weight"), (layer, "bias")]
        >>> prune.global_unstructured(both, prune.L1Unstructured, amount=3)
        >>> layer.weight_mask.sum() + layer.bias_mask.sum()
        tensor(3.)
    """
    if not hasattr(type(parameters), "__iter__"):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = list(parameters)
    tensors = [getattr(module, name) for module, name in parameters]
    pairs = list(zip(parameters, tensors, strict=True))
    relevant = parameters_to_vector([scores.get(key, t) for key, t in pairs])
    masks = [
        getattr(module, f"{name}_mask", taeda.ones_like(t))
        for (module, name), t in pairs
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    stack = PruningContainer()
    stack._tensor_name = method._tensor_name = "temp"
    stack.add_pruning_method(method)
    mask = stack.compute_mask(relevant, parameters_to_vector(masks))
    parts = mask.split([t.numel() for t in tensors])
    for ((module, name), t), part in zip(pairs, parts, strict=True):
        custom_from_mask(module, name, mask=part.view_as(t))


def remove(module, name: str):
    """Make a pruned parameter an ordinary one, with its zeros; returns the module.

    Raises:
        ValueError: it is not pruned.
    """
    for key, hook in _hooks_of(module, name):
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be "
        "removed"
    )


def is_pruned(module) -> bool:
    """Whether any parameter of the module, or below it, is pruned.

    Example:
        >>> taeda.nn.utils.prune.is_pruned(taeda.nn.Linear(1, 1))
        False
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for part in module.modules()
        for hook in part.__dict__.get("_forward_pre_hooks", {}).values()
    )
