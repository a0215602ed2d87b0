"""Dispatch keys by PyTorch's names, for programs that write sets of them.

The dispatcher's own keys are fewer (`c10/core/dispatch_key.h`). What a set can do here
is to be compared and to switch autocast off for a block.
"""

from __future__ import annotations

import enum

from taeda._autocast_kernels import DEVICES

__all__ = ["DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard"]

_BACKENDS = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA Meta PrivateUse1"
_OTHERS = """Undefined BackendSelect Python Fake Functionalize Conjugate Negative
ZeroTensor ADInplaceOrView AutogradOther Autograd Tracer FuncTorchBatched
FuncTorchVmapMode BatchedNestedTensor Batched VmapMode FuncTorchGradWrapper DeferredInit
PythonTLSSnapshot FuncTorchDynamicLayerFrontMode FuncTorchDynamicLayerBackMode
TESTING_ONLY_GenericWrapper TESTING_ONLY_GenericMode PreDispatch PythonDispatcher
CompositeImplicitAutograd CompositeImplicitAutogradNestedTensor
CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional"""
_OF_BACKENDS = ("", "Autograd", "Quantized", "Sparse", "SparseCsr", "NestedTensor")

DispatchKey = enum.Enum(
    "DispatchKey",
    [
        *_OTHERS.split(),
        *(kind + backend for kind in _OF_BACKENDS for backend in _BACKENDS.split()),
        *DEVICES,
    ],
    module="taeda._C",
)
DispatchKey.__doc__ = "Where a kernel of an operator may stand."


class DispatchKeySet:
    """A set of dispatch keys."""

    def __init__(self, key: DispatchKey) -> None:
        self._keys = frozenset([key])

    @classmethod
    def _of(cls, keys) -> DispatchKeySet:
        made = cls.__new__(cls)
        made._keys = frozenset(keys)
        return made

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self._of(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self._of(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self._of(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(k.name for k in self._keys))})"

    def has(self, key: DispatchKey) -> bool:
        """Whether the key is among them."""
        return key in self._keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """The set with the key."""
        return self._of(self._keys | {key})

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """The set without the key."""
        return self._of(self._keys - {key})


class _ExcludeDispatchKeyGuard:
    """Kernels at these keys are passed over inside of the block.

    Raises:
        NotImplementedError: for keys other than those of autocast.
    """

    def __init__(self, keys: DispatchKeySet) -> None:
        names = {key.name for key in keys._keys}
        if not names <= DEVICES.keys():
            raise NotImplementedError(
                f"_ExcludeDispatchKeyGuard: {sorted(names - DEVICES.keys())}"
            )
        self._devices = [d for d in ("cpu", "cuda") if d in map(DEVICES.get, names)]

    def __enter__(self) -> None:
        from contextlib import ExitStack

        from taeda.amp.autocast_mode import autocast

        self._stack = ExitStack()
        for device in self._devices:
            self._stack.enter_context(autocast(device, enabled=False))

    def __exit__(self, *error) -> None:
        self._stack.close()
