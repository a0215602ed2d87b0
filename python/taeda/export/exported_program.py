"""`ExportedProgram`: a graph with the state that it needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import taeda
from taeda import nn
from taeda.fx.graph_module import GraphModule

from .graph_signature import ExportGraphSignature, InputKind

__all__ = [
    "CallSpec",
    "ExportedProgram",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "SpecViolationError",
    "default_decompositions",
]


class CallSpec(NamedTuple):
    """The structures of the arguments and of the result."""

    in_spec: Any
    out_spec: Any


@dataclasses.dataclass
class ModuleCallSignature:
    """How a submodule was called: nodes of inputs and outputs, and their structures."""

    inputs: list
    outputs: list
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node, new_node) -> None:
        """A node of the graph takes another one's place."""
        for arg in (*self.inputs, *self.outputs):
            if arg.name == original_node.name:
                arg.name = new_node.name


@dataclasses.dataclass
class ModuleCallEntry:
    """A submodule by its path; the signature where it was asked for."""

    fqn: str
    signature: ModuleCallSignature | None = None


class SpecViolationError(Exception):
    """A graph is not what an exported program may have."""


def default_decompositions():
    """The table that `run_decompositions` uses: operator -> how it is made of others.

    A program may take entries out, so that those operators stay whole, or put others
    in.

    Example:
        >>> table = taeda.export.default_decompositions()
        >>> taeda.ops.aten.linear.default in table
        True
    """
    from .decomp_utils import CustomDecompTable

    return CustomDecompTable()


class ExportedProgram:
    """A program as one graph of operators whose inputs hold its state too.

    The graph takes parameters, buffers and constants first, then the leaves of the
    caller's arguments; `graph_signature` says which is which. `module()` gives a module
    that is called as the original one.

    Args:
        root: the GraphModule of the graph, or a module or dict with what it names.
        graph: the graph.
        graph_signature: its inputs and outputs.
        state_dict: path -> parameter or persistent buffer.
        range_constraints: symbol -> the sizes it may have.
        module_call_graph: the module itself, and its submodules.
        example_inputs: (args, kwargs) for which it was made.
        constants: name -> tensor that is no parameter; other buffers are there too.
        verifiers: not used.
        guards: conditions on the caller's inputs, as text.
    """

    def __init__(
        self,
        root,
        graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict,
        range_constraints: dict,
        module_call_graph: list[ModuleCallEntry],
        example_inputs=None,
        constants: dict | None = None,
        *,
        verifiers=None,
        guards=(),
    ) -> None:
        whole = isinstance(root, GraphModule) and root.graph is graph
        self._graph_module = root if whole else GraphModule(root, graph)
        self._graph_signature = graph_signature
        self._state_dict = state_dict
        self._range_constraints = range_constraints
        self._module_call_graph = module_call_graph
        self._example_inputs = example_inputs
        self._constants = constants or {}
        self._guards = list(guards)
        self.validate()

    # Its parts --------------------------------------------------------------------

    @property
    def graph_module(self) -> GraphModule:
        """The module of the graph, whose inputs are those of the signature."""
        return self._graph_module

    @property
    def graph(self):
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What inputs and outputs of the graph stand for."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Path -> parameter or persistent buffer."""
        return self._state_dict

    @property
    def range_constraints(self) -> dict:
        """Symbol -> the sizes that it may have."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The module itself (path ""), and its submodules."""
        return self._module_call_graph

    @property
    def example_inputs(self):
        """(args, kwargs) for which the program was made."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value) -> None:
        if value is not None:
            kinds = (
                [type(v) for v in value] if isinstance(value, tuple) else type(value)
            )
            if kinds != [tuple, dict]:
                raise ValueError(
                    "Example inputs should be a tuple of arguments, a tuple, and of "
                    f"keyword arguments, a dict; got {kinds}"
                )
        self._example_inputs = value

    @property
    def call_spec(self) -> CallSpec:
        """The structures of the arguments and of the result."""
        whole = self._module_call_graph[0].signature
        return CallSpec(whole.in_spec, whole.out_spec)

    @property
    def constants(self) -> dict[str, Any]:
        """Name -> tensor that is no parameter and not in the state dict."""
        return self._constants

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """As `constants`."""
        return self._constants

    @property
    def dialect(self) -> str:
        """TRAINING while composites may be in the graph, else ATEN."""
        return self._graph_module.meta.get("dialect", "TRAINING")

    def _of(self, paths, table) -> Iterator:
        for path in paths:
            yield path, table[path]

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Paths and parameters."""
        yield from self._of(self.graph_signature.parameters, self._state_dict)

    def buffers(self) -> Iterator[taeda.Tensor]:
        """The buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self) -> Iterator[tuple[str, taeda.Tensor]]:
        """Paths and buffers."""
        table = {**self._constants, **self._state_dict}
        yield from self._of(self.graph_signature.buffers, table)

    def tensor_of(self, spec) -> taeda.Tensor:
        """The tensor of an input that is not the caller's."""
        first, second = self._state_dict, self._constants
        if spec.kind is InputKind.CONSTANT_TENSOR:
            first, second = second, first
        return first[spec.target] if spec.target in first else second[spec.target]

    # What is made of it -----------------------------------------------------------

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that is called as the original one, and shares its state.

        Args:
            check_guards: refuse inputs for which the program was not made.

        Raises:
            ValueError: when called, with arguments of another structure.
            AssertionError: when called, with other sizes or constants.
        """
        from ._unlift import unlifted

        return unlifted(self, check_guards)

    def run_decompositions(
        self, decomp_table: dict | None = None, decompose_custom_triton_ops=False
    ) -> ExportedProgram:
        """The program by the core operators, without writes.

        New values of buffers and inputs become outputs of the graph.

        Args:
            decomp_table: operator -> how it is made of others; by default
                `default_decompositions()`. Composites without an entry stay whole.
            decompose_custom_triton_ops: there are none.
        """
        from ._decompose import decomposed

        return decomposed(self, decomp_table)

    def validate(self) -> None:
        """Checks the graph against the signature.

        Raises:
            SpecViolationError: they do not fit.
        """
        from ._verify import verify

        verify(self)

    _validate = validate

    def _update(
        self,
        graph_module,
        graph_signature,
        *,
        state_dict=None,
        constants=None,
        module_call_graph=None,
        **ignored,
    ) -> ExportedProgram:
        """The program with another graph."""
        return ExportedProgram(
            graph_module,
            graph_module.graph,
            graph_signature,
            self._state_dict if state_dict is None else state_dict,
            self._range_constraints,
            module_call_graph or self._module_call_graph,
            self._example_inputs,
            self._constants if constants is None else constants,
            guards=self._guards,
        )

    def _transform_do_not_use(self, *passes) -> ExportedProgram:
        """The program after passes, functions that change a GraphModule."""
        import copy

        module = copy.deepcopy(self._graph_module)
        for run in passes:
            result = run(module)
            module = module if result is None else result.graph_module
        module.recompile()
        return self._update(module, copy.deepcopy(self._graph_signature))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use "
            "`exported_program.module()` instead."
        )

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False, colored=False)
        code = code.replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {signature}\n"
            f"Range constraints: {self.range_constraints}\n"
        )

    __repr__ = __str__
