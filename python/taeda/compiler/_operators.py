"""Calls that a captured graph holds whole, with graphs of the functions they take.

Each function here stands for one of the library's while a graph is captured: it gets
stand-ins and returns what the call returns for them, or NotImplemented where the call
is like any other. Note [Pieces] in csrc/compiler/capture/pieces.h.
"""

from __future__ import annotations

import types

import taeda
from taeda import _C, _capture
from taeda._checks import is_collecting, makes_checks, refuse_any
from taeda._ops import OpNamespace, OpOverload, OpOverloadPacket, Ops
from taeda._own import is_own_module
from taeda.library import CustomOpDef
from taeda.nn.attention.flex_attention import flex_attention
from taeda.nn.modules.lazy import LazyModuleMixin
from taeda.utils import checkpoint as _checkpoints
from taeda.utils._pytree import tree_flatten
from taeda.utils.hooks import RemovableHandle

from . import _control, _extrema

__all__ = ["table"]

# Operators of the library itself.
_NATIVE = frozenset(("aten", "prims", "prim", "taeda"))
# Functions whose result is what a tensor holds.
READERS = frozenset(
    "item tolist __bool__ __int__ __float__ __index__ __complex__ __array__"
    " is_nonzero equal allclose nonzero unique masked_select data_ptr backward"
    " __contains__ __repr__ __str__ __format__ __reduce_ex__ __deepcopy__"
    " untyped_storage storage typed_storage _typed_storage".split()
)
_inherited = taeda.Tensor.__torch_function__.__func__
_CHECKPOINT_OPTIONS = (
    "use_reentrant context_fn determinism_check debug early_stop preserve_rng_state"
).split()


def _traced(function, args, kwargs):
    """(result, its tensors, the graph of the call, the nodes that it reads)."""
    mark = _capture.begin_piece()
    result = _capture.run(function, args, kwargs)
    tensors = [t for t in tree_flatten(result)[0] if isinstance(t, taeda.Tensor)]
    return result, tensors, *_capture.end_piece(mark, tensors, [])


def checkpoint(function, *args, **kwargs):
    """The block is a piece: backward runs its graph again.

    A `context_fn` is the program's own, called when the graph runs.
    """
    options = {k: kwargs.pop(k) for k in _CHECKPOINT_OPTIONS if k in kwargs}
    if options.get("context_fn") is _checkpoints.noop_context_fn:
        del options["context_fn"]
    given = getattr(options.get("context_fn"), "args", ())
    if any(isinstance(each, taeda.Tensor) for each in tree_flatten(given)[0]):
        _capture.break_graph("checkpoint with a context_fn that holds tensors")
    result, tensors, piece, free = _traced(function, args, kwargs)
    if not tensors:
        _capture.break_graph("checkpoint of a block without tensors")
    _capture.emit(_checkpoints.checkpoint, (piece, *free), options, tensors)
    return result


def apply(function, *args, **kwargs):
    """`autograd.Function.apply` is one call; its forward is looked at for guards."""
    mark = _capture.begin_piece()
    result = _capture.run(function, args, kwargs)
    _capture.end_piece(mark, [], [])
    _capture.emit(function, args, kwargs, result)
    return result


def operator(op, *args, **kwargs):
    """An operator object; a program's own need a kernel for stand-ins."""
    op = getattr(op, "_opoverload", op)
    if isinstance(op, OpOverloadPacket) and len(op.overloads()) == 1:
        op = getattr(op, op.overloads()[0])
    if not isinstance(op, OpOverload) or op.namespace in _NATIVE:
        return _capture.record(op, args, kwargs)
    if not op.needs_fake and op.has_kernel_for_dispatch_key("Meta"):
        return _capture.record(op, args, kwargs)
    if op._schema.returns:
        _capture.break_graph(f"{op} has no fake kernel (register_fake)")
    bound = op._schema.bind(op.name(), args, kwargs)
    for argument, value in zip(op._schema.arguments, bound, strict=True):
        if argument.written and isinstance(value, taeda.Tensor):
            with taeda.no_grad():
                value.zero_()  # a stand-in: that it was written to is noted
    _capture.emit(op, args, kwargs, None)
    return None


def whole(step, optimizer, closure=None):
    """An optimizer's step is one launch over all parameters: the program's own."""
    if closure is not None or not is_own_module(type(optimizer).__module__):
        return NotImplemented
    _capture.emit(step, (optimizer,), {}, None)
    _capture.note_changed(optimizer)
    return None


def grad(*args, **kwargs):
    """`autograd.grad` is one call."""
    if _C._functorch.depth() == 0 and _capture.has_history():
        _capture.break_graph("autograd.grad where inputs are results of calls")
    found = taeda.autograd.grad(*args, **kwargs)
    _capture.emit(taeda.autograd.grad, args, kwargs, found)
    return found


def attend(*args, **kwargs):
    """`flex_attention` is one call, with its functions as they are."""
    mark = _capture.begin_piece()
    result = _capture.run(flex_attention, args, kwargs)
    _capture.end_piece(mark, [], [])
    _capture.emit(flex_attention, args, kwargs, result)
    return result


def parameter(data=None, requires_grad=True):
    """`nn.Parameter(tensor)`: another object on the same memory."""
    if type(data) is not taeda.Tensor:
        return NotImplemented
    made = taeda.nn.Parameter(data, requires_grad)
    _capture.emit(taeda.nn.Parameter, (data, requires_grad), {}, made)
    return made


def remove_hook(handle):
    """Of a hook that the graph registers."""
    if not _capture.is_node(handle):
        return NotImplemented
    _capture.emit(RemovableHandle.remove, (handle,), {}, None)
    return None


def torch_function(cls, func, types, args=(), kwargs=None):
    """What a class of tensors inherits: the call, and results of the class."""
    if func.__name__ in READERS:
        _capture.break_graph(f"the value of a tensor is read by {func.__name__}")
    given = (cls, func, types, args, kwargs or {})
    out = _inherited(*given)
    if any(isinstance(t, taeda.Tensor) for t in tree_flatten(out)[0]):
        _capture.emit(_inherited, given, {}, out)
    return out


def old_type(tensor, dtype=None, *args, **kwargs):
    """`tensor.type()`, of the tensor that it stands for, or a conversion."""
    if dtype is None:
        return taeda.Tensor.type(taeda.empty(0, dtype=tensor.dtype))
    if isinstance(dtype, taeda.dtype):
        return NotImplemented
    from taeda._compat.legacy_types import tensor_as

    return _capture.run(tensor_as, (tensor, dtype), {})


def overrides(*values) -> bool:
    """While a function of the library is seen through, its calls are nodes."""
    return False


@makes_checks
def assert_true(tensor) -> None:
    """`assert` of a tensor, in a graph."""
    error = AssertionError("compile: an assertion on a tensor failed")
    refuse_any(tensor.reshape(()).logical_not(), error)


def collects() -> bool:
    """`is_collecting` of a function that is seen through."""
    return True


def refuse(condition, error) -> None:
    """`refuse_any`, in a graph."""
    _capture.emit(refuse_any, (condition, error), {}, None)


def compile_inside(model=None, **settings):
    """`taeda.compile` of a function in a function that is compiled: the function."""
    if model is None:
        return lambda given: given
    return model if isinstance(model, types.FunctionType) else NotImplemented


def holds(condition, text: str) -> None:
    """What capture presumed of a number, or the program asserts."""
    if not condition:
        raise RuntimeError(f"compile: expected {text}, which does not hold")


def tolist(tensor):
    """`tensor.tolist()`: numbers that are known when the graph runs."""
    if tensor.dim() == 0:
        found = _capture.item(taeda.Tensor.item, tensor)
        return NotImplemented if found is None else found
    if tensor.is_floating_point():
        return NotImplemented
    rows = _capture.record(taeda.unbind, (tensor,), {})
    found = [tolist(row) for row in rows]
    return NotImplemented if any(row is NotImplemented for row in found) else found


def _drawn(generator, name: str, *args):
    return getattr(generator, name)(*args)


def draw(method, generator, *args, **kwargs):
    """A call of one of Python's generators, whose result is a number.

    Args:
        method: a function of its class.
        generator: what stands for it; drawing from that tells the kind of number.
    """
    name, kinds = method.__name__, {int, float}
    drawn = None
    if not kwargs and all(type(each) in kinds for each in args):
        drawn = _drawn(generator, name, *args)
    if type(drawn) is int:
        # Symbols have 64 bits. Those between the arguments do; those of
        # `getrandbits` may not.
        fits = abs(drawn) <= max(abs(each) for each in (0, *args)) < 2**62
        drawn = drawn if fits else None
    if type(drawn) not in kinds:
        _capture.break_graph(f"random.{name} does not draw a number of one kind")
    return _capture.number(_drawn, (generator, name, *args), type(drawn) is int)


def make_closure(function, *cells):
    """A function with other cells."""
    code, globals, name = function.__code__, function.__globals__, function.__name__
    return types.FunctionType(code, globals, name, None, cells)


def make_instance(cls, attributes: dict):
    """An object again, without its __init__."""
    made = object.__new__(cls)
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    return made


def of_array(array):
    """What stands for an array of NumPy's, which is loaded by whoever made it."""
    from ._arrays import of_array

    return of_array(array)


def of_tensor(tensor, *args, **kwargs):
    """`tensor.numpy()`."""
    from ._arrays import of_tensor

    return of_tensor(tensor, *args, **kwargs)


def from_numpy(array):
    """`taeda.from_numpy`, of a stand-in."""
    from ._arrays import from_numpy

    return from_numpy(array)


def make_handle():
    """What stands for the handle of a hook."""
    return RemovableHandle({})


def infer_parameters(mixin, module, args, kwargs=None):
    """A lazy module gets its parameters, of the shapes that are captured, for good."""
    outer = _capture.outside(module)
    outer._infer_parameters(outer, args, kwargs)
    _capture.begin_anew()


# What `table` gives; `_arrays` adds NumPy's functions when it is imported, which it is
# under the lock of the compiler.
HANDLERS: dict = {}


def table() -> dict:
    """The functions above by what they stand for."""
    asked = "unary variadic".split()
    names = ["_has_torch_function", *(f"_has_torch_function_{n}" for n in asked)]
    known = {
        **dict.fromkeys((getattr(_C, name) for name in names), overrides),
        _inherited: torch_function,
        flex_attention: attend,
        is_collecting: collects,
        refuse_any: refuse,
        taeda.compile: compile_inside,
        taeda.from_numpy: from_numpy,
        taeda.nn.Parameter: parameter,
        taeda.Tensor.type: old_type,
        RemovableHandle.remove: remove_hook,
        LazyModuleMixin._infer_parameters: infer_parameters,
        _checkpoints.checkpoint: checkpoint,
        **_control.table(),
        **_extrema.table(),
        taeda.autograd.grad: grad,
    }
    HANDLERS.update(known)
    return HANDLERS


def level_types() -> set:
    """The classes of transforms' levels, whose calls are nodes."""
    module = _C._functorch
    names = "GradLevel BatchLevel DualLevel FunctionalLevel below"
    return {getattr(module, name) for name in names.split()}


def operator_types() -> set:
    """Classes of operators, layouts and memory formats, which are one object each."""
    return {
        Ops,
        OpNamespace,
        OpOverload,
        OpOverloadPacket,
        CustomOpDef,
        taeda.layout,
        taeda.memory_format,
    }
