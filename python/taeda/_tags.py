"""What an operator's record promises, by PyTorch's names and numbers."""

from __future__ import annotations

from taeda._choice import Choice

__all__ = ["Tag"]


class Tag(Choice):
    """A property of an operator; `taeda.ops.aten.add.Tensor.tags` lists those it has.

    Records state some of them; others are for operators that `taeda.library` declares,
    where their authors promise them and packages read them. A record itself is
    `taeda.ops.aten.add.Tensor.record`.

    Example:
        >>> taeda.Tag.pointwise in taeda.ops.aten.add.Tensor.tags
        True
    """

    __slots__ = ()
    _values = {
        "core": 0,
        "cudagraph_unsafe": 1,
        "data_dependent_output": 2,  # returns a number read from memory
        "dynamic_output_shape": 3,  # sizes of results depend on values
        "flexible_layout": 4,
        "generated": 5,
        "inplace": 6,
        "inplace_view": 7,  # changes sizes and strides of its argument
        "maybe_aliasing_or_mutating": 8,
        "needs_contiguous_strides": 9,
        "needs_exact_strides": 10,
        "needs_fixed_stride_order": 11,
        "nondeterministic_bitwise": 12,
        "nondeterministic_seeded": 13,  # draws from a generator
        "out": 14,
        "out_variant": 15,
        "pointwise": 16,
        "pt2_compliant_tag": 17,
        "reduction": 18,
        "view_copy": 19,  # what a view shows, in memory of its own
    }


Tag.__module__ = "taeda"
