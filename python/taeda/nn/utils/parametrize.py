"""Parameters computed from others whenever they are read."""

from __future__ import annotations

import copy

import taeda
from taeda import Tensor

from .._types import MaybeStr
from ..modules._state import _future
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_depth = 0
_cache: dict = {}


class cached:
    """Within this context each parametrized tensor is computed once.

    Example:
        >>> with taeda.nn.utils.parametrize.cached():
        ...     pass
    """

    def __enter__(self) -> None:
        global _depth
        _depth += 1

    def __exit__(self, *error) -> None:
        global _depth
        _depth -= 1
        if not _depth:
            _cache.clear()


def _register(module, name, tensor) -> None:
    kind = "parameter" if isinstance(tensor, Parameter) else "buffer"
    getattr(module, "register_" + kind)(name, tensor)


def _put(place, tensor) -> None:
    """Make `place` hold the values of `tensor`, whatever the shape."""
    if not _future("get_swap_module_params_on_conversion"):
        place.set_(tensor)
        return
    if isinstance(place, Parameter) > isinstance(tensor, Parameter):
        tensor = Parameter(tensor, requires_grad=place.requires_grad)
    taeda.utils.swap_tensors(place, tensor)


def _check_kept(new, old, what: str) -> None:
    """Refuse a result that is no tensor of the dtype and shape of `old`."""
    if not isinstance(new, Tensor):
        raise ValueError(f"{what} must return a tensor. Got {type(new).__name__}.")
    for name in ("dtype", "shape"):
        if getattr(new, name) != getattr(old, name):
            fault = f"{what} may not change the {name} of the tensor"
            if "right_inverse" in what:
                fault = (
                    f"The tensor of {what} must have the same {name} as the module's"
                )
            raise ValueError(
                f"{fault}, unless the `unsafe` flag is enabled: {getattr(old, name)} "
                f"became {getattr(new, name)}"
            )


def _inverted(modules, value, skip_missing):
    """`value` through the right inverses of all modules, last one first."""
    for module in reversed(list(modules)):
        if hasattr(module, "right_inverse"):
            try:
                value = module.right_inverse(value)
            except NotImplementedError:
                if not skip_missing:
                    raise
        elif not skip_missing:
            raise RuntimeError(
                f"parametrization {type(module).__name__} does not implement "
                "right_inverse."
            )
    return value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and the tensors it is computed from.

    Args:
        modules: parametrizations, applied in this order.
        original (Tensor): the tensor so far; becomes `original` (or, where the right
            inverse gives several tensors, `original0`, `original1`, ...).
        unsafe: allow results of another dtype or shape.

    Raises:
        ValueError: no modules, or results that do not fit.

    Example:
        >>> layer = taeda.nn.Linear(2, 2)
        >>> p = taeda.nn.utils.parametrize
        >>> _ = p.register_parametrization(layer, "weight", taeda.nn.Tanh())
        >>> layer.parametrizations.weight
        ParametrizationList(
          (0): Tanh()
        )
    """

    def __init__(self, modules, original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        if not len(self):
            raise ValueError("ParametrizationList requires one or more modules.")
        self.unsafe = unsafe
        before = original.detach()
        with taeda.no_grad():
            new = _inverted(self, original, True)
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not isinstance(new, (list, tuple)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                f"tuple...). Got {type(new).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        # An empty tensor of the first shape, as set_ below changes `original` itself.
        before = taeda.empty(before.shape, dtype=before.dtype, device="meta")
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_all(original, new)
        if not unsafe:
            _check_kept(self(), before, "Registering a parametrization")

    def _keep_one(self, original, new) -> None:
        for name in ("dtype", "device"):
            if getattr(original, name) != getattr(new, name):
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the "
                    f"{name}: {getattr(original, name)} became {getattr(new, name)}"
                )
        with taeda.no_grad():
            _put(original, new)
        _register(self, "original", original)

    def _keep_all(self, original, new) -> None:
        for i, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors. "
                    f"Got element {i} of the sequence with type "
                    f"{type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", tensor)

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors so that the parametrization gives `value`.

        Raises:
            RuntimeError: a parametrization has no right inverse.
            ValueError: a right inverse gives another dtype or number of tensors.
        """
        with taeda.no_grad():
            value = _inverted(self, value, False)
            places = [self.original] if self.is_tensor else self._originals()
            values = [value] if self.is_tensor else value
            if not isinstance(values, (list, tuple)) or len(values) != len(places):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got {type(value).__name__}"
                )
            for place, new in zip(places, values, strict=True):
                if not isinstance(new, Tensor) or new.dtype != place.dtype:
                    raise ValueError(
                        "The tensor returned by `right_inverse` has dtype "
                        f"{getattr(new, 'dtype', type(new).__name__)} while `original` "
                        f"has dtype {place.dtype}"
                    )
                _put(place, new)

    def _originals(self):
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Tensor:
        first, *rest = self
        x = first(self.original) if self.is_tensor else first(*self._originals())
        for module in rest:
            x = module(x)
        return x


def _deepcopied(module, memo):
    """copy.deepcopy without asking __getstate__, which refuses."""
    cls = type(module)
    twin = memo[id(module)] = cls.__new__(cls)
    twin.__dict__.update(copy.deepcopy(module.__dict__, memo))
    return twin


def _refuse_state(module):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict()"
    )


def _own_class(module):
    """Give `module` a class of its own, which may carry properties.

    Returns:
        ModuleDict: where its parametrizations are kept.
    """
    cls = type(module)
    methods = {"__getstate__": _refuse_state}
    if not hasattr(cls, "__deepcopy__"):
        methods["__deepcopy__"] = _deepcopied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), methods)
    module.parametrizations = ModuleDict()
    return module.parametrizations


def _computed(name) -> property:
    """The property that computes `name`, or inverts an assignment to it."""

    def read(module):
        if not _depth:
            return module.parametrizations[name]()
        key = (id(module), name)
        if key not in _cache:
            _cache[key] = module.parametrizations[name]()
        return _cache[key]

    def write(module, value) -> None:
        module.parametrizations[name].right_inverse(value)

    return property(read, write)


def _begin(module, name, parametrization, unsafe) -> None:
    """Make an ordinary tensor of `module` a computed one."""
    if not any(name in table for table in (module._parameters, module._buffers)):
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized "
            f"element with name '{name}'"
        )
    kept = ParametrizationList([parametrization], getattr(module, name), unsafe)
    delattr(module, name)
    known = module.parametrizations if is_parametrized(module) else _own_class(module)
    setattr(type(module), name, _computed(name))
    known[name] = kept


def _continue(module, name, parametrization, unsafe) -> None:
    """Apply one more parametrization to a computed tensor."""
    if not unsafe:
        before = getattr(module, name)
        after = parametrization(before)
        _check_kept(after, before, "A parametrization")
        invert = getattr(parametrization, "right_inverse", None)
        try:
            back = before if invert is None else invert(after)
        except NotImplementedError:
            back = before
        _check_kept(back, before, "parametrization.right_inverse")
    kept = module.parametrizations[name]
    kept.append(parametrization)
    kept.unsafe |= unsafe


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of `module` from another tensor when it is read.

    Reading `module.weight` then gives `parametrization(original)`; assigning to it
    goes through `parametrization.right_inverse`, where there is one. The module gets
    a class of its own, `Parametrized...`. A second parametrization of a tensor is
    applied to the result of the first.

    Args:
        module: changed in place.
        tensor_name: name of the parameter or buffer.
        parametrization: a module.
        unsafe: allow results of another dtype or shape.

    Raises:
        ValueError: there is no such tensor, or the result does not fit.

    Example:
        >>> class Symmetric(taeda.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = taeda.nn.Linear(3, 3)
        >>> p = taeda.nn.utils.parametrize
        >>> _ = p.register_parametrization(layer, "weight", Symmetric())
        >>> bool((layer.weight == layer.weight.T).all())
        True
    """
    parametrization.train(module.training)
    add = _continue if is_parametrized(module, tensor_name) else _begin
    add(module, tensor_name, parametrization, unsafe)
    return module


def is_parametrized(module: Module, tensor_name: MaybeStr = None) -> bool:
    """Whether a module, or one tensor of it, is parametrized.

    Example:
        >>> taeda.nn.utils.parametrize.is_parametrized(taeda.nn.Linear(1, 1))
        False
    """
    known = getattr(module, "parametrizations", None)
    if not isinstance(known, ModuleDict):
        return False
    return len(known) > 0 if tensor_name is None else tensor_name in known


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized tensor an ordinary one again.

    Args:
        module: changed in place.
        tensor_name: name of the tensor.
        leave_parametrized: keep the computed values rather than the original ones.

    Raises:
        ValueError: it is not parametrized, or it has several originals and
            `leave_parametrized` is False.

    Example:
        >>> layer, p = taeda.nn.Linear(1, 1), taeda.nn.utils.parametrize
        >>> _ = p.register_parametrization(layer, "weight", taeda.nn.Tanh())
        >>> p.remove_parametrizations(layer, "weight")
        Linear(in_features=1, out_features=1, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"Module {module} does not have a parametrization on {tensor_name}"
        )
    kept = module.parametrizations[tensor_name]
    if kept.is_tensor:
        original = kept.original
        if leave_parametrized:
            with taeda.no_grad():
                _put(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module without its parametrizations.

    Example:
        >>> f = taeda.nn.utils.parametrize.type_before_parametrizations
        >>> f(taeda.nn.ReLU()).__name__
        'ReLU'
    """
    cls = type(module)
    return cls.__bases__[0] if is_parametrized(module) else cls


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: MaybeStr = None
) -> Module:
    """Give `to_module` the parametrizations of `from_module` and their tensors.

    Args:
        from_module, to_module: modules; the first is not changed.
        tensor_name: of one tensor only.
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key in list(source._parameters) + list(source._buffers):
            setattr(target, key, getattr(source, key))
    return to_module
