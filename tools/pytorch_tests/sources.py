"""Where PyTorch's tests are."""

from __future__ import annotations

import os
import tarfile
import urllib.request
from pathlib import Path

__all__ = ["folder"]

VERSION = "2.12.1"
URL = f"http://deb.debian.org/debian/pool/main/p/pytorch/pytorch_{VERSION}+dfsg.orig.tar.xz"


def folder() -> Path:
    """The folder `test` of PyTorch's sources; fetches them where they are not here."""
    base = os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")
    root = Path(base) / "taeda-pytorch-tests"
    tests = root / f"pytorch-v{VERSION}" / "test"
    if not tests.exists():
        root.mkdir(parents=True, exist_ok=True)
        archive = root / "sources.tar.xz"
        urllib.request.urlretrieve(URL, archive)
        with tarfile.open(archive) as packed:
            packed.extractall(root, filter="data")
        archive.unlink()
    return tests
