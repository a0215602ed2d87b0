"""Models published as repositories, and files fetched once."""

from __future__ import annotations

import os
import re
import sys
from typing import Any
from urllib.parse import urlparse

import taeda
from taeda._absent import absent_function

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

# The first 8 or more digits of a file's SHA-256, at the end of its name.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_builtin_list = type([])
_chosen: str | None = None


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(
        os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))
    )


def get_dir() -> str:
    """The folder of fetched files: what `set_dir` says, or `$TORCH_HOME/hub`."""
    return _chosen if _chosen is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d) -> None:
    """Chooses the folder of fetched files."""
    global _chosen
    _chosen = os.path.expanduser(d)


def _copy(source, target, digest, total: int | None, progress: bool) -> None:
    done = 0
    while block := source.read(1 << 17):
        target.write(block)
        digest.update(block)
        done += len(block)
        if progress and total:
            print(f"\r{100 * done // total:3d}% of {total}", end="", file=sys.stderr)
    if progress:
        print(file=sys.stderr)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Fetches a file; it appears under its name only when it is complete.

    Args:
        url: where it is.
        dst: the file's path.
        hash_prefix: how its SHA-256 starts.
        progress: print how far it has come, to stderr.

    Raises:
        RuntimeError: the file has another SHA-256.
    """
    import hashlib
    import uuid
    from urllib.request import Request, urlopen

    dst = os.path.expanduser(dst)
    part, digest = f"{dst}.{uuid.uuid4().hex}.partial", hashlib.sha256()
    try:
        request = Request(url, headers={"User-Agent": "torch.hub"})
        with urlopen(request) as source, open(part, "wb") as target:
            length = source.headers.get("Content-Length")
            _copy(source, target, digest, int(length) if length else None, progress)
        found = digest.hexdigest()
        if hash_prefix and not found.startswith(hash_prefix):
            raise RuntimeError(
                f'invalid hash value (expected "{hash_prefix}", got "{found}")'
            )
        os.replace(part, dst)
    finally:
        if os.path.exists(part):
            os.remove(part)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location=None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """What `load` gives for a file, fetched where the folder lacks it.

    Args:
        url: where it is.
        model_dir: the folder; `get_dir()/checkpoints` when absent.
        map_location: as for `load`.
        progress: print how far it has come.
        check_hash: the name ends in the start of its SHA-256, which must agree.
        file_name: its name in the folder; by default that of the URL.
        weights_only: as for `load`.
    """
    model_dir = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        print(f'Downloading: "{url}" to {path}\n', file=sys.stderr)
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found and found.group(1), progress=progress)
    return taeda.load(path, map_location=map_location, weights_only=weights_only)


def _local(repo_or_dir: str, source: str):
    """The entry points of a folder: its module hubconf."""
    from importlib.util import module_from_spec, spec_from_file_location

    if source == "github":
        absent_function("hub.load from GitHub")()
    if source != "local":
        raise ValueError(
            f'Unknown source: "{source}". Allowed values: "github" | "local".'
        )
    path = os.path.join(repo_or_dir, "hubconf.py")
    sys.path.insert(0, repo_or_dir)
    try:
        spec = spec_from_file_location("hubconf", path)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(repo_or_dir)
    return module


def _entry(module, name: str):
    function = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def load(
    repo_or_dir: str,
    model: str,
    *args,
    source: str = "github",
    trust_repo=None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs,
):
    """What an entry point of a folder's `hubconf.py` returns.

    Args:
        repo_or_dir: the folder.
        model: the entry point's name.
        args: its arguments.
        source: "local"; "github" is not implemented.
        trust_repo, force_reload, verbose, skip_validation: for repositories.
        kwargs: its named arguments.
    """
    return _entry(_local(repo_or_dir, source), model)(*args, **kwargs)


def list(
    github: str,
    force_reload=False,
    skip_validation=False,
    trust_repo=None,
    verbose=True,
    *,
    source: str = "github",
) -> _builtin_list:
    """The names of a folder's entry points."""
    module = _local(github, source)
    return [
        name
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_")
    ]


def help(
    github: str,
    model: str,
    force_reload=False,
    skip_validation=False,
    trust_repo=None,
    *,
    source: str = "github",
) -> str | None:
    """The docstring of an entry point."""
    return _entry(_local(github, source), model).__doc__
