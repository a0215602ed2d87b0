"""Dispatch keys by PyTorch's names, for programs that write sets of them.

The dispatcher's own keys are fewer (`c10/core/dispatch_key.h`). What a set can do here
is to be compared and to switch autocast off for a block.
"""

from __future__ import annotations

from taeda._autocast_kernels import DEVICES
from taeda._choice import Choice

__all__ = ["DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard"]

_BACKENDS = (
    "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2"
    " PrivateUse3 Meta"
).split()
# The kinds of kernels that each backend has keys for, in the order of their numbers.
_OF_BACKENDS = ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor", "Autograd")
# The others, by their first number: PyTorch's, which programs may have written down.
_OTHERS = {
    0: "Undefined Dense",
    5: "Quantized",
    8: "Sparse SparseCsr NestedTensor BackendSelect",
    13: "Python FuncTorchDynamicLayerBackMode Functionalize Conjugate Negative"
    " ZeroTensor ADInplaceOrView AutogradOther AutogradFunctionality"
    " AutogradNestedTensor",
    24: "AutocastCPU",
    27: "AutocastXPU AutocastIPU AutocastHPU",
    31: "AutocastMPS AutocastCUDA AutocastPrivateUse1 FuncTorchBatched",
    36: "FuncTorchVmapMode",
    39: "FuncTorchGradWrapper",
    41: "PythonTLSSnapshot FuncTorchDynamicLayerFrontMode",
    45: "PreDispatch PythonDispatcher",
    150: "Autograd CompositeImplicitAutograd FuncTorchBatchedDecomposition"
    " CompositeImplicitAutogradNestedTensor CompositeExplicitAutograd"
    " CompositeExplicitAutogradNonFunctional",
}


def _numbers() -> dict[str, int]:
    found = {
        name: first + i
        for first, names in _OTHERS.items()
        for i, name in enumerate(names.split())
    }
    for block, kind in enumerate(_OF_BACKENDS):
        # A number before each block marks where it begins.
        first = 49 + block * (len(_BACKENDS) + 1)
        for i, backend in enumerate(_BACKENDS):
            found[kind + backend] = first + i
    return found


class DispatchKey(Choice):
    """Where a kernel of an operator may stand.

    Example:
        >>> taeda.DispatchKey.CPU
        <DispatchKey.CPU: 49>
    """

    __slots__ = ()
    _values = _numbers()


DispatchKey.__module__ = "taeda"


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
