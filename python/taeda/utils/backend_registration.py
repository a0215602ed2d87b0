"""The name of the device that a program adds, and methods of classes for it.

`docs/guides/a_device_of_your_own.md` has the whole way.
"""

from __future__ import annotations

import taeda

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]


def rename_privateuse1_backend(backend_name: str) -> None:
    """Names the device of a program, in place of "privateuseone".

    From then on "NAME" and "NAME:1" are devices. A module of that name, registered by
    `taeda._register_device_module`, is where functions of the package look for what
    they need of a device: `is_available`, `manual_seed_all`, `get_rng_state`,
    `set_rng_state`, `get_amp_supported_dtype`, `_is_in_bad_fork`, as they need it.

    Args:
        backend_name: letters, digits and "_", and no other device's.

    Raises:
        RuntimeError: it has another name already, or this one cannot be one.

    Example:
        >>> taeda.utils.rename_privateuse1_backend(3)
        Traceback (most recent call last):
        TypeError: rename_privateuse1_backend: expected a str, got int
    """
    if not isinstance(backend_name, str):
        raise TypeError(
            "rename_privateuse1_backend: expected a str, got "
            f"{type(backend_name).__name__}"
        )
    from taeda import _cuda

    _cuda.rename_program_device(backend_name)


def _register_device_module(device_type: str, module) -> None:
    """Makes a module the one of a kind of device: `taeda.NAME`.

    Args:
        device_type: a device's name, as "cuda" or that of a program's device.
        module: a module, or a class or an object with the same functions.

    Raises:
        RuntimeError: there is no such device, or it has a module.
    """
    import sys

    name = taeda.device(device_type).type
    if hasattr(taeda, name):
        raise RuntimeError(
            f"The runtime module of '{name}' has already been registered with "
            f"'{getattr(taeda, name)}'"
        )
    setattr(taeda, name, module)
    sys.modules[f"{taeda.__name__}.{name}"] = module


def _name() -> str:
    return taeda._C._get_privateuse1_backend_name()


def _check_free(cls: type, name: str) -> None:
    if hasattr(cls, name):
        raise RuntimeError(
            f"The custom device module of {cls.__name__} has already been registered "
            f"with {name}"
        )


def _add(cls: type, attributes: dict) -> None:
    for name in attributes:
        _check_free(cls, name)
    for name, value in attributes.items():
        inner = getattr(value, "fget", value)
        inner.__name__, inner.__qualname__ = name, f"{cls.__name__}.{name}"
        setattr(cls, name, value)


def _goal(device) -> str:
    """The device that a method's argument means: None is the current one."""
    name = _name()
    if device is None:
        return name
    if isinstance(device, int):
        return f"{name}:{device}"
    wanted = taeda.device(device)
    if wanted.type != name:
        raise RuntimeError(f"Invalid device, must be {name} device")
    return str(wanted)


def _where(kind: str) -> property:
    def lies_there(self) -> bool:
        """Whether the memory lies on the program's device."""
        return self.device.type == kind

    return property(lies_there)


def _tensor_methods(name: str) -> dict:
    def move(self, device=None, non_blocking: bool = False, **kwargs):
        """The tensor on the program's device; itself where it is there already."""
        return self.to(_goal(device), non_blocking=non_blocking, **kwargs)

    return {f"is_{name}": _where(name), name: move}


def _module_methods(name: str) -> dict:
    def move(self, device=None):
        """Move all tensors to the program's device (default: the current one)."""
        return self._apply(lambda t: t.to(_goal(device)))

    return {name: move}


def _packed_methods(name: str) -> dict:
    def lies_there(self) -> bool:
        """Whether the data lies on the program's device."""
        return self.data.device.type == name

    def move(self, *args, **kwargs):
        """Move to the program's device."""
        return self._on(name, args, kwargs)

    return {f"is_{name}": property(lies_there), name: move}


def _storage_methods(name: str, unsupported: tuple, typed: bool) -> dict:
    def move(self, device=None, non_blocking: bool = False, **kwargs):
        """A copy on the program's device; itself where it is there already."""
        if typed and self.dtype in unsupported:
            raise RuntimeError(
                f"Cannot store {self.dtype} as a storage on a {name} device"
            )
        goal = taeda.device(_goal(device))
        inner = self._untyped_storage if typed else self
        same = goal.index is None and inner.device.type == goal.type
        moved = (
            inner
            if same
            else taeda._storage.to(inner, device=goal, non_blocking=non_blocking)
        )
        if not typed:
            return moved
        return taeda.storage.TypedStorage(wrap_storage=moved, dtype=self.dtype)

    return {f"is_{name}": _where(name), name: move}


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype=None,
) -> None:
    """Gives classes `is_NAME` and the method `NAME()` for a program's device.

    Args:
        for_tensor: `Tensor.is_NAME`, `Tensor.NAME(device=None, non_blocking=False)`.
        for_module: `nn.Module.NAME(device=None)`.
        for_packed_sequence: as tensors, for `PackedSequence`.
        for_storage: as tensors, for `UntypedStorage` and `TypedStorage`.
        unsupported_dtype: a list of dtypes that storages of the device cannot have.

    Raises:
        RuntimeError: a class has such a member already.

    Example:
        >>> make = taeda.utils.generate_methods_for_privateuse1_backend
        >>> make(False, False, False, False)
    """
    name = _name()
    if for_tensor:
        _add(taeda.Tensor, _tensor_methods(name))
    if for_module:
        _add(taeda.nn.Module, _module_methods(name))
    if for_packed_sequence:
        _add(taeda.nn.utils.rnn.PackedSequence, _packed_methods(name))
    if for_storage:
        unsupported = tuple(unsupported_dtype or ())
        _add(taeda.UntypedStorage, _storage_methods(name, unsupported, False))
        typed = taeda.storage.TypedStorage
        _add(typed, _storage_methods(name, unsupported, True))


def _get_custom_mod_func(func_name: str):
    """A function of the module that the program registered for its device.

    Raises:
        RuntimeError: there is no module, or it has no such function.
    """
    name = _name()
    module = getattr(taeda, name, None)
    function = getattr(module, func_name, None)
    if function is None:
        raise RuntimeError(
            f"Try to call taeda.{name}.{func_name}. The backend must register a "
            "custom backend module with `taeda._register_device_module("
            f"'{name}', BackendModule)`. And BackendModule needs to have the following "
            f"API's:\n `{func_name}(*args, **kwargs)`. \n"
        )
    return function
