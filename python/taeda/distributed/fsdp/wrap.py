"""Which modules become units of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

from taeda.nn import ModuleDict, ModuleList, MultiheadAttention

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


class _Policy(ABC):
    """Chooses modules of a tree, with the wrapper's arguments for each."""

    @abstractmethod
    def _run_policy(
        self, root_module, ignored_modules, root_kwargs: dict[str, Any]
    ) -> dict:
        """Module -> arguments."""


class ModuleWrapPolicy(_Policy):
    """Every module of some classes, with the outermost's arguments.

    Args:
        module_classes: the classes.
    """

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._classes = tuple(dict.fromkeys(module_classes))

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        return {
            module: dict(root_kwargs)
            for module in root_module.modules()
            if isinstance(module, self._classes) and module not in ignored_modules
        }

    def __call__(self, module, recurse, *args, **kwargs) -> bool:
        return bool(recurse) or isinstance(module, self._classes)

    def __repr__(self) -> str:
        return f"{super().__repr__()}({set(self._classes)})"


class CustomPolicy(_Policy):
    """What a function says of each module.

    Args:
        lambda_fn: given a module; False (or an empty dict) leaves it alone, True wraps
            it, a dict wraps it with other arguments than the outermost's.
    """

    def __init__(self, lambda_fn: Callable) -> None:
        self._says = lambda_fn

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        chosen = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._says(module)
            if not isinstance(answer, (bool, dict)):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or "
                    f"a kwarg dict, but it returned {answer}"
                )
            if answer:
                own = answer if isinstance(answer, dict) else {}
                chosen[module] = {**root_kwargs, **own}
        return chosen


# Policies as functions: called with `recurse` for whether to look below a module, and
# without it for whether to wrap what is left of it.


def always_wrap_policy(*args, **kwargs) -> bool:
    """Every module."""
    return True


def lambda_auto_wrap_policy(
    module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable
) -> bool:
    """Modules of which `lambda_fn` is true."""
    return True if recurse else lambda_fn(module)


def transformer_auto_wrap_policy(
    module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type]
) -> bool:
    """Modules of the given classes, such as a transformer's blocks."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def _or_policy(module, recurse: bool, nonwrapped_numel: int, policies) -> bool:
    """Modules that any of several policies chooses."""
    given = {"module": module, "recurse": recurse, "nonwrapped_numel": nonwrapped_numel}
    return any(policy(**given) for policy in policies)


def size_based_auto_wrap_policy(
    module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 100_000_000,
    force_leaf_modules: set[type] | None = None,
    exclude_wrap_modules: set[type] | None = None,
) -> bool:
    """Modules with many elements that no unit below has.

    Args:
        module, recurse, nonwrapped_numel: what is asked.
        min_num_params: from how many elements on.
        force_leaf_modules: classes below which nothing is wrapped.
        exclude_wrap_modules: classes that are not wrapped.
    """
    names = "FORCE_LEAF_MODULES" if recurse else "EXCLUDE_WRAP_MODULES"
    barred = force_leaf_modules if recurse else exclude_wrap_modules
    if barred is None:
        barred = getattr(size_based_auto_wrap_policy, names)
    return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(barred))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {ModuleList, ModuleDict}  # type: ignore[attr-defined]
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {MultiheadAttention}  # type: ignore[attr-defined]


class _Open:
    """What `wrap` does at present: (class, arguments) within `enable_wrap`.

    Set by the thread that builds the model; models are built by one thread at a time.
    """

    now: tuple[Any, dict] | None = None


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any):
    """Within it, `wrap(module)` gives `wrapper_cls(module, **wrapper_kwargs)`.

    Raises:
        NotImplementedError: entered twice.
    """
    if _Open.now is not None:
        raise NotImplementedError(
            "enable_wrap: already within another one, and nesting is not supported"
        )
    _Open.now = wrapper_cls, wrapper_kwargs
    try:
        yield
    finally:
        _Open.now = None


def wrap(module, **wrap_overrides: Any):
    """The module, wrapped where this runs within `enable_wrap`.

    Args:
        module: it.
        wrap_overrides: arguments in place of those of `enable_wrap`.
    """
    if _Open.now is None:
        return module
    cls, kwargs = _Open.now
    return cls(module, **{**kwargs, **wrap_overrides})


def wrap_below(root, policy, cls, ignored_modules, ignored, kwargs) -> None:
    """Replaces the modules below `root` that a policy chooses by wrapped ones.

    Args:
        root: is not wrapped itself.
        policy: an object with `_run_policy` or a function.
        cls: the wrapper.
        ignored_modules: left alone.
        ignored: parameters that do not count.
        kwargs: the wrapper's arguments; `mixed_precision` among them may name classes
            that keep their precision, each in a unit of its own.
    """
    mixed = kwargs.get("mixed_precision")
    apart = tuple(mixed._module_classes_to_ignore) if mixed is not None else ()
    apart = tuple(c for c in apart if any(isinstance(m, c) for m in root.modules()))
    if apart:
        import warnings

        warnings.warn(
            "Both mixed precision and an auto_wrap_policy were specified to FSDP, "
            "where the wrapped module has submodules of type:\n"
            f"{set(apart)}\nThese modules will be wrapped as separate FSDP instances "
            "with mixed precision disabled.",
            stacklevel=4,
        )
    if isinstance(policy, _Policy):
        chosen = policy._run_policy(root, ignored_modules, kwargs)
    else:
        chosen = {}
        _choose(root, policy, ignored_modules, ignored, kwargs, chosen)
    for module in root.modules() if apart else ():
        if isinstance(module, apart) and module not in ignored_modules:
            given = chosen.get(module, kwargs)
            chosen[module] = {**given, "mixed_precision": None}
    chosen.pop(root, None)
    _replace(root, chosen, cls, {root})


def _choose(module, policy, ignored_modules, ignored, kwargs, chosen, is_root=True):
    """Asks a function, from below; returns how many elements are in units."""
    free = sum(p.numel() for p in module.parameters() if p not in ignored)
    if not policy(module=module, recurse=True, nonwrapped_numel=free):
        return 0
    wrapped = 0
    for child in module.children():
        if child not in ignored_modules:
            below = child, policy, ignored_modules, ignored, kwargs, chosen
            wrapped += _choose(*below, is_root=False)
    left = free - wrapped
    if is_root or not policy(module=module, recurse=False, nonwrapped_numel=left):
        return wrapped
    chosen[module] = dict(kwargs)
    return free


def _replace(module, chosen, cls, seen) -> None:
    for name, child in list(module.named_children()):
        if child not in seen:
            seen.add(child)
            _replace(child, chosen, cls, seen)
        if child in chosen:
            setattr(module, name, cls(child, **chosen[child]))
