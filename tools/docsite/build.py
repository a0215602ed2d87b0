"""Writes the site's sources and runs MkDocs on them: what `tools/dev docs` calls.

    python -m docsite.build FOLDER [PREFIX...]

FOLDER gets `source/` (Markdown), `html/` and tables: `names.json` (public name to page),
`examples.json` (public name to the text that has its example), `bare.json` (operators
without one), `unshown.json` (other functions and classes without one). With prefixes
only the modules that begin with one have pages.
"""

from __future__ import annotations

import json
import logging
import pathlib
import re
import shutil
import sys

from . import inventory, markdown
from .examples import PRELUDE
from .pages import Writer

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETTINGS = {
    "site_name": "Taeda",
    "theme": {"name": "readthedocs", "highlightjs": False, "navigation_depth": 3},
    "markdown_extensions": ["attr_list", "fenced_code", "tables"],
    "plugins": ["search"],
    # A link that leads nowhere is an error (`strict`).
    "validation": {
        "nav": {"omitted_files": "ignore"},
        "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"},
    },
}


def written_pages(source: pathlib.Path) -> None:
    """The README as the first page, and the guides and designs as they are."""
    docs = ROOT / "docs"
    for folder in ("guides", "design"):
        shutil.copytree(docs / folder, source / folder)
    for page in ("placeholders.md", "not_there_yet.md"):
        shutil.copy(docs / page, source)
    for folder in ("guides", "design"):
        (source / folder / "README.md").rename(source / folder / "index.md")
    first = (ROOT / "README.md").read_text()
    (source / "index.md").write_text(re.sub(r"\]\(docs/", "](", first))


def api_pages(source: pathlib.Path, prefixes: list[str]) -> tuple[dict, Writer]:
    """Writes the pages of the interface.

    Returns:
        Public name to page; and the writer, which knows the examples.
    """
    modules = inventory.modules()
    paged = inventory.pages(inventory.collect())
    if prefixes:
        paged = {p: e for p, e in paged.items() if p.startswith(tuple(prefixes))}
    targets = inventory.targets(paged)
    writer = Writer({name: f"api/{page}" for name, page in targets.items()})
    for page, entries in paged.items():
        space, _, letter = page.partition("/")
        about = (modules[space].__doc__ if space in modules else "") or ""
        if ">>>" in about:
            writer.examples[f"{space}.__doc__"] = about
        title = f"{space}: {letter}" if letter else space
        text = writer.page(f"api/{page}", entries, title, about)
        target = source / "api" / f"{page}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (source / "api" / "index.md").write_text(_contents(paged))
    return targets, writer


def _contents(paged: dict[str, list]) -> str:
    about = "Every public name, by module. Examples run after these lines:"
    lines = ["# Interface", "", about, "", markdown.fence(PRELUDE, "python"), ""]
    spaces: dict[str, list[str]] = {}
    for page in paged:
        spaces.setdefault(page.partition("/")[0], []).append(page)
    for space, listed in sorted(spaces.items()):
        if listed == [space]:
            lines.append(f"- [{space}]({space}.md) ({len(paged[space])})")
        else:
            letters = " ".join(f"[{p.partition('/')[2]}]({p}.md)" for p in listed)
            lines.append(f"- {space}: {letters}")
    return "\n".join([*lines, ""])


def nav(source: pathlib.Path) -> list:
    """Guides and designs by title; the interface by its table of contents."""

    def titles(folder: str) -> list:
        found = []
        for path in sorted((source / folder).glob("*.md")):
            title = path.read_text().partition("\n")[0].lstrip("# ")
            found.append({title: f"{folder}/{path.name}"})
        return found

    return [
        {"Taeda": "index.md"},
        {"Interface": "api/index.md"},
        {"Guides": titles("guides")},
        {"Not there yet": "not_there_yet.md"},
        {"Names that refuse": "placeholders.md"},
        {"Design": titles("design")},
    ]


def build(folder: pathlib.Path, prefixes: list[str]) -> int:
    """Makes the whole site; 0, or 1 where MkDocs finds a mistake."""
    from mkdocs.commands.build import build as run
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    written_pages(source)
    targets, writer = api_pages(source, prefixes)
    tables = {"names": targets, "examples": writer.examples, "bare": writer.bare}
    tables["unshown"] = writer.unshown
    for name, table in tables.items():
        (folder / f"{name}.json").write_text(json.dumps(table, indent=0))
    settings = folder / "mkdocs.yml"
    settings.write_text(json.dumps({**SETTINGS, "nav": nav(source)}))  # YAML, too
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    config = load_config(
        str(settings),
        docs_dir=str(source),
        site_dir=str(folder / "html"),
        strict=True,
    )
    try:
        run(config)
    except Abort as abort:
        print(abort)
        return 1
    print(f"{len(targets)} names on {len(list(source.rglob('*.md')))} pages")
    return 0


if __name__ == "__main__":
    sys.exit(build(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]))
