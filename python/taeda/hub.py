"""Models published as repositories, and files fetched once."""

from __future__ import annotations

import os
import re
import sys
from typing import Any
from urllib.parse import urlparse

import taeda
from taeda._lazy import missing

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


def _tqdm():
    """The class of progress bars: tqdm's, or ours where that is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        from taeda._progress import Progress as tqdm
    return tqdm


def __getattr__(name: str):
    if name == "tqdm":
        return _tqdm()
    raise missing(__name__, name)


def _copy(source, target, total: int | None, progress: bool) -> str:
    """Copies to the end; the SHA-256 of what came."""
    import hashlib

    done, digest = 0, hashlib.sha256()
    with _tqdm()(total=total, disable=not progress, unit="B", unit_scale=True) as bar:
        while block := source.read(1 << 17):
            target.write(block)
            digest.update(block)
            done += len(block)
            bar.update(len(block))
    if total is not None and done != total:
        raise RuntimeError(f"the download broke off after {done} of {total} bytes")
    return digest.hexdigest()


def _fetch(url: str, path: str, expected: str | None, progress: bool) -> str:
    """Downloads to a path; the SHA-256, which must begin as expected."""
    from urllib.request import Request, urlopen

    from taeda._io.atomic import AtomicFile

    request = Request(url, headers={"User-Agent": "torch.hub"})
    with urlopen(request) as source, AtomicFile(path) as target:
        length = source.headers.get("Content-Length")
        found = _copy(source, target, int(length) if length else None, progress)
        if expected and not found.startswith(expected):
            raise RuntimeError(
                f'invalid hash value (expected "{expected}", got "{found}")'
            )
    return found


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
        RuntimeError: the file has another SHA-256, or the connection broke.

    With a connection:
        download_url_to_file("https://example.org/w.pt", "w.pt", "5c106cde")
    """
    _fetch(url, os.path.expanduser(dst), hash_prefix, progress)


def _fetch_checked(url: str, path: str, demanded: bool, progress: bool) -> None:
    """Downloads a file and compares it with the hash in its name."""
    match = HASH_REGEX.search(os.path.basename(path))
    digits = match.group(1) if match else ""
    if demanded:
        _fetch(url, path, digits, progress)
        return
    found = _fetch(url, path, None, progress)
    # Fewer digits than eight are a size, decimal ones a date. Others may be no hash
    # either, so a difference nobody asked about does not fail the call.
    if len(digits) >= 8 and not digits.isdecimal() and not found.startswith(digits):
        import warnings

        warnings.warn(
            f"{path}: its name carries {digits}, its SHA-256 begins {found[:8]}; "
            "check_hash=True refuses such a file",
            stacklevel=3,
        )


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location=None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool | None = None,
) -> dict[str, Any]:
    """What `load` gives for a file, fetched where the folder lacks it.

    The file is read as data: PyTorch runs code in it unless told otherwise.

    Args:
        url: where it is.
        model_dir: the folder; `get_dir()/checkpoints` when absent.
        map_location: as for `load`.
        progress: print how far it has come.
        check_hash: the name ends in the start of its SHA-256, which must agree. When
            False, a name that carries 8 or more such digits and differs is warned of.
        file_name: its name in the folder; by default that of the URL.
        weights_only: False runs code in the file, with a warning.

    Raises:
        RuntimeError: another hash than was asked for, or the connection broke.
        UnpicklingError: as for `load`.

    With a connection:
        load_state_dict_from_url("https://example.org/resnet18-5c106cde.pth")
    """
    model_dir = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir, name)
    data_only = weights_only is None or bool(weights_only)
    if not data_only:
        import warnings

        warnings.warn(
            f"weights_only=False with {url}: loading it runs any code that whoever "
            "wrote it, or changed it on its way here, put into the file. Leave "
            "weights_only out to read it as data; taeda.serialization."
            "add_safe_globals names classes that you trust.",
            stacklevel=2,
        )
    if not os.path.exists(path):
        print(f'Downloading: "{url}" to {path}\n', file=sys.stderr)
        _fetch_checked(url, path, check_hash, progress)
    return taeda.load(path, map_location=map_location, weights_only=data_only)


# Repositories ---------------------------------------------------------------

# Owners whose repositories PyTorch fetches without a question.
_TRUSTED_OWNERS = "facebookresearch facebookincubator pytorch fairinternal".split()


def _check_trust(repository, cache: str, trust) -> None:
    """Asks the user where that is needed; keeps what is trusted in a list."""
    path = os.path.join(cache, "trusted_list")
    with open(path, "a+") as file:
        file.seek(0)
        listed = repository.key in file.read().split()
    known = listed or repository.owner in _TRUSTED_OWNERS
    known |= os.path.isdir(os.path.join(cache, repository.folder))
    if trust is False or (trust in ("check", None) and not known):
        answer = input(
            f"The repository {repository.path} is not on the list of those that you "
            "trust. Fetch it, run its code and put it on the list? (y/N) "
        )
        if answer.lower() in ("", "n", "no"):
            raise RuntimeError(f"Untrusted repository. {repository.path} is not used")
        if answer.lower() not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {answer}.")
    if not known:
        with open(path, "a") as file:
            file.write(repository.key + "\n")


def _repository(
    github: str, force_reload: bool, skip_validation: bool, trust_repo, verbose: bool
) -> str:
    """The folder of a repository's files, fetched if it is not there."""
    from taeda import _github

    cache = get_dir()
    os.makedirs(cache, exist_ok=True)
    repository = _github.parse(github, cache)
    _check_trust(repository, cache, trust_repo)
    folder = os.path.join(cache, repository.folder)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            print(f"Using cache found in {folder}", file=sys.stderr)
        return folder
    if not skip_validation:
        _github.validate(repository)

    def download(url: str, path: str) -> None:
        print(f'Downloading: "{url}" to {folder}', file=sys.stderr)
        _fetch(url, path, None, progress=False)

    _github.fetch(repository, cache, download)
    return folder


class _Hubconf:
    """The module hubconf of a folder, which is on `sys.path` meanwhile."""

    def __init__(self, where: str, source: str, *options) -> None:
        source = source.lower()
        if source not in ("github", "local"):
            raise ValueError(
                f'Unknown source: "{source}". Allowed values: "github" | "local".'
            )
        local = source == "local"
        self.folder = where if local else _repository(where, *options)

    def __enter__(self) -> _Hubconf:
        from importlib.util import module_from_spec, spec_from_file_location

        path = os.path.join(self.folder, "hubconf.py")
        spec = spec_from_file_location("hubconf", path)
        self.module = module_from_spec(spec)
        sys.path.insert(0, self.folder)
        try:
            spec.loader.exec_module(self.module)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error) -> None:
        sys.path.remove(self.folder)

    def entry(self, name: str):
        """An entry point, if what the repository depends on is there."""
        from importlib.util import find_spec

        if not isinstance(name, str):
            raise ValueError("Invalid input: model should be a string of function name")
        needed = getattr(self.module, "dependencies", None) or ()
        absent = [package for package in needed if find_spec(package) is None]
        if absent:
            raise RuntimeError(f"Missing dependencies: {', '.join(absent)}")
        function = getattr(self.module, name, None)
        if not callable(function):
            raise RuntimeError(f"Cannot find callable {name} in hubconf")
        return function


def load(
    repo_or_dir: str,
    model: str,
    *args,
    source: str = "github",
    trust_repo: bool | str | None = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs,
):
    """What an entry point of a repository's or folder's `hubconf.py` returns.

    That runs the repository's code. It is fetched once, into a folder of `get_dir()`.

    Args:
        repo_or_dir: "owner/name" or "owner/name:ref" on GitHub, ref being a branch or
            tag (main, else master, when absent); with source="local" a folder.
        model: the entry point's name.
        args: its arguments.
        source: "github" or "local".
        trust_repo: "check" asks the user about a repository that is neither on the
            list `get_dir()/trusted_list` nor fetched already; False always asks;
            True does not and puts it on the list.
        force_reload: fetch it again.
        verbose: say when it was fetched already.
        skip_validation: do not ask GitHub whether ref is the repository's own.
        kwargs: the entry point's named arguments.

    Raises:
        RuntimeError: the user does not trust it, a package that it depends on is
            missing, or it has no such entry point. ValueError: no such ref or source.

    With a connection:
        load("pytorch/vision:v0.20.0", "resnet18")
    """
    options = force_reload, skip_validation, trust_repo, verbose
    with _Hubconf(repo_or_dir, source, *options) as hubconf:
        return hubconf.entry(model)(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = "check",
    verbose: bool = True,
    *,
    source: str = "github",
) -> _builtin_list:
    """The names of a repository's entry points; its arguments are those of `load`."""
    options = force_reload, skip_validation, trust_repo, verbose
    with _Hubconf(github, source, *options) as hubconf:
        return [
            name
            for name in dir(hubconf.module)
            if not name.startswith("_") and callable(getattr(hubconf.module, name))
        ]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: bool | str | None = "check",
    *,
    source: str = "github",
) -> str | None:
    """The docstring of an entry point; its arguments are those of `load`."""
    options = force_reload, skip_validation, trust_repo, True
    with _Hubconf(github, source, *options) as hubconf:
        return hubconf.entry(model).__doc__
