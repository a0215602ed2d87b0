"""Models cut into stages out of the graph that `taeda.export` makes.

A value goes from stage to stage until its last use: stages talk to their neighbours
only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import taeda
from taeda import fx, nn
from taeda.fx._codegen import _PyTreeInfo
from taeda.fx._patches import _trace
from taeda.fx.graph import _PyTreeCodeGen
from taeda.utils import _pytree as pytree

from .stage import PipelineStage, build_stage

__all__ = ["Pipe", "PipeInfo", "SplitPoint", "pipe_split", "pipeline"]

_PREFIX = "submod_"
_MARK = "pipe_split"  # in the meta of a node: how many cuts are behind it


class SplitPoint(Enum):
    """Where a model is cut: before a module is called, or after."""

    BEGINNING = 1
    END = 2


def pipe_split() -> None:
    """Cuts the model here when `pipeline` reads it; does nothing otherwise.

    Example:
        >>> def forward(self, x):
        ...     x = self.lower(x)
        ...     taeda.distributed.pipelining.pipe_split()
        ...     return self.upper(x)
    """
    trace = _trace()
    if trace is not None:
        # Exported graphs have operators only, so the node before it is marked.
        last = next(iter(reversed(trace.tracer.graph.nodes)))
        last.meta[_MARK] = last.meta.get(_MARK, 0) + 1


@dataclass
class PipeInfo:
    """What a pipe is.

    Attributes:
        graph: of the stages. num_stages: how many. has_loss_and_backward: False.
    """

    graph: fx.Graph
    num_stages: int
    has_loss_and_backward: bool


class Pipe(nn.Module):
    """A model in stages; calling it runs them one after another.

    Args:
        split_gm: a module whose graph calls `submod_0`, `submod_1` and so on.
        num_stages (int): how many. has_loss_and_backward, loss_spec: of the graph.

    Attributes:
        replicated_params: for each parameter that several stages use, stage -> its name
            there. Each stage has a copy, and their gradients are not added up.
    """

    def __init__(
        self,
        split_gm: fx.GraphModule,
        num_stages: int,
        has_loss_and_backward: bool,
        loss_spec: Any,
    ) -> None:
        super().__init__()
        self.split_gm, self.num_stages = split_gm, num_stages
        self.has_loss_and_backward = has_loss_and_backward
        self.loss_spec = loss_spec
        self.replicated_params = self._copies()

    def _copies(self) -> list[dict[str, str]]:
        users: dict[int, dict[str, str]] = {}
        for name, stage in self.split_gm.named_children():
            for path, param in stage.named_parameters():
                users.setdefault(id(param), {})[name] = path
        shared = [places for places in users.values() if len(places) > 1]
        for places in shared:
            for name, path in list(places.items())[1:]:
                owner, _, last = path.rpartition(".")
                module = self.split_gm.get_submodule(name).get_submodule(owner)
                param = getattr(module, last)
                copy = param.detach().clone()
                setattr(module, last, nn.Parameter(copy, param.requires_grad))
        return shared

    def __repr__(self) -> str:
        return repr(self.split_gm)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs all stages in this process."""
        first = self.get_stage_module(0)
        values = first(*args, **kwargs)
        for number in range(1, self.num_stages):
            given = values if isinstance(values, tuple) else (values,)
            values = self.get_stage_module(number)(*given)
        return values

    def get_stage_module(self, stage_idx: int) -> nn.Module:
        """The module of a stage.

        Raises:
            ValueError: there is no such stage.
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return self.split_gm.get_submodule(f"{_PREFIX}{stage_idx}")

    def info(self) -> PipeInfo:
        """What the pipe is, without its modules."""
        graph = self.split_gm.graph
        return PipeInfo(graph, self.num_stages, self.has_loss_and_backward)

    def build_stage(
        self,
        stage_index: int,
        device: taeda.device,
        group: Any = None,
    ) -> PipelineStage:
        """A stage for a schedule; arguments as of PipelineStage."""
        module = self.get_stage_module(stage_index)
        _move_makers(module, device)
        return build_stage(module, stage_index, self.info(), device, group)

    def print_readable(self) -> None:
        """Prints the code of the stages."""
        for name, stage in self.split_gm.named_children():
            print(f"{name}:\n{stage.code}")

    @staticmethod
    def from_tracing(
        mod: nn.Module,
        example_args: tuple[Any, ...],
        example_kwargs: dict[str, Any] | None = None,
        split_policy: Callable[[fx.GraphModule], fx.GraphModule] | None = None,
    ) -> Pipe:
        """The pipe of a model with `pipe_split` in it; see `pipeline`."""
        from taeda.export import export

        try:
            program = export(mod, example_args, example_kwargs)
        except Exception as error:
            raise RuntimeError(
                "It seems that we cannot capture your model as a full graph: "
                f"{error}\nParts can be made by hand: see PipelineStage"
            ) from error
        traced = program.module(check_guards=False)
        if split_policy is not None:
            traced = split_policy(traced)
        signature = program.module_call_graph[0].signature
        stages = _Cut(traced, signature).modules()
        return Pipe(_chain(stages, traced), len(stages), False, None)


def _move_makers(module: fx.GraphModule, device: Any) -> None:
    """Operators that make tensors do so on the stage's device."""
    for node in module.graph.nodes:
        if node.op == "call_function" and "device" in node.kwargs:
            node.update_kwarg("device", device)
    module.recompile()


class _Cut:
    """The stages of a traced model."""

    def __init__(self, traced: fx.GraphModule, signature: Any) -> None:
        self.traced, self.signature = traced, signature
        self.nodes = [n for n in traced.graph.nodes if n.target is not pipe_split]
        self.output = traced.graph.output_node()
        self.stage: dict[fx.Node, int] = {}
        current = 0
        for node in traced.graph.nodes:
            if node.target is pipe_split:
                current += 1
            elif node.op == "placeholder":
                self.stage[node] = 0
            elif node.op != "get_attr":
                self.stage[node] = current
            current += node.meta.get(_MARK, 0)
        self.count = current + 1
        for node in self.nodes:
            self._keep_with_state(node)

    def _keep_with_state(self, node: fx.Node) -> None:
        """New values of buffers, which stand at the end, are written where made."""
        target = node.args[0] if node.args else None
        writes = isinstance(target, fx.Node) and target.op == "get_attr"
        if writes and node.name.startswith("copy_"):
            others = [n for n in node.all_input_nodes if n in self.stage]
            self.stage[node] = max((self.stage[n] for n in others), default=0)

    def _needed(self, number: int) -> list[fx.Node]:
        """What a stage is given: made before it, and used by it or behind it."""
        found: dict[fx.Node, None] = {}
        for node in self.nodes:
            if node in self.stage and self.stage[node] < number:
                users = [u for u in node.users if self.stage.get(u, -1) >= number]
                if users:
                    found[node] = None
        return list(found)

    def modules(self) -> list[fx.GraphModule]:
        """The stages in order."""
        return [self._module(number) for number in range(self.count)]

    def _module(self, number: int) -> fx.GraphModule:
        graph, made = fx.Graph(), {}
        first, last = number == 0, number == self.count - 1
        given = [] if first else self._needed(number)
        for node in given:
            self._check_tensor(node)
            made[node] = graph.placeholder(node.name)

        def here(node: fx.Node) -> fx.Node:
            if node.op == "get_attr" and node not in made:
                made[node] = graph.node_copy(node)
            return made[node]

        for node in self.nodes:
            if self.stage.get(node) != number or node is self.output:
                continue
            for used in node.all_input_nodes:
                here(used)
            made[node] = graph.node_copy(node, here)
        if last:
            result = fx.map_arg(self.output.args[0], here)
            graph.output(pytree.tree_unflatten(list(result), self.signature.out_spec))
        else:
            passed = [here(node) for node in self._needed(number + 1)]
            graph.output(passed[0] if len(passed) == 1 else tuple(passed))
        if first:
            self._take_arguments(graph)
        module = fx.GraphModule(self.traced, graph, f"Stage{number}")
        for name, buffer in module.named_buffers():
            self._keep_persistence(module, name, buffer)
        return module

    def _keep_persistence(self, module: nn.Module, name: str, buffer: Any) -> None:
        path, _, last = name.rpartition(".")
        source = self.traced.get_submodule(path)
        if last in source._non_persistent_buffers_set:
            module.get_submodule(path)._non_persistent_buffers_set.add(last)

    def _take_arguments(self, graph: fx.Graph) -> None:
        """The first stage is called as the model was."""
        spec = self.signature.in_spec
        leaves = [*spec.child(0).children(), *spec.child(1).children()]
        if all(child.is_leaf() for child in leaves):
            return  # one placeholder for each argument
        names = self.signature.forward_arg_names or []
        if not names:
            raise NotImplementedError(
                "pipeline: nested arguments of a model whose arguments have no names"
            )
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, spec, None)))

    def _check_tensor(self, node: fx.Node) -> None:
        value = node.meta.get("val")
        if value is not None and not isinstance(value, taeda.Tensor):
            raise NotImplementedError(
                f"pipeline: the {type(value).__name__} {node.name} would go from stage "
                "to stage; only tensors do. Cut the model elsewhere."
            )


def _chain(stages: list[fx.GraphModule], traced: fx.GraphModule) -> fx.GraphModule:
    """A module that calls the stages one after another."""
    root, graph = nn.Module(), fx.Graph()
    values: list = [
        graph.placeholder(n.name) for n in traced.graph.nodes if n.op == "placeholder"
    ]
    for number, stage in enumerate(stages):
        root.add_module(f"{_PREFIX}{number}", stage)
        result = graph.call_module(f"{_PREFIX}{number}", tuple(values))
        given = stage.graph.output_node().args[0]
        values = [result]
        if isinstance(given, tuple) and number + 1 < len(stages):
            values = [
                graph.call_function(_item, (result, i)) for i in range(len(given))
            ]
    graph.output(values[0])
    return fx.GraphModule(root, graph, "GraphModule")


def _item(values: tuple, index: int) -> Any:
    return values[index]


@contextlib.contextmanager
def _split_at(module: nn.Module, spec: dict[str, SplitPoint]) -> Iterator[None]:
    """Calls `pipe_split` before or after modules are called."""
    changed = []
    try:
        for name, point in spec.items():
            if not isinstance(point, SplitPoint):
                raise ValueError(f"Unknown split point type {point!r} of {name!r}")
            part = module.get_submodule(name)
            changed.append((part, vars(part).get("forward")))
            part.forward = _with_split(part.forward, point)
        yield
    finally:
        for part, own in reversed(changed):
            if own is None:
                del part.forward
            else:
                part.forward = own


def _with_split(forward: Callable, point: SplitPoint) -> Callable:
    def call(*args: Any, **kwargs: Any) -> Any:
        if point is SplitPoint.BEGINNING:
            pipe_split()
        result = forward(*args, **kwargs)
        if point is SplitPoint.END:
            pipe_split()
        return result

    return call


def pipeline(
    module: nn.Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[fx.GraphModule], fx.GraphModule] | None = None,
) -> Pipe:
    """Cuts a model into stages.

    Args:
        module: one that `taeda.export` can read.
        mb_args, mb_kwargs: the arguments of a micro-batch; sizes are fixed by them.
        split_spec (dict): name of a submodule -> SplitPoint. By default the model is
            cut where it calls `pipe_split`.
        split_policy: puts `pipe_split` into the traced graph, in place of `split_spec`.

    Raises:
        ValueError: both ways of cutting. AttributeError: there is no such submodule.
        RuntimeError: the model cannot be exported. NotImplementedError: numbers would
            go from stage to stage.

    On every rank:
        pipe = pipeline(model, (x[:2],), split_spec={"4": SplitPoint.BEGINNING})
        stage = pipe.build_stage(rank, device)
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError(
            "Cannot specify both `split_spec` and `split_policy`. Please use only one "
            "of them."
        )
    with _split_at(module, split_spec or {}):
        return Pipe.from_tracing(module, mb_args, mb_kwargs, split_policy)
