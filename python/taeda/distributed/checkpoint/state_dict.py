"""States of models and optimizers under the names that they have unwrapped.

What DistributedDataParallel, FSDP, `fully_shard`, tensor parallel, activation
checkpointing and the compiler put around a model does not show, so a state that was
saved with one of them can be loaded with another.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import taeda
import taeda.distributed as dist
from taeda import nn

from ._model_names import canonical, fsdp_context
from ._optimizer_state import named_state, set_named_state
from ._spread import gathered, scattered

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

FQNS_T = set[str]
PrimitiveType = taeda.Tensor | int | float | str
ValueType = PrimitiveType | list[PrimitiveType] | tuple[PrimitiveType] | dict[str, Any]
DictValueType = dict[str, ValueType]
ListDictValueType = list[DictValueType]
OptimizerStateType = dict[str, DictValueType | ListDictValueType]


@dataclass
class StateDictOptions:
    """How states are returned and set.

    Attributes:
        full_state_dict (bool): with whole tensors, not with this rank's parts.
        cpu_offload (bool): tensors on the CPU; with `full_state_dict` at the first
            rank only, the others get an empty state.
        ignore_frozen_params (bool): without parameters that need no gradient.
        keep_submodule_prefixes (bool): deprecated, with `submodules`: False takes the
            submodule's own name away.
        strict (bool): names that are missing or not known are errors.
        broadcast_from_rank0 (bool): only the first rank has the state that is set, a
            full one, and sends it tensor by tensor.
        flatten_optimizer_state_dict (bool): an optimizer's state without nesting,
            "state.NAME.KEY" and "param_groups.NAME.KEY".
        dsd_fqn_modifiers (str): a method of modules that leaves out parts of names.
    """

    full_state_dict: bool = False  # whole tensors
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True  # deprecated
    strict: bool = True  # names are compared
    broadcast_from_rank0: bool = False  # the others need none
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError(
            "full_state_dict must be True when broadcast_from_rank0 is True."
        )
    return options


def _several(optimizers: Any, only: bool = False) -> tuple:
    """One optimizer or some as a tuple."""
    one = isinstance(optimizers, taeda.optim.Optimizer)
    found = (optimizers,) if one else tuple(optimizers)
    if only and not found:
        raise RuntimeError("no optimizer was given whose state is meant")
    return found


def _own_state(model: nn.Module, options: StateDictOptions) -> dict:
    """Name without wrappers -> (name with them, value)."""
    with fsdp_context(model, options):
        state = model.state_dict()
    modifiers = options.dsd_fqn_modifiers
    return {canonical(model, k, modifiers): (k, v) for k, v in state.items()}


def _of_submodules(
    model: nn.Module, state: dict, submodules: set, options: StateDictOptions
) -> dict:
    warnings.warn(
        "submodules is deprecated: select from the state by its names",
        FutureWarning,
        stacklevel=3,
    )
    found = {}
    for name, module in model.named_modules():
        if module not in submodules:
            continue
        prefix = f"{canonical(model, name, options.dsd_fqn_modifiers)}."
        cut = 0 if options.keep_submodule_prefixes else len(prefix)
        found |= {k[cut:]: v for k, v in state.items() if k.startswith(prefix)}
    return found


def _model_state(
    model: nn.Module, submodules: set | None, options: StateDictOptions
) -> dict:
    state = {name: value for name, (_, value) in _own_state(model, options).items()}
    if submodules:
        state = _of_submodules(model, state, submodules, options)
    elif options.ignore_frozen_params:
        for name, param in model.named_parameters():
            if not param.requires_grad:
                state.pop(canonical(model, name, options.dsd_fqn_modifiers), None)
    return gathered(state, options.full_state_dict, options.cpu_offload)


@taeda.no_grad()
def get_model_state_dict(
    model: nn.Module,
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, ValueType]:
    """The state of a model; arguments as of `get_state_dict`.

    Example:
        >>> whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
        >>> state = get_model_state_dict(model, options=whole)
    """
    return _model_state(model, submodules, _checked(options))


@taeda.no_grad()
def get_optimizer_state_dict(
    model: nn.Module,
    optimizers: taeda.optim.Optimizer | Iterable[taeda.optim.Optimizer],
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> OptimizerStateType:
    """The states of optimizers; arguments as of `get_state_dict`.

    Raises:
        RuntimeError: no optimizer is given.
    """
    return named_state(model, _several(optimizers, only=True), _checked(options))


@taeda.no_grad()
def get_state_dict(
    model: nn.Module,
    optimizers: taeda.optim.Optimizer | Iterable[taeda.optim.Optimizer],
    *,
    submodules: set[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, ValueType], OptimizerStateType]:
    """The states of a model and its optimizers, which any number of ranks can load.

    Args:
        model: wrapped or not.
        optimizers: one or some. One that has made no step makes one without effect, to
            have a state.
        submodules: deprecated; only these modules' part of the model's state.
        options (StateDictOptions): how.

    Returns:
        The model's state by names, and the optimizers': {"state": {name: {...}},
        "param_groups": [{..., "params": [names]}]}.

    On every rank:
        model_state, optimizer_state = get_state_dict(model, optimizer)
        dcp.save({"model": model_state, "optimizer": optimizer_state},
                 checkpoint_id="step100")
    """
    checked = _checked(options)
    state = _model_state(model, submodules, checked)
    found = _several(optimizers)
    return state, named_state(model, found, checked) if found else {}


def _by_names(model: nn.Module, given: dict) -> dict:
    """A state by submodules, as it once could be given, by names."""
    if not any(isinstance(key, nn.Module) for key in given):
        return given
    warnings.warn(
        "states by modules are deprecated: give one by names",
        FutureWarning,
        stacklevel=3,
    )
    found = {}
    for name, module in model.named_modules():
        for key, value in given.get(module, {}).items():
            found[f"{canonical(model, name)}.{key}"] = value
    return found


@taeda.no_grad()
def set_model_state_dict(
    model: nn.Module,
    model_state_dict: dict[str, ValueType],
    *,
    options: StateDictOptions | None = None,
):
    """Loads the state of a model; arguments as of `set_state_dict`."""
    options = _checked(options)
    given = _by_names(model, model_state_dict)
    if not given and not options.broadcast_from_rank0:
        lenient = options.ignore_frozen_params or not options.strict
        if not (lenient or (options.cpu_offload and options.full_state_dict)):
            raise RuntimeError("the model state_dict is empty, and strict is True")
        return nn.modules.module._IncompatibleKeys([], [])
    own = _own_state(model, options)
    values = {name: value for name, (_, value) in own.items()}
    unmade = any(getattr(v, "is_meta", False) for v in values.values())
    if options.full_state_dict:
        from_first = options.broadcast_from_rank0 and dist.is_initialized()
        given = scattered(given, values, from_first, options.strict)
    wrapped = {own[k][0] if k in own else k: value for k, value in given.items()}
    with fsdp_context(model, options):
        return model.load_state_dict(
            wrapped,
            strict=options.strict,
            assign=unmade and options.full_state_dict,
        )


@taeda.no_grad()
def set_optimizer_state_dict(
    model: nn.Module,
    optimizers: taeda.optim.Optimizer | Iterable[taeda.optim.Optimizer],
    optim_state_dict: OptimizerStateType,
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Loads the states of optimizers; arguments as of `set_state_dict`."""
    options, found = _checked(options), _several(optimizers, only=True)
    elsewhere = options.cpu_offload and options.full_state_dict
    if not optim_state_dict and not (elsewhere or options.broadcast_from_rank0):
        raise RuntimeError("the optimizers' state_dict is empty")
    set_named_state(model, found, optim_state_dict, options)


def set_state_dict(
    model: nn.Module,
    optimizers: taeda.optim.Optimizer | Iterable[taeda.optim.Optimizer],
    *,
    model_state_dict: dict[str, ValueType],
    optim_state_dict: OptimizerStateType,
    options: StateDictOptions | None = None,
):
    """Loads the states of a model and its optimizers.

    To be called before a backward or after a step.

    Args:
        model: wrapped or not, in whichever way. optimizers: one or some.
        model_state_dict, optim_state_dict: as `get_state_dict` returns them.
        options (StateDictOptions): how; `full_state_dict` if tensors are whole.

    Returns:
        `missing_keys` and `unexpected_keys`, as of `load_state_dict`.

    Raises:
        RuntimeError: a state is empty, or with `strict` names differ.
    """
    found = _several(optimizers)
    result = set_model_state_dict(model, model_state_dict, options=options)
    if found:
        set_optimizer_state_dict(model, found, optim_state_dict, options=options)
    return result
