"""NumPy arrays in captured graphs.

A stand-in is an array of zeros: NumPy itself says which shape and dtype a call gives,
and the call becomes a node that NumPy runs. What reads an element ends the graph.
"""

from __future__ import annotations

import operator

import numpy as np

import taeda
from taeda import _capture

from . import _operators

__all__ = ["StandIn", "from_numpy", "of_array", "of_tensor"]

_METHODS = (
    "all any argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot"
    " flatten max mean min nonzero prod ravel repeat reshape round squeeze std sum"
    " swapaxes take trace transpose var fill"
).split()
_READERS = (
    "__bool__ __complex__ __float__ __format__ __index__ __int__ __repr__ __str__"
    " __contains__ __reduce__ __reduce_ex__ item tobytes tofile tolist dump"
).split()


def _plain(value):
    """A stand-in as the array that it is, in containers too.

    An array that was made inside is copied: calls on zeros must not write to it.
    """
    if isinstance(value, StandIn):
        return value.view(np.ndarray)
    if type(value) is np.ndarray:
        return value.copy()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _fixed(value):
    """Symbols as their numbers, of which NumPy knows nothing; a guard is left."""
    if isinstance(value, taeda.SymInt):
        return int(value)
    if isinstance(value, taeda.SymFloat):
        return float(value)
    if type(value) in (list, tuple):
        return type(value)(map(_fixed, value))
    if type(value) is dict:
        return {key: _fixed(each) for key, each in value.items()}
    return value


def _wrapped(value, given):
    """A result as the program sees it; what it was given comes back as itself."""
    if isinstance(value, (list, tuple)):
        return type(value)(_wrapped(each, given) for each in value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    for each in given:
        if isinstance(each, StandIn) and _plain(each) is value:
            return each
    return np.asarray(value).view(StandIn)


def _on_zeros(function, args, kwargs):
    with np.errstate(all="ignore"):
        return function(*args, **kwargs)


def _call(function, args, kwargs):
    """A call of NumPy's: run on zeros, and a node."""
    args, kwargs = _fixed(args), _fixed(kwargs)
    out = kwargs.get("out")
    written = out if isinstance(out, tuple) else (out,)
    if any(type(each) is np.ndarray for each in written):
        _capture.break_graph("an array that was made inside is written")
    found = _capture.quiet(_on_zeros, (function, _plain(args), _plain(kwargs)), {})
    if out is not None:
        result = written[0] if len(written) == 1 else written
        _capture.emit(function, args, kwargs, None)
        return result
    if found is None and type(args[0]) is np.ndarray:
        _capture.break_graph("an array that was made inside is written")
    result = _wrapped(found, ())
    _capture.emit(function, args, kwargs, result)
    return result


def _method(name: str):
    function = getattr(np.ndarray, name)

    def call(self, *args, **kwargs):
        if not isinstance(self, StandIn):  # a graph ended between lookup and call
            return function(self, *args, **kwargs)
        return _call(function, (self, *args), kwargs)

    return call


def _reader(name: str):
    function = getattr(np.ndarray, name)

    def call(self, *args, **kwargs):
        if not isinstance(self, StandIn):
            return function(self, *args, **kwargs)
        _capture.break_graph(f"an element of an array is read by {name}")

    return call


class StandIn(np.ndarray):
    """Stands for an array whose elements are not known."""

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        return _call(getattr(ufunc, method) if method != "__call__" else ufunc,
                     args, kwargs)  # fmt: skip

    def __array_function__(self, func, types, args, kwargs):
        return _call(func, args, kwargs)

    def __getitem__(self, index):
        return _call(operator.getitem, (self, index), {})

    def __setitem__(self, index, value):
        _call(operator.setitem, (self, index, value), {})

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    @property
    def T(self):
        return _call(np.ndarray.transpose, (self,), {})


for _name in _METHODS:
    setattr(StandIn, _name, _method(_name))
for _name in _READERS:
    setattr(StandIn, _name, _reader(_name))


for _name in ("flat", "data", "ctypes", "__array_interface__", "__array_struct__"):
    setattr(StandIn, _name, property(_reader(_name)))


def _holds(value) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds, value))
    return isinstance(value, StandIn)


def _asked(function):
    """A function in C that reads elements without asking the array's class."""

    def call(*args, **kwargs):
        if not _holds((*args, *kwargs.values())):
            return NotImplemented
        if getattr(function, "__module__", "") == "builtins":
            _capture.break_graph(f"elements of an array are read by {function}")
        return _call(function, args, kwargs)

    return call


def _functions_in_c() -> list:
    """NumPy's that are no ufunc and do not dispatch, and the types of its numbers."""
    kinds = [v for v in vars(np).values() if isinstance(v, type)]
    numbers = [k for k in kinds if issubclass(k, np.generic)]
    plain = [v for v in vars(np).values() if type(v) is type(np.array)]
    return [*numbers, *plain, np.ndarray, memoryview, bytes, bytearray]


_operators.HANDLERS.update({f: _asked(f) for f in _functions_in_c()})


def of_array(array):
    """What stands for an array of the program."""
    return np.zeros_like(array, subok=False).view(StandIn)


def of_tensor(tensor, *args, **kwargs):
    """`tensor.numpy()` of a stand-in."""
    real = taeda.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype
    ).zero_()
    real.requires_grad_(tensor.requires_grad)
    array = taeda.Tensor.numpy(real, *args, **kwargs).view(StandIn)
    _capture.emit(taeda.Tensor.numpy, (tensor, *args), kwargs, array)
    return array


def from_numpy(array):
    """`taeda.from_numpy` of a stand-in, or of an array that was made inside."""
    if not isinstance(array, StandIn):
        if type(array) is not np.ndarray or any(s < 0 for s in array.strides):
            return NotImplemented
        # Each run gets memory of its own, as the array is made by each call.
        real = taeda.tensor(array)
        found = taeda.empty(real.shape, dtype=real.dtype, device="meta")
        _capture.emit(taeda.tensor, (array,), {}, found)
        return found
    real = taeda.from_numpy(_plain(array).copy())
    found = taeda.empty_strided(
        real.shape, real.stride(), dtype=real.dtype, device="meta"
    )
    _capture.emit(taeda.from_numpy, (array,), {}, found)
    return found
