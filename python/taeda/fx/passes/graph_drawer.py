"""Draws a graph, in the language of Graphviz."""

from __future__ import annotations

from taeda.fx._visit import spell
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node, _target_text

from .shape_prop import TensorMetadata

__all__ = ["DotGraph", "FxGraphDrawer"]

_COLOURS = {
    "placeholder": "AliceBlue",
    "get_attr": "LightGrey",
    "call_module": "LemonChiffon1",
    "call_function": "Honeydew",
    "call_method": "LavenderBlush1",
    "output": "PowderBlue",
}


class DotGraph:
    """A drawing: its text, and pictures of it where `dot` is installed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def to_string(self) -> str:
        """The text for Graphviz."""
        return self._text

    def write_raw(self, path) -> None:
        """Writes the text to a file."""
        from pathlib import Path

        Path(path).write_text(self._text)

    def create(self, format: str = "svg") -> bytes:
        """A picture; FileNotFoundError where Graphviz is not installed."""
        import subprocess

        command = ["dot", f"-T{format}"]
        made = subprocess.run(
            command, input=self._text.encode(), capture_output=True, check=True
        )
        return made.stdout

    def create_svg(self) -> bytes:
        """A picture as SVG."""
        return self.create("svg")

    def create_png(self) -> bytes:
        """A picture as PNG."""
        return self.create("png")

    def write_svg(self, path) -> None:
        """Writes the picture as SVG to a file."""
        from pathlib import Path

        Path(path).write_bytes(self.create("svg"))


class FxGraphDrawer:
    """Draws a GraphModule and the GraphModules in it.

    Args:
        graph_module: the module.
        name: of the drawing.
        ignore_getattr: leave reads of attributes out.
        ignore_parameters_and_buffers: leave the state of modules out of their boxes.
        skip_node_names_in_args: show arguments that are nodes by their edges alone.

    Example:
        >>> gm = taeda.fx.symbolic_trace(lambda x: x + 1)
        >>> FxGraphDrawer(gm, "sum").get_dot_graph().to_string().splitlines()[0]
        'digraph "sum" {'
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
    ) -> None:
        self.ignore_getattr = ignore_getattr
        self.with_state = not ignore_parameters_and_buffers
        self.skip_nodes = skip_node_names_in_args
        self._drawn = {name: self._draw(graph_module, name)}
        for path, child in graph_module.named_children():
            if isinstance(child, GraphModule):
                inner = f"{name}_{path}"
                self._drawn[inner] = self._draw(child, inner)
        self._name = name

    def get_dot_graph(self, submod_name: str | None = None) -> DotGraph:
        """The drawing of the module, or of a submodule by its name."""
        return self._drawn[submod_name or self._name]

    get_main_dot_graph = get_dot_graph
    get_submod_dot_graph = get_dot_graph

    def get_all_dot_graphs(self) -> dict[str, DotGraph]:
        """All drawings by name."""
        return dict(self._drawn)

    def _draw(self, gm: GraphModule, name: str) -> DotGraph:
        lines = [f'digraph "{name}" {{', "rankdir=TB;"]
        nodes = [
            n
            for n in gm.graph.nodes
            if not (self.ignore_getattr and n.op == "get_attr")
        ]
        for node in nodes:
            label = "|".join(map(_escaped, self._rows(gm, node)))
            lines.append(
                f'"{node.name}" [label="{{{label}}}", shape=record, '
                f'style="filled,rounded", fillcolor={_COLOURS[node.op]}];'
            )
        shown = set(nodes)
        for node in nodes:
            for user in node.users:
                if user in shown:
                    lines.append(f'"{node.name}" -> "{user.name}";')
        return DotGraph("\n".join([*lines, "}"]) + "\n")

    def _rows(self, gm: GraphModule, node: Node):
        yield f"name=%{node.name}"
        yield f"op_code={node.op}"
        if node.op == "call_module":
            module = gm.get_submodule(node.target)
            yield repr(module).split("\n")[0]
            state = [*module.named_parameters(), *module.named_buffers()]
            for path, value in state if self.with_state else ():
                yield f"{path}: {tuple(value.shape)}"
        elif node.op != "output":
            yield f"target={_target_text(node.target)}"
        for kind, given in (("args", node.args), ("kwargs", node.kwargs)):
            if given and node.op.startswith("call"):
                yield f"{kind}={spell(given, self._argument, longest=5)}"
        yield f"num_users={len(node.users)}"
        meta = node.meta.get("tensor_meta")
        if isinstance(meta, TensorMetadata):
            yield f"dtype={meta.dtype}"
            yield f"shape={tuple(meta.shape)}"
            yield f"requires_grad={meta.requires_grad}"
            yield f"stride={meta.stride}"

    def _argument(self, a) -> str:
        if isinstance(a, Node):
            return "" if self.skip_nodes else f"%{a.name}"
        return str(a)


def _escaped(text: str) -> str:
    for sign in '\\{}|<>"':
        text = text.replace(sign, f"\\{sign}")
    return text
