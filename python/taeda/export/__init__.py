"""Programs as graphs with their state: `export` and what is done with the result."""

from __future__ import annotations

from typing import Any

from taeda._lazy import attributes

from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, dims
from .exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
    default_decompositions,
)
from .graph_signature import ExportBackwardSignature, ExportGraphSignature
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "default_decompositions",
    "dims",
    "export",
    "export_for_training",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]
__getattr__ = attributes(
    __name__,
    {"CustomDecompTable": "decomp_utils"},
    submodules=("decomp_utils", "dynamic_shapes", "graph_signature", "passes"),
)


def export(
    mod,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes=None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """One graph of the operators that a module calls for these arguments.

    The module runs once on tensors without data; loops and branches of Python are gone
    then. Composite operators stay whole and writes stay writes: what is trained further
    or quantized begins here. `run_decompositions` gives core operators without writes.

    Args:
        mod: a module.
        args, kwargs: an example of its arguments.
        dynamic_shapes: which sizes may change: a dict by the names of arguments or a
            sequence in their order, with a dict (dim -> `Dim`, hint or None) or a
            sequence for each tensor; a `ShapesCollection` or `AdditionalInputs`. All
            other sizes are those of the example.
        strict: capture the program from its bytecode first: what would break that graph
            is an error, though a run on tensors without data would not see it.
        preserve_module_call_signature: paths of submodules whose calls are noted.
        prefer_deferred_runtime_asserts_over_guards: conditions on sizes are always
            guards.

    Returns:
        An `ExportedProgram`.

    Raises:
        ValueError: no module; an argument of an unknown container.
        UserError: arguments that are no tuple; dynamic shapes of another structure, or
            sizes that the program needs as they are.
        GuardOnDataDependentSymNode: a branch depends on values of tensors.
        Unsupported: with `strict`, of what breaks a captured graph.

    Example:
        >>> net = taeda.nn.Linear(3, 2)
        >>> batch = taeda.export.Dim("batch", max=64)
        >>> ep = export(net, (taeda.ones(4, 3),), dynamic_shapes=({0: batch},))
        >>> ep.module()(taeda.ones(7, 3)).shape
        taeda.Size([7, 2])
    """
    from taeda import nn

    from ._trace import trace

    if not isinstance(mod, nn.Module):
        raise ValueError(
            f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}."
        )
    if strict and isinstance(args, tuple):
        from ._strict import check

        check(mod, args, dict(kwargs or {}))
    return trace(mod, args, kwargs, dynamic_shapes, preserve_module_call_signature)


def export_for_training(
    mod,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes=None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
) -> ExportedProgram:
    """As `export`."""
    return export(
        mod,
        args,
        kwargs,
        dynamic_shapes=dynamic_shapes,
        strict=strict,
        preserve_module_call_signature=preserve_module_call_signature,
    )


def save(
    ep: ExportedProgram,
    f,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Writes a program with its state to a file.

    Args:
        ep: the program.
        f: a path (usually `NAME.pt2`), or a file that is open for bytes.
        extra_files: name -> text or bytes that is written too.
        opset_version, pickle_protocol: not used: nothing but tensors is pickled.

    Raises:
        TypeError: no exported program.
        NotImplementedError: a container of the arguments that has no name for files; a
            function of the graph that files do not hold.

    Example:
        >>> import io
        >>> ep = export(taeda.nn.Linear(3, 2), (taeda.ones(4, 3),))
        >>> file = io.BytesIO()
        >>> save(ep, file)
        >>> load(file).module()(taeda.ones(4, 3)).shape
        taeda.Size([4, 2])
    """
    from ._archive import save as write

    write(ep, f, extra_files)


def load(
    f,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Reads a program that `save` wrote. No code of the file is run.

    Args:
        f: a path, or a file that is open for bytes.
        extra_files: a dict whose entries become the texts of files of these names.
        expected_opset_version: not used.

    Raises:
        zipfile.BadZipFile: no archive, or a damaged one.
        ValueError: an archive of another kind or version, or with what no program has.
    """
    from ._archive import load as read

    return read(f, extra_files)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Makes a dataclass a container that arguments and results may have.

    Args:
        cls: a dataclass. Fields that are None are not leaves.
        serialized_type_name: its name in saved programs.

    Raises:
        AssertionError: no dataclass.
    """
    from taeda.utils._pytree import register_dataclass as register

    register(cls, serialized_type_name=serialized_type_name)
