"""`tools/dev docs`: the documentation site, in build/site/html."""

from __future__ import annotations

from devtool import cmake
from devtool.shell import ROOT, Failure, python, run, say

SITE = ROOT / "build" / "site"


def main(args: list[str]) -> int:
    """Builds the site of the library as it is linked into the package.

    Args:
        args: prefixes of the modules that get pages; all where there is none.
            `--coverage` brings the table of the README up to date instead.
    """
    if not (cmake.PACKAGE / "lib").exists():
        raise Failure("nothing is built yet; run tools/dev build")
    if run([python(), "-c", "import mkdocs"], check=False, quiet=True):
        raise Failure("MkDocs is not there; run tools/dev setup")
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tools'}"}
    if args == ["--coverage"]:
        return run([python(), "-m", "docsite.coverage"], env=env, check=False)
    command = [python(), "-m", "docsite.build", SITE, *args]
    status = run(command, env=env, check=False)
    if not status:
        say(f"site: {SITE / 'html' / 'index.html'}")
    return status
