"""Calling a module with other parameters than its own."""

from __future__ import annotations

from ._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]


def functional_call(
    module,
    parameters_and_buffers: dict,
    args=None,
    kwargs=None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """`module(*args, **kwargs)` as if it had the given parameters and buffers.

    Args:
        module: not changed.
        parameters_and_buffers: dotted names to tensors; others stay. It holds what
            the module had in their place at the end of the call.
        args: a tuple of arguments, or a single one.
        kwargs: named arguments.
        tie_weights: one name of a tied tensor stands for all of them.
        strict: the names must be exactly those of the module.

    Returns:
        What the module returns.

    Raises:
        TypeError: `kwargs` is no dictionary.
        FutureWarning: always; `taeda.func.functional_call` is the name to use.
        ValueError: tied names with different values.
        RuntimeError: names that are missing or unknown, when strict.

    Example:
        >>> layer = taeda.nn.Linear(1, 1, bias=False)
        >>> f = taeda.nn.utils.stateless.functional_call
        >>> f(layer, {"weight": taeda.full((1, 1), 3.0)}, taeda.ones(1))
        tensor([3.])
    """
    import warnings

    warnings.warn(
        "`taeda.nn.utils.stateless.functional_call` is deprecated. Please use "
        "`torch.func.functional_call` (here `taeda.func.functional_call`)",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module,
        parameters_and_buffers,
        args,
        kwargs,
        tie_weights=tie_weights,
        strict=strict,
    )


def _functional_call(
    module, tensors, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    if kwargs is not None and not isinstance(kwargs, dict):
        raise TypeError(f"kwargs should be a dict, got {type(kwargs).__name__}")
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with swapped(module, tensors, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _ties(module) -> dict[str, set[str]]:
    """Name -> all names of the same tensor, for tensors that have several."""
    names: dict[int, set[str]] = {}
    for members in (module.named_parameters, module.named_buffers):
        for name, tensor in members(remove_duplicate=False):
            names.setdefault(id(tensor), set()).add(name)
    return {name: group for group in names.values() if len(group) > 1 for name in group}


def _with_ties(module, tensors: dict) -> dict:
    result = dict(tensors)
    ties = _ties(module)
    for name, tensor in tensors.items():
        for other in ties.get(name, ()):
            if other in tensors and tensors[other] is not tensor:
                raise ValueError(
                    "functional_call got multiple values for keys "
                    f"{sorted(ties[name])}, which are tied. Consider using "
                    "tie_weights=False"
                )
            result[other] = tensor
    return result


def _reparametrize_module(
    module,
    parameters_and_buffers: dict,
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
):
    """The context within which `module` has other tensors.

    Args:
        module, parameters_and_buffers, strict: as `functional_call`'s.
        tie_weights: one name of a tied tensor stands for all of them.
        stack_weights: tensors are put back in the opposite order, for names that
            lead to one place.

    Example:
        >>> layer = taeda.nn.Linear(1, 1, bias=False)
        >>> tensors = {"weight": taeda.full((1, 1), 3.0)}
        >>> with taeda.nn.utils.stateless._reparametrize_module(layer, tensors):
        ...     layer(taeda.ones(1))
        tensor([3.])
    """
    return swapped(module, parameters_and_buffers, tie_weights, strict, stack_weights)


class swapped:
    """Within this context a module has other tensors."""

    def __init__(
        self, module, tensors, tie_weights=True, strict=False, reverse=False
    ) -> None:
        self.reverse = reverse
        self.accessor = NamedMemberAccessor(module)
        self.given = tensors
        self.tensors = _with_ties(module, tensors) if tie_weights else dict(tensors)
        if strict:
            self._check()

    def _check(self) -> None:
        missing, _ = self.accessor.check_keys(self.tensors)
        _, unknown = self.accessor.check_keys(self.given)
        named = (("Unexpected", unknown), ("Missing", missing))
        lines = [
            f"\n\t{what} key(s): {', '.join(map(repr, names))}."
            for what, names in named
            if names
        ]
        if lines:
            owner = type(self.accessor.module).__name__
            raise RuntimeError(
                f"Error(s) in reparametrizing for {owner}:" + "".join(lines)
            )

    def __enter__(self) -> None:
        self.old, _ = self.accessor.swap_tensors_dict(self.tensors, allow_missing=True)

    def __exit__(self, *error) -> None:
        if self.reverse:
            self.old = dict(reversed(self.old.items()))
        # What the module assigned meanwhile is what the caller's dictionary holds then.
        new, _ = self.accessor.swap_tensors_dict(self.old, allow_missing=True)
        self.given.update({name: new[name] for name in self.given if name in new})
