"""An optimizer whose state is divided among ranks (ZeRO stage 1, arXiv:1910.02054)."""

from __future__ import annotations

import copy
from typing import Any

import taeda
from taeda.optim import Optimizer

from .._collectives import broadcast
from .._join import _get_default_group
from .._objects import gather_object
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class _ZeroJoinHook(JoinHook):
    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self._zero = zero

    def main_hook(self) -> None:
        """A step with the gradients that DDP's stand-in has left."""
        self._zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Each rank updates a part of the parameters and sends them to the others.

    Args:
        params: parameters, or groups of them, the same at every rank.
        optimizer_class: of the optimizer of each rank's part.
        process_group: the ranks; all if None.
        parameters_as_bucket_view: of no effect on results.
        overlap_with_ddp: not there.
        defaults: of the optimizer.

    Raises:
        ValueError: no parameters.
        RuntimeError: a state is asked for that is not consolidated here.
    """

    def __init__(
        self,
        params,
        optimizer_class: type[Optimizer],
        process_group: Any | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp")
        listed = [params] if isinstance(params, taeda.Tensor) else list(params)
        Joinable.__init__(self)
        self.process_group = process_group or _get_default_group()
        self.rank, self.world_size = (
            self.process_group.rank(),
            self.process_group.size(),
        )
        self._optim_constructor = optimizer_class
        self._defaults = defaults
        self._owner: dict[int, int] = {}
        self._loads = [0] * self.world_size
        self._states: list[dict] = []
        self.initialized = False
        super().__init__(listed, dict(defaults))
        self.optim = self._make_local()
        self.initialized = True

    # Who has which parameter.

    def _assign(self, group: dict) -> None:
        """Large parameters first, each to the rank with the least."""
        order = sorted(group["params"], key=lambda p: p.numel(), reverse=True)
        for p in order:
            rank = self._loads.index(min(self._loads))
            self._loads[rank] += p.numel()
            self._owner[id(p)] = rank

    def _make_local(self) -> Optimizer:
        groups = []
        for group in self.param_groups:
            mine = [p for p in group["params"] if self._owner[id(p)] == self.rank]
            options = {k: v for k, v in group.items() if k != "params"}
            groups.append({**options, "params": mine})
        made = self._optim_constructor(groups, **self._defaults)
        # Defaults of the class that were not given, for schedulers and states.
        for group, local in zip(self.param_groups, made.param_groups, strict=True):
            for name, value in local.items():
                if name != "params":
                    group.setdefault(name, value)
        return made

    def add_param_group(self, param_group: dict) -> None:
        """Adds parameters, divided among the ranks."""
        super().add_param_group(param_group)
        added = self.param_groups[-1]
        self._assign(added)
        if self.initialized:
            mine = [p for p in added["params"] if self._owner[id(p)] == self.rank]
            self.optim.add_param_group({**added, "params": mine})

    # Steps.

    def step(self, closure=None, **kwargs: Any):  # type: ignore[override]
        """A step of this rank's part, after which all parameters are sent."""
        Join.notify_join_context(self)
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**({"closure": closure} if closure else {}), **kwargs)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._send_parameters()
        return loss

    @staticmethod
    def _copy_options(source: list[dict], target: list[dict]) -> None:
        for a, b in zip(source, target, strict=True):
            b.update({k: v for k, v in a.items() if k != "params"})

    def _send_parameters(self) -> None:
        """Each rank's parameters, those of a dtype together."""
        with taeda.no_grad():
            for rank in range(self.world_size):
                by_dtype: dict = {}
                for group in self.param_groups:
                    for p in group["params"]:
                        if self._owner[id(p)] == rank:
                            by_dtype.setdefault(p.dtype, []).append(p)
                for parameters in by_dtype.values():
                    self._send(rank, parameters)

    def _send(self, rank: int, parameters: list) -> None:
        flat = taeda.cat([p.detach().reshape(-1) for p in parameters])
        broadcast(flat, group=self.process_group, group_src=rank)
        if rank == self.rank:
            return
        parts = flat.split([p.numel() for p in parameters])
        for p, part in zip(parameters, parts, strict=True):
            p.detach().copy_(part.view(p.shape))

    # States.

    def _numbers(self) -> dict[int, int]:
        """id of a parameter -> its number in the whole."""
        found: dict[int, int] = {}
        for group in self.param_groups:
            for p in group["params"]:
                found[id(p)] = len(found)
        return found

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Brings all ranks' states to one, as `state_dict` there needs.

        Args:
            to: the global rank; all call it.
        """
        numbers = self._numbers()
        mine = {numbers[id(p)]: s for p, s in self.optim.state.items()}
        states: list = [None] * self.world_size
        here = self.rank == to
        gather_object(
            mine, states if here else None, group=self.process_group, group_dst=to
        )
        self._states = states if here else []

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, as the optimizer alone would have it.

        Raises:
            RuntimeError: `consolidate_state_dict` did not bring it to this rank.
        """
        if not self._states:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if "
                "you meant to save the global state."
            )
        numbers = self._numbers()
        groups = [
            {
                **{k: copy.deepcopy(v) for k, v in group.items() if k != "params"},
                "params": [numbers[id(p)] for p in group["params"]],
            }
            for group in self.param_groups
        ]
        state = {n: s for part in self._states for n, s in part.items()}
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of all parameters; each rank keeps its part."""
        parameters = [p for group in self.param_groups for p in group["params"]]
        for number, state in state_dict["state"].items():
            p = parameters[number]
            if self._owner[id(p)] != self.rank:
                continue
            own = self.optim.state[p]
            for name, value in state.items():
                if isinstance(value, taeda.Tensor) and value.is_floating_point():
                    value = value.clone() if name == "step" else value.to(p.dtype)
                own[name] = copy.deepcopy(value)
        self._copy_options(state_dict["param_groups"], self.param_groups)
        self._copy_options(self.param_groups, self.optim.param_groups)

    # Uneven inputs.

    def join_hook(self, **kwargs) -> JoinHook:
        """Steps in place of a rank that has no more inputs."""
        return _ZeroJoinHook(self)

    @property
    def join_device(self) -> taeda.device:
        """The first parameter's device."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The ranks that share the state."""
        return self.process_group
