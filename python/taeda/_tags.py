"""What an operator's record promises, by PyTorch's names and numbers."""

from __future__ import annotations

from taeda._choice import Choice

__all__ = ["Tag"]


class Tag(Choice):
    """A property of an operator; `taeda.ops.aten.add.Tensor.tags` lists those it has.

    Only properties that records state are members: compare with `Tag.pointwise`, and
    read a record itself as `taeda.ops.aten.add.Tensor.record`.
    """

    __slots__ = ()
    _values = {
        "data_dependent_output": 2,  # returns a number read from memory
        "dynamic_output_shape": 3,  # sizes of results depend on values
        "inplace": 6,
        "inplace_view": 7,  # changes sizes and strides of its argument
        "nondeterministic_seeded": 13,  # draws from a generator
        "out": 14,
        "pointwise": 16,
        "reduction": 18,
        "view_copy": 19,  # what a view shows, in memory of its own
    }


Tag.__module__ = "taeda"
