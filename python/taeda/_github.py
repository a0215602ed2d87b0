"""GitHub repositories as `taeda.hub` uses them: named, checked, fetched, unpacked."""

from __future__ import annotations

import os
import re
import zipfile
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

__all__ = ["Repository", "fetch", "parse", "validate"]

_SITE, _API = "https://github.com", "https://api.github.com"
_BRANCHES = ("main", "master")  # where a repository without a ref is looked for
_FORM = re.compile(r"(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)(:(?P<ref>[^:]+))?")


class Repository(NamedTuple):
    """A repository at a branch, tag or commit."""

    owner: str
    name: str
    ref: str

    @property
    def key(self) -> str:
        """What the list of trusted repositories says."""
        return f"{self.owner}_{self.name}"

    @property
    def folder(self) -> str:
        """The name of its unpacked files' folder."""
        return f"{self.key}_{self.ref.replace('/', '_')}"

    @property
    def path(self) -> str:
        return f"{self.owner}/{self.name}"


def parse(text: str, cache: str) -> Repository:
    """The repository that "owner/name" or "owner/name:ref" stands for.

    Without a ref it is the branch main where there is one, else master. If GitHub
    cannot be asked, it is the one of the two that `cache` has.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(
            f"hub: expected 'owner/name' or 'owner/name:ref', got {text!r}"
        )
    owner, name, ref = match["owner"], match["name"], match["ref"]
    if ref is not None:
        return Repository(owner, name, ref)
    main, master = (Repository(owner, name, branch) for branch in _BRANCHES)
    try:
        urlopen(f"{_SITE}/{owner}/{name}/tree/main/").close()
    except HTTPError as error:
        if error.code != 404:
            raise
        return master
    except URLError as error:
        for found in (main, master):
            if os.path.isdir(os.path.join(cache, found.folder)):
                return found
        raise RuntimeError(
            "It looks like there is no internet connection and the repo could not be "
            f"found in the cache ({cache})"
        ) from error
    return main


def _ask(url: str):
    """GitHub's answer, with the user's token unless GitHub does not take it."""
    import json

    headers = {"Accept": "application/vnd.github.v3+json"}
    token = os.environ.get("GITHUB_TOKEN")
    if token is not None:
        with_token = {**headers, "Authorization": f"token {token}"}
        try:
            with urlopen(Request(url, headers=with_token)) as answer:
                return json.load(answer)
        except HTTPError:
            pass  # the token may lack the right to look, which nobody needs
    with urlopen(Request(url, headers=headers)) as answer:
        return json.load(answer)


def _heads(repository: Repository):
    """(name, commit) of all branches and tags, page by page."""
    for kind in ("branches", "tags"):
        page = 1
        while items := _ask(
            f"{_API}/repos/{repository.path}/{kind}?per_page=100&page={page}"
        ):
            yield from ((item["name"], item["commit"]["sha"]) for item in items)
            page += 1


def validate(repository: Repository) -> None:
    """Refuse a ref that is no branch, tag or head of the repository itself.

    GitHub serves commits of forks under the original's name too.
    """
    ref = repository.ref
    if not any(ref == name or sha.startswith(ref) for name, sha in _heads(repository)):
        raise ValueError(
            f"Cannot find {ref} in {_SITE}/{repository.path}. For a commit of a fork, "
            "name the fork."
        )


def fetch(repository: Repository, cache: str, download) -> None:
    """Put the repository's files into its folder of `cache`, in place of older ones.

    Args:
        repository: what to fetch.
        cache: the folder of all repositories.
        download: a function of a URL and the path of the file to be.
    """
    import tempfile

    with tempfile.TemporaryDirectory(dir=cache, prefix="fetch-") as scratch:
        archive = os.path.join(scratch, "archive.zip")
        _download(repository, archive, download)
        fresh = _unpack(archive, os.path.join(scratch, "files"))
        target = os.path.join(cache, repository.folder)
        if os.path.exists(target):
            os.rename(target, os.path.join(scratch, "old"))
        os.rename(fresh, target)


def _download(repository: Repository, path: str, download) -> None:
    url = f"{_SITE}/{repository.path}/zipball/"
    try:
        download(url + repository.ref, path)
    except HTTPError as error:
        if error.code != 300:
            raise
        import warnings

        warnings.warn(
            f"The ref {repository.ref} is ambiguous: a branch and a tag have the name. "
            "The branch is taken; refs/heads/NAME and refs/tags/NAME tell them apart.",
            stacklevel=2,
        )
        download(f"{url}refs/heads/{repository.ref}", path)


def _unpack(archive: str, folder: str) -> str:
    """Unpacks a zip file; the one folder that all of its files lie in."""
    with zipfile.ZipFile(archive) as source:
        members = source.namelist()
        for name in members:
            parts = re.split(r"[/\\]", name)
            if ".." in parts or parts[0] == "" or ":" in parts[0]:
                raise ValueError(f"hub: the archive entry {name!r} leaves its folder")
        roots = {name.split("/")[0] for name in members}
        if len(roots) != 1:
            raise ValueError(
                f"hub: an archive of one folder was expected, got {sorted(roots)}"
            )
        source.extractall(folder)
    return os.path.join(folder, roots.pop())
