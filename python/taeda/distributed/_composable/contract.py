"""Functions that are applied to a module at most once, and keep a state for it."""

from __future__ import annotations

from functools import wraps

from taeda.nn import Module

__all__ = ["RegistryItem", "contract"]

_STATES, _REGISTRY = "__composable_api_state_key", "__composable_api_registry_key"


class RegistryItem:
    """That a function was applied."""


class _State:
    """What a function knows of a module; its own class may replace this one."""


def contract(state_cls: type = _State):
    """Makes a function of modules one that is applied to each at most once.

    Args:
        state_cls: made for each call; `function.state(module)` returns it.

    Returns:
        A decorator. The function takes a module, or a list of them, and returns the
        same or None; it may not add, drop or reorder names.

    Raises:
        AssertionError: applied again.
        RuntimeError: names changed.
    """

    def decorate(function):
        @wraps(function)
        def applied(module, *args, **kwargs):
            modules = [module] if isinstance(module, Module) else list(module)
            state, item = state_cls(), RegistryItem()
            for one in modules:
                _enter(one, applied, function.__name__, state, item)
            before = [_names(one) for one in modules]
            result = function(module, *args, **kwargs)
            result = module if result is None else result
            after = [result] if isinstance(result, Module) else list(result)
            if len(after) != len(modules):
                raise AssertionError(
                    f"{function.__name__}: expected {len(modules)} modules back, got "
                    f"{len(after)}"
                )
            for names, one in zip(before, after, strict=True):
                _compare(names, _names(one))
            return result

        def state_of(module):
            return module.__dict__.get(_STATES, {}).get(applied)

        applied.state = state_of
        return applied

    return decorate


def _enter(module, applied, name: str, state, item) -> None:
    registry = module.__dict__.setdefault(_REGISTRY, {})
    if name in registry:
        raise AssertionError(
            "Each distinct composable distributed API can only be applied to a module "
            f"once. {name} has already been applied to the following module:\n{module}"
        )
    registry[name] = item
    module.__dict__.setdefault(_STATES, {})[applied] = state


def _names(module) -> list[tuple[str, list[str]]]:
    return [
        ("parameters", [name for name, _ in module.named_parameters()]),
        ("buffers", [name for name, _ in module.named_buffers()]),
        ("modules", [name for name, _ in module.named_modules()]),
    ]


def _compare(before, after) -> None:
    for (kind, old), (_, new) in zip(before, after, strict=True):
        if old == new:
            continue
        if set(old) == set(new):
            raise RuntimeError(
                f"Checking {kind}: Composable distributed API implementations cannot "
                f"modify the order of FQNs: {old} became {new}"
            )
        raise RuntimeError(
            f"Checking {kind}: Composable distributed API implementations cannot "
            f"modify FQNs: lost {set(old) - set(new)}, new {set(new) - set(old)}"
        )


def _get_registry(module) -> dict[str, RegistryItem] | None:
    """By name, which functions were applied to a module; None if none was."""
    return module.__dict__.get(_REGISTRY)
