"""Writes the Python text of a graph."""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import taeda
from taeda._ops import OpOverload

from ._names import attribute, is_own, known_globals, qualified_name, type_text
from ._visit import is_named, spell

__all__ = ["CodeGen", "PythonCode", "tensor_text"]

# Functions of `operator` that are written as an expression.
reflectable_magic_methods = {
    name: f"{{}} {sign} {{}}"
    for name, sign in (
        ("add", "+"),
        ("sub", "-"),
        ("mul", "*"),
        ("floordiv", "//"),
        ("truediv", "/"),
        ("div", "/"),
        ("mod", "%"),
        ("pow", "**"),
        ("lshift", "<<"),
        ("rshift", ">>"),
        ("and_", "&"),
        ("or_", "|"),
        ("xor", "^"),
        ("matmul", "@"),
    )
}
# Those that are written as a statement: `a += b`.
inplace_methods = {
    f"i{name.rstrip('_')}": form.replace(" {}", "= {}", 1)
    for name, form in reflectable_magic_methods.items()
    if name != "div"
}
inplace_methods["setitem"] = "{}[{}] = {}"
reflectable_magic_methods["getitem"] = "{}[{}]"
magic_methods = {
    name: f"{{}} {sign} {{}}"
    for name, sign in zip(
        "eq ne lt gt le ge".split(), "== != < > <= >=".split(), strict=True
    )
}
magic_methods |= {"pos": "+{}", "neg": "-{}", "invert": "~{}"}
magic_methods |= reflectable_magic_methods

_COLOURS = {"red": 31, "green": 32, "blue": 34, "dim": 2}


@dataclass
class PythonCode:
    """The text of a function and the objects that its global names stand for."""

    src: str
    globals: dict[str, Any]


class _PyTreeInfo(NamedTuple):
    """Names of the original arguments, and the structures of inputs and outputs."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class CodeGen:
    """Writes the definition and the return statement of a graph's function.

    A subclass changes how the function is called (`Graph.set_codegen`).
    """

    def __init__(self) -> None:
        self._body_transformer = None
        self._func_name = "forward"

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        """The first line.

        Args:
            free_vars: the parameters, with annotations and defaults.
            maybe_return_annotation: " -> T" or "".
            expanded_def: a line for each parameter.
        """
        if free_vars[:1] != ["self"]:
            free_vars.insert(0, "self")
        shown = _one_a_line(free_vars) if expanded_def else ", ".join(free_vars)
        return f"def {self._func_name}({shown}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The return statement.

        Args:
            output_args: the result, with nodes in it.
            descs: what each of several results is: a line for each, which says so.
            repr_fn: the text of a value.
        """
        shown = repr_fn or repr
        if descs is None or not isinstance(output_args, (list, tuple)):
            return f"return {shown(output_args)}"
        lines = [
            f"    {shown(value)},  # {about}\n"
            for value, about in zip(output_args, descs, strict=True)
        ]
        return f"return (\n{''.join(lines)})"

    def process_inputs(self, *args):
        """The values of the placeholders for the arguments of the function."""
        return args

    def process_outputs(self, outputs):
        """What the function returns for the graph's output."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further global names of the text, with their objects."""
        return []

    def _gen_python_code(self, nodes, root_module: str, namespace, **options):
        return _Writer(self, namespace, root_module, **options).write(nodes)


class _PyTreeCodeGen(CodeGen):
    """The function takes and returns structures whose leaves the graph has."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs):
        return taeda.utils._pytree.tree_leaves(inputs)

    def process_outputs(self, out):
        spec = self.pytree_info.out_spec
        if spec is None:
            return out
        leaves = out if isinstance(out, (list, tuple)) else [out]
        return taeda.utils._pytree.tree_unflatten(list(leaves), spec)

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        names = self.pytree_info.orig_args
        if names[:1] == ["self"]:
            free_vars.insert(0, "self")
        head = super().gen_fn_def(
            list(names), maybe_return_annotation, expanded_def=expanded_def
        )
        if not free_vars:
            return head
        given, typed = self._given(names), [v for v in free_vars if ":" in v]
        # A tuple of targets takes no annotations; they stand in a line of their own.
        notes = f"\n    {''.join(f'{v}; ' for v in typed)}\n" if typed else ""
        bare = ", ".join(re.split(r" ?[:=#]", v)[0] for v in free_vars)
        flat = f"fx_pytree.tree_flatten_spec({given}, self._in_spec)"
        return f"{head}{notes}\n    {bare}, = {flat}"

    def _given(self, names: list[str]) -> str:
        spec = self.pytree_info.in_spec
        kinds = [child.type for child in spec.children()]
        if spec.type is not tuple or kinds != [tuple, dict]:
            return f"[{', '.join(names)}]"
        count = spec.child(0).num_children
        keys = zip(spec.child(1).context, names[count:], strict=False)
        words = ", ".join(f"'{key}':{name}" for key, name in keys)
        return f"([{', '.join(names[:count])}], {{{words}}})"

    def generate_output(
        self,
        output_args,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        if not self.pytree_info.out_spec:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        shown = (repr_fn or repr)(output_args)
        return f"return pytree.tree_unflatten({shown}, self._out_spec)"


def last_uses(nodes) -> dict:
    """Node -> the nodes whose values nobody needs after it."""
    seen: set = set()
    ends: dict = {}
    for user in reversed(nodes):
        for node in user.all_input_nodes:
            if node not in seen:
                seen.add(node)
                ends.setdefault(user, []).append(node)
    return ends


def dtype_text(dtype) -> str:
    """A dtype in few letters: `f32`, `bf16`, `i64`, `b8`."""
    name = str(dtype).split(".")[-1]
    if name == "bool":
        return "b8"
    kind, width, rest = re.fullmatch(r"([a-z]+)(\d*)(.*)", name).groups()
    short = {"bfloat": "bf", "uint": "u", "qint": "qi", "quint": "qu"}
    rest = rest.lstrip("_") if kind == "float" else rest
    return f"{short.get(kind, kind[0])}{width}{rest}"


def _sizes(numbers) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def tensor_text(t, stride: bool = False, device: bool = False, paint=None) -> str:
    """A tensor's dtype and sizes, on request strides and device: `f32[2, 3]`."""
    paint = paint or (lambda colour, text: text)
    text = paint("red", dtype_text(t.dtype)) + paint("blue", _sizes(t.shape))
    if stride:
        text += paint("dim", _sizes(t.stride()))
    return text + paint("green", str(t.device)) if device else text


class _Writer:
    """Writes one graph; a method for each kind of node gives its statement."""

    def __init__(self, codegen, namespace, root: str, **options) -> None:
        self.codegen, self.namespace, self.root = codegen, namespace, root
        self.verbose = options.pop("verbose", False)
        self.stride = options.pop("include_stride", False)
        self.device = options.pop("include_device", False)
        self.coloured = options.pop("colored", False)
        self.expanded = options.pop("expanded_def", False)
        self.keys = options.pop("additional_meta", None) or ()
        if options:
            raise TypeError(f"python_code: unknown options {sorted(options)}")
        self.globals: dict[str, Any] = {}
        self.free: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returned = self.origin = ""

    def write(self, nodes) -> PythonCode:
        """The text and the globals."""
        for name, (_, known) in known_globals().items():
            self.add_global(name, known)
        ends, body = last_uses(nodes), []
        for node in nodes:
            if self.verbose:
                body += self.heading(node)
            statement = getattr(self, node.op)(node)
            if statement is not None:
                body.append(statement + self.release(node, ends) + "\n")
        wrap = self.add_global("wrap", taeda.fx.wrap) if self.wrapped else ""
        if self.codegen._body_transformer:
            body = self.codegen._body_transformer(body or ["pass\n"])
        for name, value in self.codegen.additional_globals():
            self.add_global(name, value)
        marks = "\n".join(f'{wrap}("{name}")' for name in self.wrapped)
        text = "".join(body or ["pass\n"]).lstrip("\n")
        text = "\n".join("    " + line for line in text.split("\n"))
        # A subclass from before the choice existed does not know it.
        choice = {"expanded_def": True} if self.expanded else {}
        head = self.codegen.gen_fn_def(self.free, self.returned, **choice)
        return PythonCode(f"\n{marks}\n\n{head}\n{text}", self.globals)

    # Names and values ----------------------------------------------------------

    def add_global(self, hint: str, obj) -> str:
        """The expression by which the text refers to an object outside of it."""
        if is_own(obj) and obj is not taeda.device:
            return qualified_name(obj)
        name = self.namespace.create_name(hint, obj)
        self.globals.setdefault(name, obj)
        return name

    def value(self, a) -> str:
        """The expression of an argument."""
        if isinstance(a, taeda.fx.Node):
            return repr(a)
        if is_named(a):
            kind = self.add_global(qualified_name(type(a)), type(a))
            return f"{kind}{spell(tuple(a), self.value, repr)}"
        if isinstance(a, (tuple, list, dict)):
            return spell(a, self.value, repr)
        if isinstance(a, slice):
            return f"slice({', '.join(map(self.value, (a.start, a.stop, a.step)))})"
        if isinstance(a, enum.Enum):
            return f"{self.add_global(type(a).__name__, type(a))}.{a.name}"
        if isinstance(a, taeda.Tensor):
            kind = str(a.dtype).split(".")[-1]
            library = taeda.__name__
            return f"{library}.Tensor(size={list(a.size())}, dtype={kind})"
        if isinstance(a, OpOverload):
            return self.add_global(qualified_name(a), a)
        if type(a).__module__ == "numpy" and hasattr(a, "item"):
            # NumPy's own text says `np.`, which is no global here.
            return f"{self.add_global(type(a).__name__, type(a))}({a.item()!r})"
        return self.paint("blue", repr(a))

    def call(self, args, kwargs) -> str:
        """Arguments between parentheses."""
        words = [f"{k} = {self.value(v)}" for k, v in kwargs.items()]
        return f"({', '.join([*map(self.value, args), *words])})"

    def type_text(self, t) -> str:
        """The expression of a type; what it names becomes known."""
        if t == ():
            return "()"
        parts = typing.get_args(t)
        if isinstance(t, types.UnionType):
            return "|".join(map(self.type_text, parts))
        origin = getattr(t, "__origin__", None)
        if not origin:
            return self.add_global(type_text(t), t)
        if isinstance(t, typing._GenericAlias) and origin.__module__ == "builtins":
            # `typing.List[int]` keeps its name, though its origin is `list`.
            origin = getattr(typing, t._name, origin)
        shown = self.add_global(type_text(origin), origin)
        return f"{shown}[{','.join(map(self.type_text, parts))}]" if parts else shown

    def paint(self, colour: str, text: str) -> str:
        """The text, in a colour where that was asked for."""
        return f"\033[{_COLOURS[colour]}m{text}\033[0m" if self.coloured else text

    # Statements ----------------------------------------------------------------

    def assigned(self, node) -> str:
        """`name : annotation`."""
        return f"{node!r}{self.annotation(node)}"

    def annotation(self, node) -> str:
        """What stands behind the name; sizes in place of the type when verbose."""
        shown = self.sizes(node) if self.verbose else None
        if shown is not None:
            return f': "{shown}"'
        return "" if node.type is None else f" : {self.type_text(node.type)}"

    def sizes(self, node) -> str | None:
        """The tensor that passes noted in `meta`, as text."""
        keys = [k for k in ("val", "tensor_meta", "example_value") if k in node.meta]
        value = node.meta[keys[0]] if keys else None
        if isinstance(value, taeda.Tensor):
            text = tensor_text(value, self.stride, self.device, self.paint)
            kind = type(value)
            plain = kind is taeda.Tensor or kind.__name__ == "FakeTensor"
            return text if plain else f"{kind.__name__}({text})"
        if isinstance(value, (taeda.SymInt, taeda.SymFloat, taeda.SymBool)):
            return f"Sym({value!r})"
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return f"{dtype_text(value.dtype)}{_sizes(value.shape)}"
        return None

    def heading(self, node) -> list[str]:
        """The comment that says where the following nodes come from."""
        if node.op in ("placeholder", "output"):
            return []
        noted = ", ".join(f"{k}: {node.meta[k]}" for k in self.keys if k in node.meta)
        custom = {k: _short(v) for k, v in node.meta.get("custom", {}).items()}
        text = (f"# {noted} " if noted else "") + "#"
        text += f" Annotation: {custom}" if custom else ""
        text += f" {_origin(node.stack_trace)}"
        if text == self.origin:
            return []
        self.origin = text
        return [f"\n{self.paint('dim', text)}\n"]

    def release(self, node, ends) -> str:
        """What sets names free after their last use."""
        if node.op in ("placeholder", "output"):
            return ""
        done = ends.get(node, []) + ([] if node.users else [node])
        if not done:
            return ""
        return f";  {self.paint('dim', ' = '.join([*map(repr, done), 'None']))}"

    def placeholder(self, node) -> str | None:
        default = f" = {self.value(node.args[0])}" if node.args else ""
        self.free.append(f"{node.target}{self.annotation(node)}{default}")
        given = node.target.replace("*", "")
        return None if given == repr(node) else f"{node!r} = {given}"

    def get_attr(self, node) -> str:
        return f"{self.assigned(node)} = {attribute(self.root, node.target)}"

    def call_module(self, node) -> str:
        return self.get_attr(node) + self.call(node.args, node.kwargs)

    def call_method(self, node) -> str:
        method = attribute(self.value(node.args[0]), node.target)
        return (
            f"{self.assigned(node)} = {method}{self.call(node.args[1:], node.kwargs)}"
        )

    def call_function(self, node) -> str:
        target, args = node.target, node.args
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", None) == "_operator":
            if name in magic_methods:
                form = magic_methods[name].format(*map(self.value, args))
                return f"{self.assigned(node)} = {form}"
            if name in inplace_methods:
                form = inplace_methods[name].format(*map(self.value, args))
                return f"{form};  {self.assigned(node)} = {self.value(args[0])}"
        if target is getattr and len(args) == 2 and str(args[1]).isidentifier():
            read = attribute(self.value(args[0]), args[1])
            return f"{self.assigned(node)} = {read}"
        shown = self.add_global(qualified_name(target), target)
        if node.meta.get("is_wrapped", False):
            self.wrapped[shown] = None
        return f"{self.assigned(node)} = {shown}{self.call(args, node.kwargs)}"

    def output(self, node) -> str:
        if node.type is not None:
            self.returned = f" -> {self.type_text(node.type)}"
        write = self.codegen.generate_output
        # Older subclasses print nodes by `repr`, which knows the names too.
        takes = inspect.signature(write).parameters
        known = {"repr_fn": self.value} if takes.keys() & {"repr_fn", "kwargs"} else {}
        return write(node.args[0], **known)


def _one_a_line(free: list[str]) -> str:
    return "\n" + "".join(f"    {name},\n" for name in free)


def _short(value):
    text = str(value)
    return text[:40] + "..." if len(text) > 40 else value


_FRAME = re.compile(r'\s*File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>.+)')


def _origin(trace: str | None) -> str:
    """The innermost frame of a stack trace in one line."""
    lines = (trace or "").strip().split("\n")
    for i in range(len(lines) - 2, -1, -1):
        frame = _FRAME.fullmatch(lines[i])
        if frame:
            code = lines[i + 1].strip()
            return (
                "File: {file}:{line} in {name}, code: ".format(**frame.groupdict())
                + code
            )
    return "No stacktrace found for following nodes"
