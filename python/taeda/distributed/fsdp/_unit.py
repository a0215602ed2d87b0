"""Modules whose parameters are whole while they run.

A unit is a module, or several, with one group of parameters. Its forward pass gathers
them; so does the arrival of the first gradient of an output. A tree is the units below
one outermost module: they share a backward pass, its end, and the order in which the
next unit's parameters are asked for early.
"""

from __future__ import annotations

from typing import Any

import taeda

from ._group import in_backward
from ._slots import unit_of

__all__ = ["Tree", "Unit", "cast_floating", "tensors_in"]


def tensors_in(value) -> list:
    """The tensors of nested containers and dataclasses."""
    if isinstance(value, taeda.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif hasattr(value, "__dataclass_fields__"):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for part in value for tensor in tensors_in(part)]


def cast_floating(value, dtype):
    """Nested containers with their floating tensors in another dtype."""
    if isinstance(value, taeda.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        return type(value)((k, cast_floating(v, dtype)) for k, v in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(cast_floating(v, dtype) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(cast_floating(v, dtype) for v in value)
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        from dataclasses import fields, replace

        own = [f.name for f in fields(value) if f.init]
        return replace(
            value, **{n: cast_floating(getattr(value, n), dtype) for n in own}
        )
    return value


class Tree:
    """Units that are run below one outermost unit.

    Used by the thread that runs the model alone, as its hooks are.
    """

    def __init__(self, root) -> None:
        self.root = root
        self.order: dict = {}  # units as their forward passes ended; a set in order
        self.last_order: list = []  # as they began in the step before
        self.begun: dict = {}
        self.touched: dict = {}  # units with a part in this backward pass
        self.units: list = []
        self.is_active = False
        self.traffic: list = []  # groups whose gradients are under way, in order
        self.copying: list = []  # one of them at most, whose copies are being summed
        self.is_last_backward = True
        self.event: Any = None  # of the optimizer's step, on a GPU

    def begin_forward(self) -> None:
        """The outermost unit begins a step."""
        if self.is_active:
            self.reset()
        self.order.clear()
        self.last_order, self.begun = list(self.begun), {}
        event, self.event = self.event, None
        if event is not None:
            event.wait()

    def take_part(self, unit) -> None:
        """A unit has a part in the backward pass that goes on."""
        if not self.is_active:
            self.is_active = True
            taeda._C._queue_callback(self.end_backward)
        self.touched[unit] = None

    def end_backward(self) -> None:
        """The pass is over: what is left is reduced, and all parameters are freed."""
        if not self.is_active:
            return
        self.is_active = False
        for unit in self.units:
            if any(group.zero_unused for group in unit.groups):
                for group in unit.groups:
                    group.in_pass = True
                self.touched[unit] = None
        touched, self.touched = list(self.touched), {}
        for unit in touched:
            unit.finish_backward()
            unit.end_backward()
        if self.is_last_backward:
            self.wait_for_reduction()
            self.wait_for_copies()
        self.order.clear()

    def start_reduce(self, group) -> None:
        """Sends a group's gradients; few are under way at once, to bound the memory."""
        self.wait_for_reduction(group.in_flight - 1)
        if group in self.copying:
            self.wait_for_copies()
        if group.start_reduce():
            self.traffic.append(group)

    def wait_for_reduction(self, left: int = 0) -> None:
        """Until no more than `left` groups' gradients are under way."""
        while len(self.traffic) > left:
            group = self.traffic.pop(0)
            if group.sum_copies():
                self.wait_for_copies()
                self.copying.append(group)
            else:
                group.finish_reduce()

    def wait_for_copies(self) -> None:
        """Until no group's sums over copies are under way."""
        while self.copying:
            self.copying.pop().finish_reduce()

    def reset(self) -> None:
        """Forgets a forward or backward pass that ended by an exception."""
        self.is_active = False
        self.traffic.clear()
        self.copying.clear()
        self.touched.clear()
        self.order.clear()
        for unit in self.units:
            unit.forget()


class Unit:
    """A module's part in sharded training.

    Args:
        modules: those whose forward passes need the parameters.
        groups: of parameters; none for a module without own ones.
        reshard: free the parameters after the forward pass; None leaves it to the
            place: the outermost unit's are kept until the backward pass.
        hides_kept: parts are registered although the whole parameters are kept.
        input_dtype, root_input_dtype, output_dtype: that inputs and outputs are cast
            to; None for no cast. The second is for the outermost unit.
        prefetch: "before", "after" or None: when the unit that comes next in the
            backward pass is asked for.
    """

    def __init__(
        self,
        modules,
        groups,
        reshard,
        *,
        hides_kept: bool = False,
        input_dtype=None,
        root_input_dtype=None,
        output_dtype=None,
        prefetch: str | None = "before",
    ) -> None:
        self.modules, self.groups, self.reshard = modules, groups, reshard
        self.hides_kept, self.prefetch = hides_kept, prefetch
        self.input_dtype, self.root_input_dtype = input_dtype, root_input_dtype
        self.output_dtype = output_dtype
        self.tree: Tree | None = None
        self.forward_prefetch: list | None = None  # units; "next" is the order's
        self.backward_prefetch: list | None = None
        self.prefetches_next = False
        self.unshard_in_backward = True
        self.on_first_forward: Any = None
        self.inputs_left: set | None = None
        self.to_run: set = set()  # modules whose forward passes are still to come
        for group in groups:
            group.arrival = self._arrived

    # The tree.

    @property
    def is_root(self) -> bool:
        """Whether this is the outermost unit; before a forward pass none is."""
        return self.tree is not None and self.tree.root is self

    def modules_below(self):
        """All modules of this unit and below."""
        for module in self.modules:
            yield from module.modules()

    def join_tree(self) -> Tree:
        """The tree, which a unit without one makes as its root."""
        if self.tree is None:
            self.tree = tree = Tree(self)
            for module in self.modules_below():
                unit = unit_of(module)
                if unit is None or unit in tree.units:
                    continue
                unit.tree = tree
                tree.units.append(unit)
                if unit.on_first_forward is not None:
                    unit.on_first_forward()
        return self.tree

    # Forward.

    @taeda.compiler.disable
    def before_forward(self, args, kwargs, module=None):
        """Makes the parameters whole; returns the arguments, cast.

        Args:
            args, kwargs: of the forward pass.
            module: whose it is, of a unit of several.
        """
        tree = self.join_tree()
        again = in_backward()
        if tree.root is self and not again:
            tree.begin_forward()
            for group in self.groups:
                if group.is_hidden:
                    group.free()  # kept for a backward pass that never came
        dtype = self.root_input_dtype if tree.root is self else self.input_dtype
        if dtype is not None:
            args, kwargs = cast_floating(args, dtype), cast_floating(kwargs, dtype)
        if again:
            tree.take_part(self)
        else:
            tree.begun[self] = None
            if not self.to_run:
                self.to_run = set(self.modules)
        self.gather()
        for unit in self._forward_next(tree):
            unit.start_gather()
        if taeda.is_grad_enabled() and any(g.has_frozen for g in self.groups):
            self._watch_inputs(tensors_in(args) + tensors_in(kwargs))
        return args, kwargs

    def _forward_next(self, tree) -> list:
        if self.forward_prefetch is not None:
            return self.forward_prefetch
        if not self.prefetches_next or self not in tree.last_order[:-1]:
            return []
        return [tree.last_order[tree.last_order.index(self) + 1]]

    def gather(self) -> None:
        """Makes the parameters whole."""
        for group in self.groups:
            group.gather()

    def start_gather(self) -> None:
        """Asks for the other ranks' parts."""
        for group in self.groups:
            group.start_gather()

    @taeda.compiler.disable
    def after_forward(self, outputs, module=None):
        """Frees the parameters, unless they are kept; returns the outputs, cast.

        Args:
            outputs: of the forward pass.
            module: whose it is; a unit of several frees them after all have run.
        """
        tree = self.join_tree()
        if self.output_dtype is not None:
            outputs = cast_floating(outputs, self.output_dtype)
        hooked = False
        if taeda.is_grad_enabled() and self.groups:
            for tensor in tensors_in(outputs):
                if tensor.requires_grad:
                    tensor.register_hook(self._before_backward)
                    hooked = True
        if in_backward():
            # A part is computed again: who is past the arrival of its first gradient
            # still needs its parameters.
            if not any(g.in_pass for g in self.groups):
                self.free(keep_smaller=True)
            return outputs
        if module is not None:
            self.to_run.discard(module)
            if self.to_run:
                return outputs
        tree.order.pop(self, None)
        tree.order[self] = None
        self._after_forward_free(tree, hooked)
        return outputs

    def _after_forward_free(self, tree, hooked: bool) -> None:
        reshard = self.reshard
        if reshard is None:
            reshard = tree.root is not self
        if reshard and not (self.hides_kept and tree.root is self and hooked):
            self.free(keep_smaller=hooked)
        elif self.hides_kept and reshard:
            for group in self.groups:
                group.hide()

    def free(self, keep_smaller: bool = False) -> None:
        """Frees the whole parameters."""
        for group in self.groups:
            group.free(keep_smaller)

    # Backward.

    def _before_backward(self, _gradient) -> None:
        tree = self.join_tree()
        tree.take_part(self)
        for group in self.groups:
            group.in_pass = True
            if group.finished:
                # Another graph, or the same one again, in the same pass.
                group.finished = False
                group.arrived.clear()
        if self.unshard_in_backward:
            self.gather()
            for group in self.groups:
                if group.is_hidden:
                    group.expose()
        if self.prefetch == "before":
            self._prefetch_backward(tree)

    def _prefetch_backward(self, tree) -> None:
        units = self.backward_prefetch
        if units is None:
            order = list(tree.order)
            at = order.index(self) if self in tree.order else 0
            units = order[at - 1 : at] if at else []
        for unit in units:
            done = all(g.finished for g in unit.groups)
            if unit.unshard_in_backward and not done:
                unit.start_gather()
                tree.touched.setdefault(unit)

    def _watch_inputs(self, inputs) -> None:
        """Parameters that get no gradient are needed until the inputs have theirs."""
        left = {id(t) for t in inputs if t.requires_grad}
        self.inputs_left = left
        for tensor in inputs:
            if tensor.requires_grad:
                tensor.register_hook(self._input_hook(id(tensor), left))

    def _input_hook(self, key: int, left: set):
        def arrived(_gradient) -> None:
            left.discard(key)
            if not left and self.inputs_left is left:
                self._maybe_finish()

        return arrived

    def _arrived(self, group) -> None:
        tree = self.join_tree()
        tree.take_part(self)
        group.in_pass = True
        if group.is_complete:
            self._maybe_finish()

    def _maybe_finish(self) -> None:
        if any(not g.is_complete for g in self.groups if g.expected):
            return
        if self.inputs_left and any(g.has_frozen for g in self.groups):
            return
        self.finish_backward()

    def finish_backward(self) -> None:
        """Sends the gradients and frees the parameters."""
        tree = self.tree
        for group in self.groups:
            if group.in_pass and not group.finished:
                group.finished = True
                tree.start_reduce(group)
            if group.reshard_after_backward:
                group.free()
        if self.prefetch == "after" and tree.is_active:
            self._prefetch_backward(tree)

    def end_backward(self) -> None:
        """The pass is over."""
        self.inputs_left = None
        for group in self.groups:
            group.arrived.clear()
            group.finished = group.in_pass = False
            if group.reshard_after_backward:
                group.free()

    def forget(self) -> None:
        """Drops what a failed pass has left."""
        self.inputs_left = None
        self.to_run = set()
        for group in self.groups:
            group.in_pass = False
            group.forget()
