"""`GraphModule`: a module whose forward is written from a graph."""

from __future__ import annotations

import copy
import linecache
import sys
import traceback
from itertools import accumulate, count

import taeda
from taeda import nn
from taeda.nn.modules.module import _addindent

from .graph import Graph, PythonCode, _PyTreeCodeGen

__all__ = ["GraphModule"]

_numbers = count()  # of generated files; `next` is one step under the GIL
GENERATED = "__fx_generated__"


def _compiled(source: str, names: dict, traced: str = "") -> dict:
    """The namespace of a generated text, which tracebacks and `inspect` can show.

    Args:
        source, names: the text, and what its global names stand for.
        traced: what file names say of the function from which the text comes.
    """
    file = f"<eval_with_key>.{next(_numbers)}{traced}"
    # No time of change: linecache keeps the lines though there is no such file.
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = {**names, GENERATED: set()}
    exec(compile(source, file, "exec", dont_inherit=True), space)
    return space


def _step_down(module, name: str):
    """The submodule of this name; an empty one is put in where there is none."""
    found = getattr(module, name, None)
    if found is None:
        found = nn.Module()
        setattr(module, name, found)
    return found


def _assign_attr(value, to_module, target: str) -> None:
    """Puts a value at a path; a tensor that is no parameter becomes a buffer."""
    *path, field = target.split(".")
    for name in path:
        to_module = _step_down(to_module, name)
    if isinstance(value, taeda.Tensor) and not isinstance(value, nn.Parameter):
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


def _copy_attr(from_module, to_module, target: str) -> None:
    """Puts what stands at a path of one module at the same path of another."""
    names, place = target.split("."), to_module
    for name in names[:-1]:
        from_module, place = getattr(from_module, name), getattr(place, name, None)
        if place is from_module:  # the whole of it is there already
            return
    _assign_attr(getattr(from_module, names[-1]), to_module, target)


def _get_attr(model, attr_name: str):
    """What stands at a path."""
    for name in attr_name.split("."):
        model = getattr(model, name)
    return model


class GraphModule(nn.Module):
    """A module that runs a graph.

    `code` is the text of its forward. After changes to the graph `recompile` writes it
    anew; assigning `graph` does that too.

    Args:
        root: the module from which parameters, buffers and submodules that the graph
            names are taken, or a dict: path -> value.
        graph: the graph.
        class_name: the name of the class that is made for it.

    Raises:
        RuntimeError: `root` is neither, or a path of the graph is not in the dict.

    Example:
        >>> gm = taeda.fx.symbolic_trace(lambda x: x.sin() + 1)
        >>> print(gm.code.strip())
        def forward(self, x):
            sin = x.sin();  x = None
            add = sin + 1;  sin = None
            return add
    """

    def __new__(cls, *args, **kwargs):
        # Each has a class of its own, since forward is looked up there.
        bases = (c for c in cls.__mro__ if "_fx_instance_class" not in vars(c))
        space = {"_fx_instance_class": True, "__module__": cls.__module__}
        return super().__new__(type("GraphModuleImpl", (next(bases),), space))

    def __init__(self, root, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        paths = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            self.training = getattr(root, "training", True)
            for path in paths:
                _copy_attr(root, self, path)
        elif isinstance(root, dict):
            self._take(root, graph, paths)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        tracer = graph._tracer_cls
        local = tracer is not None and "<locals>" in tracer.__qualname__
        self._tracer_cls = None if local else tracer
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict = {}
        self.shape_env = None
        for hooks in ("replace", "create_node", "erase_node", "deepcopy"):
            setattr(self, f"_{hooks}_hooks", [])
        self.graph = graph

    def _take(self, root: dict, graph, paths) -> None:
        for path in paths:
            if path not in root:
                node = next(n for n in graph.nodes if n.target == path)
                raise RuntimeError(
                    f"Node {node} referenced target {path} but that target was not "
                    "provided in ``root``!"
                )
        # A module goes in before what is put into it.
        for path in sorted(paths, key=lambda p: p.count(".")):
            _assign_attr(root[path], self, path)

    # Graph and code ----------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph; assigning one writes the code anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"graph: expected a Graph, got {type(g)}")
        g.owning_module, self._graph = self, g
        self.recompile()

    @property
    def code(self) -> str:
        """The text of forward."""
        if "_code" not in vars(self):
            raise RuntimeError("Code has not been generated: recompile() does that")
        return self._code

    def recompile(self) -> PythonCode:
        """Writes forward anew from the graph."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        written = self._graph.python_code("self")
        self._code = written.src
        traced = getattr(self._graph, "_traced", "")
        space = _compiled(written.src, written.globals, traced)
        type(self).forward = space[codegen._func_name]
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return written

    def __call__(self, *args, **kwargs):
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            if place.filename == type(self).forward.__code__.co_filename:
                print(_explanation(place), file=sys.stderr)
            raise

    def print_readable(self, print_output: bool = True, *args, **options) -> str:
        """The code with types and origins, of this module and of graphs inside it.

        Args:
            print_output: print it too.
            args: `include_stride`, `include_device`, `colored`.
            options: those by name, and `expanded_def`, `additional_meta`.
        """
        names = ("include_stride", "include_device", "colored")
        options.update(zip(names, args, strict=False))
        options.pop("fast_sympy_print", None)
        text = self._readable(self._get_name(), options)
        if print_output:
            print(text)
        return text

    def _readable(self, name: str, options: dict) -> str:
        source = self.graph.python_code("self", verbose=True, **options).src
        head = f"class {name}({taeda.__name__}.nn.Module):\n"
        inner = [
            child._readable(inside, options)
            for inside, child in self.named_children()
            if isinstance(child, GraphModule)
        ]
        below = _addindent("\n".join(["", *inner]), 4)
        return _addindent(head + source.lstrip("\n"), 4) + below

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, hint])

    # Submodules --------------------------------------------------------------------

    def add_submodule(self, target: str, m) -> bool:
        """Puts a module at a path; empty modules are made on the way.

        Returns:
            Whether that was possible: what stands on the path must be modules.
        """
        *path, field = target.split(".")
        place = self
        for name in path:
            place = _step_down(place, name)
            if not isinstance(place, nn.Module):
                return False
        place.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes the module at a path out; False where there is none."""
        path, _, field = target.rpartition(".")
        try:
            place = self.get_submodule(path)
        except AttributeError:
            return False
        if not isinstance(getattr(place, field, None), nn.Module):
            return False
        delattr(place, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes out every module that the graph does not name or call."""
        called = {n.target for n in self.graph.find_nodes(op="call_module")}
        named = called | {n.target for n in self.graph.find_nodes(op="get_attr")}
        on_the_way = {
            path
            for target in named
            for path in accumulate(target.split("."), "{}.{}".format)
        }
        inside = tuple(f"{target}." for target in called)
        for name, _ in list(self.named_modules()):
            if name and name not in on_the_way and not name.startswith(inside):
                self.delete_submodule(name)

    def to_folder(self, folder, module_name: str = "FxModule") -> None:
        """Writes a package with this module as a class; see `fx._folder`."""
        from ._folder import write

        write(self, folder, module_name)

    # Copies ------------------------------------------------------------------------

    def __reduce__(self):
        kind = next(
            c for c in type(self).__mro__ if "_fx_instance_class" not in vars(c)
        )
        return _revived, (kind, type(self).__name__), self.__getstate__()

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        self.graph = self._graph

    def __deepcopy__(self, memo) -> GraphModule:
        kind = next(
            c for c in type(self).__mro__ if "_fx_instance_class" not in vars(c)
        )
        twin = memo[id(self)] = _revived(kind, type(self).__name__)
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        for hook in self._deepcopy_hooks:
            hook(twin)
        return twin

    def _replicate_for_data_parallel(self):
        # The replica's class is a new one, which has no forward yet.
        replica = super()._replicate_for_data_parallel()
        type(replica).forward = type(self).forward
        return replica

    def __copy__(self) -> GraphModule:
        twin = GraphModule(self, self.graph, type(self).__name__)
        twin.meta = self.meta
        return twin


def _revived(kind: type, name: str) -> GraphModule:
    made = kind.__new__(kind)
    type(made).__name__ = name
    return made


def _explanation(place: traceback.FrameSummary) -> str:
    """The line of generated code that failed, with what stands around it."""
    lines, at = linecache.getlines(place.filename), place.lineno
    marker = "~" * len(place.line) + "~~~ <--- HERE"
    return "\n".join(
        [
            traceback.format_exc(),
            f"Call using an FX-traced Module, line {at} of the traced Module's "
            "generated forward function:",
            "".join(lines[max(at - 2, 0) : at]),
            marker,
            "\n".join(lines[at : at + 2]),
        ]
    )
