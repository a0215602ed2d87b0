"""Copies of the tree that a test may change and build.

Where that is permitted, the tree itself under an overlay in a mount namespace of our
own, which leaves no trace; else a copy, which has to be built once before.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def copy_tree(target: Path) -> None:
    """What git tracks or would track, and a link to the environment."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    (target / ".venv").symlink_to(ROOT / ".venv")


def run(tree: Path, *words: str | Path, **env: str) -> str:
    """Runs this Python in the tree; its output, also that of a failure."""
    done = subprocess.run(
        [tree / ".venv/bin/python", *words],
        cwd=tree,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def overlay(folder: Path) -> list[str | Path]:
    """A command that runs the rest of its line with the tree under an overlay."""
    layers = f"lowerdir={ROOT},upperdir={folder}/upper,workdir={folder}/work"
    for name in ("upper", "work"):
        (folder / name).mkdir()
    mount = f'mount -t overlay overlay -o "{layers}" "{ROOT}" && exec "$@"'
    return ["unshare", "-m", "sh", "-c", mount, "sh"]


def run_in_a_copy(script: str, folder: Path) -> None:
    """Runs a test's own file as a program, with the path of a built tree to change."""
    prefix = overlay(folder)
    try:
        probe = subprocess.run([*prefix, "true"], capture_output=True, check=False)
        permitted = probe.returncode == 0
    except FileNotFoundError:
        permitted = False
    tree = ROOT if permitted else folder / "tree"
    if not permitted:
        prefix = []
        copy_tree(tree)
    command = [*prefix, sys.executable, script, tree]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
