"""Notes shapes, dtypes and strides on the nodes of a graph by running it."""

from __future__ import annotations

from typing import Any, NamedTuple

import taeda
from taeda.fx.interpreter import Interpreter
from taeda.fx.node import map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What `ShapeProp` notes of a tensor, in `node.meta["tensor_meta"]`.

    Attributes:
        shape, dtype, requires_grad, stride: as the tensor has them.
        memory_format: in which it is contiguous, or None.
        is_quantized: always False.
        qparams: always empty.
    """

    shape: taeda.Size
    dtype: taeda.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: taeda.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _format_of(t) -> taeda.memory_format | None:
    formats = [taeda.contiguous_format]
    formats += [taeda.channels_last] if t.dim() == 4 else []
    formats += [taeda.channels_last_3d] if t.dim() == 5 else []
    return next((f for f in formats if t.is_contiguous(memory_format=f)), None)


def _extract_tensor_metadata(result, include_contiguity: bool = True) -> TensorMetadata:
    """The notes of one tensor."""
    return TensorMetadata(
        shape=result.shape,
        dtype=result.dtype,
        requires_grad=result.requires_grad,
        stride=result.stride(),
        memory_format=_format_of(result) if include_contiguity else None,
        is_quantized=False,
        qparams={},
    )


class ShapeProp(Interpreter):
    """Runs a graph and notes on each node what its value is like.

    `meta["tensor_meta"]` gets a TensorMetadata for each tensor of the value, in the
    value's structure; `meta["type"]` its class.

    Args:
        gm: the GraphModule.
        fake_mode: run on fake tensors of this mode: nothing is computed.

    Example:
        >>> gm = taeda.fx.symbolic_trace(lambda x: x.sum(0))
        >>> result = ShapeProp(gm).propagate(taeda.ones(2, 3))
        >>> [tuple(n.meta["tensor_meta"].shape) for n in gm.graph.nodes]
        [(2, 3), (3,), (3,)]
    """

    def __init__(self, gm, fake_mode=None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n):
        """The value of a node, noted on it."""
        try:
            result = self._value(n)
        except Exception as error:
            raise RuntimeError(
                f"ShapeProp error for: node={n.format_node()} with meta={n.meta}"
            ) from error
        found = False

        def describe(value):
            nonlocal found
            if not isinstance(value, taeda.Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def _value(self, n):
        if self.fake_mode is None:
            return super().run_node(n)
        with self.fake_mode:
            return super().run_node(n)

    def fetch_attr(self, target: str):
        """What the module has at a path, fake where values are."""
        value = super().fetch_attr(target)
        if self.fake_mode is not None and isinstance(value, taeda.Tensor):
            return self.fake_mode.from_tensor(value)
        return value

    def propagate(self, *args):
        """Runs the graph on these inputs and gives its result."""
        if self.fake_mode is not None:
            args = tuple(
                self.fake_mode.from_tensor(a) if isinstance(a, taeda.Tensor) else a
                for a in args
            )
        return super().run(*args)
