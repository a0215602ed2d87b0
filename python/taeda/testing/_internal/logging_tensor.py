"""Operators as lines of text, as tests read them.

`$0: f32[2] = torch._ops.aten.sin.default($1)`: a tensor is a number with its dtype and
sizes where it is made.
"""

from __future__ import annotations

import contextlib
import logging
import traceback

import taeda
from taeda.utils._dtype_abbrs import dtype_abbrs
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils._pytree import tree_map

__all__ = [
    "LoggingTensor",
    "LoggingTensorHandler",
    "LoggingTensorMode",
    "LoggingTensorReentrant",
    "capture_logs",
    "capture_logs_with_logging_tensor_mode",
    "log_input",
]

logger = logging.getLogger("LoggingTensor")


def _note(func, args, kwargs, results) -> None:
    _log(f"{func.__module__}.{func.__name__}", args, kwargs, results)


def _log(name: str, args, kwargs, results) -> None:
    # Not as the message's arguments, which other handlers would put into its text.
    logger.info(name, extra={"call": (args, kwargs, results)})


def log_input(name: str, var: object) -> None:
    """Notes a value that a program begins with."""
    _log("input", (name,), {}, var)


class LoggingTensor(taeda.Tensor):
    """A tensor that notes each operator on it.

    Args:
        elem (Tensor): the values.
        requires_grad: whether the new tensor is a leaf with a gradient.
    """

    elem: taeda.Tensor
    context = contextlib.nullcontext

    @staticmethod
    def __new__(cls, elem, *args, **kwargs):
        geometry = {"strides": elem.stride(), "storage_offset": elem.storage_offset()}
        kind = {"device": elem.device, "dtype": elem.dtype}
        leaf = bool(kwargs.get("requires_grad"))
        made = taeda.Tensor._make_wrapper_subclass(
            cls, elem.shape, **kind, **geometry, requires_grad=leaf
        )
        made.elem = elem.detach() if leaf else elem
        return made

    def __repr__(self, *, tensor_contents=None) -> str:
        return super().__repr__(tensor_contents=f"{self.elem}")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with cls.context():
            results = func(*tree_map(_inside, args), **tree_map(_inside, kwargs))
        results = tree_map(
            lambda t: cls(t) if isinstance(t, taeda.Tensor) else t, results
        )
        _note(func, args, kwargs, results)
        return results


def _inside(value):
    return value.elem if isinstance(value, LoggingTensor) else value


class LoggingTensorReentrant(LoggingTensor):
    """The same, with autograd recording the operators on the values inside."""

    context = staticmethod(taeda.overrides.enable_reentrant_dispatch)


class LoggingTensorMode(TorchDispatchMode):
    """Notes every operator inside `with`."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        results = func(*args, **kwargs)
        _note(func, args, kwargs, results)
        return results


class LoggingTensorHandler(logging.Handler):
    """Makes a line of each record.

    Args:
        log_list: where the lines go.
        use_shortid_for_all_tensors: number all tensors, not only `LoggingTensor`s.
        with_type: dtype and sizes at results.
        tracebacks_list: where the Python stack of each goes; None for nowhere.
    """

    def __init__(
        self,
        log_list: list[str],
        use_shortid_for_all_tensors: bool,
        with_type: bool,
        tracebacks_list: list | None,
    ) -> None:
        super().__init__()
        self.log_list, self.with_type = log_list, with_type
        self.tracebacks_list = tracebacks_list
        self.kind = taeda.Tensor if use_shortid_for_all_tensors else LoggingTensor
        # Tensors are kept alive, so that no two have one id.
        self.seen: dict[int, tuple[int, taeda.Tensor]] = {}

    def _text(self, value, with_type: bool = False):
        if not isinstance(value, self.kind):
            return repr(value)
        number, _ = self.seen.setdefault(id(value), (len(self.seen), value))
        if not (with_type and self.with_type):
            return f"${number}"
        sizes = ", ".join(map(str, value.shape))
        return f"${number}: {dtype_abbrs[value.dtype]}[{sizes}]"

    def emit(self, record) -> None:
        args, kwargs, results = record.call
        given = [str(tree_map(self._text, a)) for a in args]
        given += [f"{k}={tree_map(self._text, v)!s}" for k, v in kwargs.items()]
        made = tree_map(lambda r: self._text(r, with_type=True), results)
        self.log_list.append(f"{made} = {record.msg}({', '.join(given)})")
        if self.tracebacks_list is not None:
            self.tracebacks_list.append(traceback.extract_stack()[:-1])


@contextlib.contextmanager
def capture_logs(is_mode=False, python_tb=False, script_tb=False, cpp_tb=False):
    """The lines of what is noted inside `with`, as a list that grows.

    Args:
        is_mode: number all tensors.
        python_tb: give (lines, stacks), a stack of Python's for each line.
        script_tb, cpp_tb: not implemented.

    Raises:
        NotImplementedError: script_tb, cpp_tb.
    """
    if script_tb or cpp_tb:
        raise NotImplementedError("capture_logs: script_tb and cpp_tb")
    lines: list[str] = []
    stacks: list | None = [] if python_tb else None
    handler = LoggingTensorHandler(lines, is_mode, True, stacks)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield (lines, stacks) if python_tb else lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


@contextlib.contextmanager
def capture_logs_with_logging_tensor_mode(
    python_tb=False, script_tb=False, cpp_tb=False
):
    """The lines of all operators inside `with`; the arguments are `capture_logs`'s."""
    with LoggingTensorMode(), capture_logs(True, python_tb, script_tb, cpp_tb) as logs:
        yield logs
