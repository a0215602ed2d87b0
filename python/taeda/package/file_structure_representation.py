"""The files of a package as a tree."""

from __future__ import annotations

from .glob_group import GlobGroup, GlobPattern

__all__ = ["Directory"]


class Directory:
    """A folder of a package, or a file in one; its text is the tree below it.

    Args:
        name: without the folders above.
        is_dir: whether it is a folder.
    """

    def __init__(self, name: str, is_dir: bool) -> None:
        self.name, self.is_dir = name, is_dir
        self.children: dict[str, Directory] = {}

    def _add_file(self, path: str) -> None:
        *folders, name = path.split("/")
        place = self
        for folder in folders:
            place = place.children.setdefault(folder, Directory(folder, True))
        place.children[name] = Directory(name, False)

    def has_file(self, filename: str) -> bool:
        """Is there a file or folder of that path?"""
        place = self
        for part in filename.split("/"):
            if part not in place.children:
                return False
            place = place.children[part]
        return True

    def __str__(self) -> str:
        return "".join(
            f"{line}\n" for line in ["─── " + self.name, *self._lines("    ")]
        )

    def _lines(self, margin: str) -> list[str]:
        inside = sorted(self.children.values(), key=lambda d: (not d.is_dir, d.name))
        lines = []
        for child in inside:
            last = child is inside[-1]
            lines.append(margin + ("└── " if last else "├── ") + child.name)
            lines += child._lines(margin + ("    " if last else "│   "))
        return lines


def tree_of(
    name: str, paths: list[str], include: GlobPattern, exclude: GlobPattern
) -> Directory:
    """The tree of those files that patterns leave."""
    group = GlobGroup(include, exclude=exclude, separator="/")
    root = Directory(name, True)
    for path in filter(group.matches, paths):
        root._add_file(path)
    return root
