"""Adding a pointwise operator with a derivative touches two files.

The tree is edited and built again without ccache where that leaves no trace: under an
overlay in a mount namespace of our own, or, where none is permitted, in a copy of the
tree, which then has to be built once before (that build is not measured).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# The budget on two cores, units being compiled files.
MOST_UNITS, MOST_SECONDS, CORES = 12, 60, 2

RECORD = """
- name: throwaway_blend
  family: pointwise
  doc: |
    A blend of two operands that exists only in this test.
    out = self * self * other + other * scale
  args:
    self: tensor of any dtype
    other: tensor, broadcast with self
    scale: factor of other
  overloads:
    - schema: "throwaway_blend(Tensor self, Tensor other, *, Scalar scale=3) -> Tensor"
      forms: [inplace, out]
  dtypes: {in: no_bool, compute: [i64, f32, f64, c64, c128]}
  expr: "self * self * other + other * scale"
"""

REFERENCE = """
REFERENCES["throwaway_blend"] = lambda x, y: x * x * y + y * 3
"""

CHECK = """
import numpy as np, pathlib
import taeda as T
def numbers(*shape, dtype):
    rng = np.random.default_rng(len(shape))
    x = rng.normal(size=shape)
    if dtype.is_complex: x = x + 1j * rng.normal(size=shape)
    return T.tensor(x, dtype=dtype)
def want(x, y): return x * x * y + 3 * y
x = T.tensor([[1, 2, 3], [4, 5, 6]])
y = T.tensor([0.5, -1.0, 2.0])
got = T.throwaway_blend(x, y)
assert got.dtype == T.float32 and got.shape == (2, 3)
np.testing.assert_allclose(got.numpy(), want(x.numpy(), y.numpy()), rtol=1e-6)
got = T.throwaway_blend(x, T.tensor([2]))
assert got.dtype == T.int64 and got.tolist() == want(x.numpy(), 2).tolist()
for dtype in (T.float64, T.complex128):
    a = numbers(2, 3, dtype=dtype).requires_grad_()
    b = numbers(3, dtype=dtype).requires_grad_()
    got = T.throwaway_blend(a, b).detach().numpy()
    np.testing.assert_allclose(got, want(a.detach().numpy(), b.detach().numpy()))
    assert T.autograd.gradcheck(T.throwaway_blend, (a, b))
    assert T.autograd.gradgradcheck(T.throwaway_blend, (a, b))
    out = T.empty(0, dtype=dtype)
    assert T.throwaway_blend(a.detach(), b.detach(), out=out) is out
    z = a.detach().clone()
    assert z.throwaway_blend_(b.detach()) is z
    assert T.equal(z, out)
    np.testing.assert_allclose(out.numpy(), got)
assert "exists only in this test" in T.throwaway_blend.__doc__
gen = pathlib.Path("build/gen")
stubs = [p.read_text() for p in gen.rglob("*.pyi")]
assert any("def throwaway_blend(" in text for text in stubs), "no stub"
pages = [p.read_text() for p in gen.rglob("*.md")]
assert any("throwaway_blend" in text for text in pages), "no API page"
"""


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


def edit_and_check(tree: Path) -> None:
    """What the test claims, on a tree that may be changed."""
    run(tree, "tools/dev", "build")
    with open(tree / "aten/ops/binary.yaml", "a") as file:
        file.write(RECORD)
    with open(tree / "test/opinfo/references.py", "a") as file:
        file.write(REFERENCE)

    start, before = time.monotonic(), os.times()
    log = run(tree, "tools/dev", "build", CCACHE_DISABLE="1", TAEDA_JOBS=str(CORES))
    seconds, after = time.monotonic() - start, os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    units = re.findall(r"Building CXX object (\S+)", log)
    print(f"{len(units)} units, {seconds:.1f} s, {cpu:.1f} CPU-s")
    print(*units, sep="\n")
    # A record makes at least a kernel for each ISA level.
    assert 3 <= len(units) <= MOST_UNITS, units
    # What else runs on the machine is none of the edit's doing.
    assert min(seconds, cpu / CORES) <= MOST_SECONDS

    (tree / "check.py").write_text(CHECK)
    run(tree, "check.py", PYTHONPATH=str(tree / "python"))
    suite = "test/python/opinfo/test_pointwise.py"
    words = ("-m", "pytest", "-q", "-k", "throwaway_blend", suite)
    report = run(tree, *words, PYTHONPATH=f"{tree}/python:{tree}/test/python/opinfo")
    assert re.search(r"\b[3-9] passed", report), report


def overlay(folder: Path) -> list[str | Path]:
    """A command that runs the rest of its line with the tree under an overlay."""
    layers = f"lowerdir={ROOT},upperdir={folder}/upper,workdir={folder}/work"
    for name in ("upper", "work"):
        (folder / name).mkdir()
    mount = f'mount -t overlay overlay -o "{layers}" "{ROOT}" && exec "$@"'
    return ["unshare", "-m", "sh", "-c", mount, "sh"]


def test_a_new_operator_needs_two_files(tmp_path: Path) -> None:
    prefix = overlay(tmp_path)
    try:
        probe = subprocess.run([*prefix, "true"], capture_output=True, check=False)
        permitted = probe.returncode == 0
    except FileNotFoundError:
        permitted = False
    tree = ROOT if permitted else tmp_path / "tree"
    if not permitted:
        prefix = []
        copy_tree(tree)
    command = [*prefix, sys.executable, __file__, tree]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]


if __name__ == "__main__":
    edit_and_check(Path(sys.argv[1]))
