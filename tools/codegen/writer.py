"""Where emitters put their files: a folder, or nothing but a list of names."""

from __future__ import annotations

from pathlib import Path


class Output:
    """Collects files; `flush` writes those whose content changed and drops old ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}

    def write(self, name: str, content: str) -> None:
        """Adds the file `name` (relative to the folder)."""
        if name in self.files:
            raise ValueError(f"codegen: two emitters write {name}")
        self.files[name] = content

    def flush(self) -> int:
        """Writes to disk, touching changed files only; returns how many changed."""
        changed = 0
        for name, content in sorted(self.files.items()):
            path = self.folder / name
            if path.is_file() and path.read_text(encoding="utf-8") == content:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            changed += 1
        self._drop_stale()
        return changed

    def _drop_stale(self) -> None:
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and name not in self.files:
                path.unlink()
