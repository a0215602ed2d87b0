"""The base of every optimizer: parameter groups, state, hooks, checkpoints."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable

import taeda
from taeda import Tensor
from taeda.utils.hooks import RemovableHandle

TYPE_CHECKING = False  # `typing` is slow to import
if TYPE_CHECKING:
    from typing import Any


__all__ = [
    "Optimizer",
    "ParamsT",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

ParamsT = Iterable[Tensor] | Iterable[dict[str, "Any"]] | Iterable[tuple[str, Tensor]]
_global_optimizer_pre_hooks: dict = OrderedDict()
_global_optimizer_post_hooks: dict = OrderedDict()


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class StateMap(defaultdict):
    """Parameter -> its state; counts changes so that step() may keep lists."""

    def __init__(self, items=()) -> None:
        super().__init__(dict, items)
        self.version = 0

    def __setitem__(self, key, value) -> None:
        self.version += 1
        super().__setitem__(key, value)

    def __delitem__(self, key) -> None:
        self.version += 1
        super().__delitem__(key)

    def _counted(name):
        method = getattr(defaultdict, name)

        def call(self, *args, **kwargs):
            self.version += 1
            return method(self, *args, **kwargs)

        call.__name__ = name
        return call

    clear, pop, popitem, update, setdefault, __ior__ = map(
        _counted, ("clear", "pop", "popitem", "update", "setdefault", "__ior__")
    )
    del _counted

    def __reduce__(self):
        # As PyTorch's; an optimizer makes its own of it again.
        return (defaultdict, (dict,), None, None, iter(self.items()))


def _hooked(func):
    """Runs the step hooks around `func`, a `step`; calls inside of it pass through."""
    if getattr(func, "hooked", False):
        return func

    def call(self, *args, **kwargs):
        own = self.__dict__
        pre = own.get("_optimizer_step_pre_hooks")
        post = own.get("_optimizer_step_post_hooks")
        if not (
            pre or post or _global_optimizer_pre_hooks or _global_optimizer_post_hooks
        ) or own.get("_stepping"):
            return func(self, *args, **kwargs)
        self._stepping = True
        try:
            return self._step_between_hooks(func, args, kwargs)
        finally:
            del self._stepping

    call.__name__, call.__qualname__ = func.__name__, func.__qualname__
    call.__doc__, call.__module__ = func.__doc__, func.__module__
    call.__wrapped__ = func
    call.hooked = True
    call.held_whole = True  # one call of a captured graph: compiler/_operators.py
    return call


_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class Optimizer:
    """Base class of optimizers.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with the key "params" and
            options that override `defaults` for that group.
        defaults (dict): options and their values.

    Raises:
        TypeError: `params` is a single tensor, or holds something else.
        ValueError: no parameters, a non-leaf, or one in two groups.

    Example:
        >>> optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
        >>> optimizer.zero_grad(); loss.backward(); optimizer.step()
    """

    profile_hook_step = staticmethod(_hooked)
    OptimizerPreHook = OptimizerPostHook = Callable

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _hooked(cls.__dict__["step"])

    def __init__(self, params, defaults: dict) -> None:
        self.defaults = defaults
        for name in _HOOK_TABLES:
            setattr(self, name, OrderedDict())
        if isinstance(params, taeda.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of "
                f"Tensors or dicts, but got {_type_name(params)}"
            )
        self.state = StateMap()
        self.param_groups: list = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict:
        keys = ("defaults", "state", "param_groups")
        return {key: self.__dict__[key] for key in keys}

    def _patch_step_function(self) -> None:
        """Hooks around `step`, which a class has from its definition on."""

    def __setstate__(self, state: dict) -> None:
        own = self.__dict__
        own.update(state)
        own.pop("_plans", None)
        if type(own.get("state")) is not StateMap:
            own["state"] = StateMap(own.get("state", ()))
        for name in _HOOK_TABLES:
            own.setdefault(name, OrderedDict())
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += [""] * (number > 0) + [f"Parameter Group {number}"]
            options = sorted(k for k in group if k != "params")
            lines += [f"    {key}: {group[key]}" for key in options]
        return "\n".join(lines) + "\n)"

    def step(self, closure=None):
        """Update the parameters once; returns what `closure` returned.

        Args:
            closure: clears the gradients, computes the loss, calls backward and
                returns the loss. Most optimizers do without.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    def _step_between_hooks(self, step, args, kwargs):
        pre, post = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        for hook in [*_global_optimizer_pre_hooks.values(), *pre.values()]:
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    f"step pre-hook {hook} must return None or a tuple "
                    f"(new_args, new_kwargs), but got {changed}"
                )
            args, kwargs = changed
        result = step(self, *args, **kwargs)
        for hook in [*post.values(), *_global_optimizer_post_hooks.values()]:
            hook(self, args, kwargs)
        return result

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Args:
            set_to_none: drop them (the default); False fills them with zeros.
        """
        if set_to_none:
            for group in self.param_groups:
                for p in group["params"]:
                    p.grad = None
            return
        dense: dict = {}
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                elif grad.requires_grad:
                    grad.requires_grad_(False)
                if grad.is_sparse:
                    grad.zero_()
                else:
                    dense.setdefault((grad.device, grad.dtype), []).append(grad)
        for grads in dense.values():
            taeda._foreach_zero_(grads)

    def add_param_group(self, param_group: dict) -> None:
        """Add a group of parameters; missing options come from the defaults.

        Args:
            param_group (dict): "params" and options.

        Raises:
            TypeError: not a dict, a set of parameters, or a non-tensor in it.
            ValueError: a non-leaf, names on some only, or a tensor already held.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        self._split_names(param_group)
        params = param_group["params"]
        for p in params:
            self._check_parameter(p)
        for name, value in self.defaults.items():
            if value is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required "
                    f"optimization parameter {name}"
                )
            param_group.setdefault(name, value)
        self._check_overlap(param_group)
        self.param_groups.append(param_group)
        self.__dict__.pop("_plans", None)

    @staticmethod
    def _split_names(group: dict) -> None:
        given = group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need an order that is the same in every run; "
                "a set has none: pass a list"
            )
        given = [given] if isinstance(given, taeda.Tensor) else list(given)
        names = [entry[0] for entry in given if isinstance(entry, tuple)]
        group["params"] = [e[1] if isinstance(e, tuple) else e for e in given]
        if names and len(names) != len(given):
            raise ValueError(
                "all optimizer params should be with/without names. "
                "Some param names are missing"
            )
        if names:
            group["param_names"] = names

    def _check_parameter(self, p) -> None:
        if not isinstance(p, taeda.Tensor):
            raise TypeError(
                "optimizer can only optimize Tensors, but one of the params is "
                + _type_name(p)
            )
        if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")

    def _check_overlap(self, group: dict) -> None:
        params, named = group["params"], "param_names" in group
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; "
                "in future, this will cause an error",
                stacklevel=4,
            )
        for other in self.param_groups:
            if named != ("param_names" in other):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot "
                    f"add param group {'with' if named else 'without'} names to the "
                    "optimizer"
                )
            if not ids.isdisjoint(map(id, other["params"])):
                raise ValueError(
                    "some parameters appear in more than one parameter group"
                )

    def state_dict(self) -> dict[str, Any]:
        """Return {"state": ..., "param_groups": ...} with parameters as numbers.

        The tensors are the optimizer's own, not copies.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        number: dict = {}
        groups, count = [], 0
        for group in self.param_groups:
            for place, p in enumerate(group["params"], count):
                number.setdefault(id(p), place)
            count += len(group["params"])
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [number[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            number[id(k)] if isinstance(k, taeda.Tensor) else k: v
            for k, v in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            result = result if changed is None else changed
        return result

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over options and state that `state_dict()` returned.

        State tensors move to the device and, for floating-point parameters, the
        dtype of their parameter; "step" counters keep theirs unless the group is
        fused or capturable.

        Raises:
            ValueError: the groups differ in number or size.
        """
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        from copy import deepcopy

        saved = deepcopy(state_dict["param_groups"])
        self._check_groups(saved)
        params, policy = {}, {}
        for group, loaded in zip(self.param_groups, saved, strict=True):
            exact_step = bool(loaded.get("fused") or loaded.get("capturable"))
            for key, p in zip(loaded["params"], group["params"], strict=True):
                params[key], policy[key] = p, exact_step
            loaded["params"] = group["params"]
            if "param_names" in group:
                loaded.setdefault("param_names", group["param_names"])
        state = StateMap()
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _adapt(params[key], value, policy[key])
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _check_groups(self, saved: list) -> None:
        if len(saved) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups "
                f"({len(saved)} instead of {len(self.param_groups)})"
            )
        for number, (have, want) in enumerate(
            zip(saved, self.param_groups, strict=True)
        ):
            if len(have["params"]) != len(want["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match "
                    f"the size of optimizer's group (group {number}: "
                    f"{len(have['params'])} instead of {len(want['params'])})"
                )

    def _register(self, table: str, hook, prepend: bool = False) -> RemovableHandle:
        hooks = self.__dict__[table]
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_step_pre_hook(self, hook) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) before step; may replace both."""
        return self._register("_optimizer_step_pre_hooks", hook)

    def register_step_post_hook(self, hook) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) after step."""
        return self._register("_optimizer_step_post_hooks", hook)

    def register_state_dict_pre_hook(self, hook, prepend: bool = False):
        """Call hook(optimizer) before state_dict()."""
        return self._register("_optimizer_state_dict_pre_hooks", hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend: bool = False):
        """Call hook(optimizer, state_dict) -> replacement or None."""
        return self._register("_optimizer_state_dict_post_hooks", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend: bool = False):
        """Call hook(optimizer, state_dict) before loading; may replace it."""
        return self._register("_optimizer_load_state_dict_pre_hooks", hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend: bool = False):
        """Call hook(optimizer) after loading."""
        return self._register("_optimizer_load_state_dict_post_hooks", hook, prepend)


def _type_name(value) -> str:
    kind = type(value)
    module = kind.__module__
    return kind.__name__ if module == "builtins" else f"{module}.{kind.__name__}"


def _adapt(p, value, exact_step: bool, key=None):
    """State as loaded -> state for parameter `p`; containers keep their type."""
    if isinstance(value, taeda.Tensor):
        if key == "step":
            if not exact_step:
                return value
            return value.to(dtype=taeda.float32, device=p.device)
        if p.is_floating_point():
            return value.to(dtype=p.dtype, device=p.device)
        return value.to(device=p.device)
    if isinstance(value, dict):
        return {k: _adapt(p, v, exact_step, k) for k, v in value.items()}
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return value
    return type(value)(_adapt(p, v, exact_step) for v in value)


def _register_global(table: dict, hook) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def register_optimizer_step_pre_hook(hook) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) before the step of every optimizer."""
    return _register_global(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) after the step of every optimizer."""
    return _register_global(_global_optimizer_post_hooks, hook)
