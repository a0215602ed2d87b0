"""One Markdown page of the interface: its entries with all that is known of them."""

from __future__ import annotations

import inspect
import posixpath
import re
from types import FunctionType

from taeda import _record_docs

from . import markdown
from .inventory import Entry, is_own


class Writer:
    """Makes pages whose links lead to each other.

    Args:
        targets: public name to page.

    Attributes:
        examples: public name to the text that has its example.
        bare: operators without example.
        unshown: functions and classes without example that are no operators.
    """

    def __init__(self, targets: dict[str, str]) -> None:
        self._targets = targets
        self.examples: dict[str, str] = {}
        self.bare: list[str] = []
        self.unshown: list[str] = []

    def page(self, page: str, entries: list[Entry], title: str, about: str) -> str:
        """The text of a page."""
        link = self._linker(page)
        lines = [f"# {title}", ""]
        if about:
            lines += [markdown.from_docstring(about, link), ""]
        for entry in entries:
            lines += self._entry(entry, link, 2)
            for member in entry.members:
                others = [f"{path}.{member.name}" for path in entry.others]
                member.others = others
                lines += self._entry(member, link, 3)
        return "\n".join(lines)

    def _linker(self, page: str):
        def link(path: str) -> str | None:
            found = self._targets.get(path)
            if found is None:
                return None
            start = posixpath.dirname(page) or "."
            return f"{posixpath.relpath(found, start)}.md#{path}"

        return link

    def _entry(self, entry: Entry, link, level: int) -> list[str]:
        title = markdown.escape(entry.name)
        lines = [f"{'#' * level} {title} {{#{entry.path}}}", ""]
        anchors = "".join(f'<a id="{path}"></a>' for path in entry.others)
        if anchors:
            lines += [anchors, ""]
        signature, text = described(entry)
        if signature:
            lines += [markdown.fence(signature, "python"), ""]
        if text:
            if ">>>" in text:
                self.examples[entry.path] = text
            elif (_record_docs.name_of(entry.value) or "_backward")[-9:] != "_backward":
                self.bare.append(entry.path)
            lines += [markdown.from_docstring(text, link), ""]
        ours = isinstance(entry.value, (type, FunctionType)) and is_own(entry.value)
        if level == 2 and ours and ">>>" not in text:
            self.unshown.append(entry.path)
        if level == 2 and entry.others:
            lines += ["Also " + ", ".join(f"`{p}`" for p in entry.others) + ".", ""]
        return lines


def described(entry: Entry) -> tuple[str, str]:
    """Signature and text of an entry.

    An operator has several signatures in its text, and what its record says below it.
    """
    value = entry.value
    if not callable(value) and not hasattr(value, "__get__"):
        return f"{entry.path}: {type(value).__name__} = {_shown(value)}", ""
    if callable(value) and not _is_native(value) and not is_own(value):
        owner = getattr(value, "__module__", type(value).__module__)
        name = getattr(value, "__qualname__", entry.name)
        return f"{entry.path} = {owner}.{name}", ""
    text = own_text(value) or inherited_text(entry)
    name = _record_docs.name_of(value)
    if name:
        method = type(value).__name__ == "method_descriptor"
        text = _record_docs.text(name, f".{name}" if method else entry.path, value)
    if text and "->" in text.partition("\n")[0] and _is_native(value):
        signature, _, text = text.partition("\n\n")
        return signature, text
    return _signature(entry), text


def inherited_text(entry: Entry) -> str:
    """What the class that declares a method says of it, if that is one of ours."""
    bases = entry.owner.__mro__ if entry.owner else ()
    spaces = (vars(b) for b in bases if b.__module__.partition(".")[0] == "taeda")
    texts = (getattr(space.get(entry.name), "__doc__", None) for space in spaces)
    return next((text for text in texts if isinstance(text, str)), "")


def own_text(value: object) -> str:
    """The docstring of an object itself: not one that a class has from its bases."""
    text = getattr(value, "__doc__", None)
    if isinstance(value, type):
        text = vars(value).get("__doc__", text)
        if any(text is vars(base).get("__doc__", 0) for base in value.__mro__[1:]):
            text = None
    return text if isinstance(text, str) else ""


def _is_native(value: object) -> bool:
    return type(value).__name__ in ("builtin_function_or_method", "method_descriptor")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 200 and " at 0x" not in text else "..."


def _signature(entry: Entry) -> str:
    value = entry.value
    if isinstance(value, property) or not callable(value):
        return entry.path
    try:
        shown = str(inspect.signature(value))
    except (TypeError, ValueError):
        return f"{entry.path}(...)"
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", shown.replace("taeda._C.", "taeda."))
    if isinstance(value, type):
        return f"class {entry.path}{shown.removesuffix(' -> None')}"
    return entry.path + shown
