"""What the inputs and outputs of an exported graph stand for."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from enum import Enum
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
    "TokenArgument",
]


@dataclasses.dataclass
class TensorArgument:
    """The node of a tensor, by its name."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """The node of a token, which orders effects."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """The node of an integer that depends on sizes."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """The node of a float that depends on sizes."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """The node of a condition on sizes."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """The node of an object of a class of a library."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that the graph was made for; `name` is empty for an output."""

    name: str
    value: int | float | bool | str | None


_ARGUMENTS = (
    *(ConstantArgument, CustomObjArgument, TensorArgument, TokenArgument),
    *(SymBoolArgument, SymFloatArgument, SymIntArgument),
)
ArgumentSpec = reduce(or_, _ARGUMENTS)


def _kinds(name: str, members: str, meaning: str) -> type[Enum]:
    made = Enum(name, members, module=__name__, qualname=name)
    made.__doc__ = meaning
    return made


InputKind = _kinds(
    "InputKind",
    "USER_INPUT PARAMETER BUFFER CONSTANT_TENSOR CUSTOM_OBJ TOKEN",
    "What an input is: the caller's, or lifted from the module.",
)
OutputKind = _kinds(
    "OutputKind",
    "USER_OUTPUT LOSS_OUTPUT BUFFER_MUTATION PARAMETER_MUTATION GRADIENT_TO_PARAMETER"
    " GRADIENT_TO_USER_INPUT USER_INPUT_MUTATION TOKEN",
    "What an output is: the caller's, or the new value of something written to.",
)


def _check_argument(arg) -> None:
    if not isinstance(arg, _ARGUMENTS):
        raise AssertionError(f"expected a kind of argument, got {type(arg)}")


def _shown(spec) -> str:
    target = "" if spec.target is None else f" target='{spec.target}'"
    kept = getattr(spec, "persistent", None)
    persistent = "" if kept is None else f" persistent={kept}"
    return f"{spec.arg.name}: {spec.kind.name}{target}{persistent}"


@dataclasses.dataclass
class InputSpec:
    """An input of the graph.

    Attributes: kind; arg, the placeholder; target, the path of a parameter, buffer or
    constant in the module; persistent, of a buffer: whether the state dict has it.
    """

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")
        _check_argument(self.arg)

    def __str__(self) -> str:
        return _shown(self)


@dataclasses.dataclass
class OutputSpec:
    """An output of the graph.

    Attributes: kind; arg, the node or constant; target, what is written to: the path
    of a parameter or buffer, the name of an input.
    """

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __post_init__(self) -> None:
        _check_argument(self.arg)

    def __str__(self) -> str:
        return _shown(self)


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which outputs of a joint graph are gradients, and of what."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


def _value(arg):
    if isinstance(arg, ConstantArgument):
        return arg.value
    return arg.name


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported graph, in the graph's order.

    Args:
        input_specs: parameters, buffers, constants, then the caller's leaves.
        output_specs: new values of what is written to, then the caller's leaves.

    Example:
        >>> lin = taeda.nn.Linear(3, 2)
        >>> ep = taeda.export.export(lin, (taeda.ones(1, 3),))
        >>> print(ep.graph_signature.input_specs[0])
        p_weight: PARAMETER target='weight'
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _inputs(self, *kinds) -> list[InputSpec]:
        return [s for s in self.input_specs if s.kind in kinds]

    def _targets(self, kind) -> tuple[str, ...]:
        return tuple(s.target for s in self._inputs(kind))

    def _input_table(self, kind) -> Mapping[str, str]:
        return MappingProxyType({s.arg.name: s.target for s in self._inputs(kind)})

    def _output_table(self, kind) -> Mapping[str, str]:
        found = (s for s in self.output_specs if s.kind is kind)
        return MappingProxyType({s.arg.name: s.target for s in found})

    @property
    def parameters(self) -> Collection[str]:
        """Paths of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> Collection[str]:
        """Paths of the buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> Collection[str]:
        """Paths of the buffers that the state dict leaves out."""
        found = self._inputs(InputKind.BUFFER)
        return tuple(s.target for s in found if s.persistent is False)

    @property
    def lifted_tensor_constants(self) -> Collection[str]:
        """Names of the tensors that are neither."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> Collection[str]:
        """Names of the objects of library classes."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> Collection[Any]:
        """Names of the caller's inputs; of a constant its value."""
        found = self._inputs(InputKind.USER_INPUT)
        return tuple(_value(s.arg) for s in found)

    @property
    def user_outputs(self) -> Collection[Any]:
        """Names of the caller's outputs; of a constant its value."""
        kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple(_value(s.arg) for s in self.output_specs if s.kind in kinds)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """Name of a placeholder -> path of the parameter."""
        return self._input_table(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """Name of a placeholder -> path of the buffer."""
        return self._input_table(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """Name of a placeholder -> name of the constant."""
        return self._input_table(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """Name of a placeholder -> name of the object."""
        return self._input_table(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """Name of an output -> path of the buffer that it becomes."""
        return self._output_table(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """Name of an output -> path of the parameter that it becomes."""
        return self._output_table(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """Name of an output -> name of the input that it becomes."""
        return self._output_table(OutputKind.USER_INPUT_MUTATION)

    @property
    def input_tokens(self) -> Collection[str]:
        """Names of the tokens that come in."""
        return tuple(s.arg.name for s in self._inputs(InputKind.TOKEN))

    @property
    def output_tokens(self) -> Collection[str]:
        """Names of the tokens that go out."""
        found = (s for s in self.output_specs if s.kind is OutputKind.TOKEN)
        return tuple(s.arg.name for s in found)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Of a joint graph: which outputs are gradients. None without a loss."""
        loss = None
        tables: dict = {
            OutputKind.GRADIENT_TO_PARAMETER: {},
            OutputKind.GRADIENT_TO_USER_INPUT: {},
        }
        for spec in self.output_specs:
            if spec.kind is OutputKind.LOSS_OUTPUT:
                loss = spec.arg.name
            elif spec.kind in tables:
                tables[spec.kind][spec.arg.name] = spec.target
        return None if loss is None else ExportBackwardSignature(*tables.values(), loss)

    @property
    def assertion_dep_token(self) -> None:
        """None: checks stand in the graph as nodes."""
        return None

    def replace_all_uses(self, old: str, new: str) -> None:
        """A node of the graph has another name."""
        for spec in (*self.input_specs, *self.output_specs):
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new

    def get_replace_hook(self, replace_inputs: bool = False):
        """A hook for `GraphModule`: outputs follow nodes that take others' places."""

        def hook(old, new, user) -> None:
            if user.op in ("output", "placeholder") or replace_inputs:
                self.replace_all_uses(old.name, new)

        return hook

    def __str__(self) -> str:
        inputs, outputs = (
            "\n".join(map(str, specs))
            for specs in (self.input_specs, self.output_specs)
        )
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
