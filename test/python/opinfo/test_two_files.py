"""Adding a pointwise operator with a derivative touches two files.

The tree is overlaid in a private mount namespace, so that the edit and the rebuild see
the same paths as the real build and leave nothing behind.
"""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MOST_UNITS, MOST_SECONDS = 12, 60

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
import numpy as np, pathlib, sys
import taeda as T
x = T.tensor([[1, 2, 3], [4, 5, 6]])
y = T.tensor([0.5, -1.0, 2.0])
got = T.throwaway_blend(x, y)
assert got.dtype == T.float32 and got.shape == (2, 3)
want = x.numpy() ** 2 * y.numpy() + 3 * y.numpy()
np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
c = T.tensor([1 + 2j, 3 - 1j], dtype=T.complex128, requires_grad=True)
d = T.tensor([2 - 1j], dtype=T.complex128, requires_grad=True)
a = T.rand(2, 3, dtype=T.float64, requires_grad=True)
b = T.rand(3, dtype=T.float64, requires_grad=True)
for inputs in ((a, b), (c, d)):
    assert T.autograd.gradcheck(T.throwaway_blend, inputs)
    assert T.autograd.gradgradcheck(T.throwaway_blend, inputs)
out = T.empty(0, dtype=T.float64)
assert T.throwaway_blend(a.detach(), b.detach(), out=out) is out
z = a.detach().clone()
z.throwaway_blend_(b.detach())
assert T.equal(z, out)
assert "exists only in this test" in T.throwaway_blend.__doc__
stubs = pathlib.Path("build/gen").rglob("*.pyi")
assert any("def throwaway_blend(" in p.read_text() for p in stubs), "no stub"
pages = pathlib.Path("build/gen").rglob("*.md")
assert any("throwaway_blend" in p.read_text() for p in pages), "no API page"
"""


def _script(folder: Path) -> str:
    """What runs inside the namespace."""
    (folder / "record.yaml").write_text(RECORD)
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "check.py").write_text(CHECK)
    return textwrap.dedent(
        f"""
        set -e
        mkdir -p {folder}/upper {folder}/work
        mount -t overlay overlay \\
          -o lowerdir={ROOT},upperdir={folder}/upper,workdir={folder}/work {ROOT}
        cd {ROOT}
        cat {folder}/record.yaml >> aten/ops/binary.yaml
        cat {folder}/reference.py >> test/opinfo/references.py
        start=$(date +%s.%N)
        CCACHE_DISABLE=1 ninja -C build -j2 > {folder}/log 2>&1 \\
          || (tail -c 4000 {folder}/log; exit 1)
        python -c "import time; print(\"seconds\", time.time() - $start)"
        echo "units $(grep -c 'Building CXX object' {folder}/log)"
        export PYTHONPATH={ROOT}/python
        python {folder}/check.py
        python -m pytest -q -k throwaway_blend test/python/opinfo/test_pointwise.py
        """
    )


def _can_mount() -> bool:
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return probe.returncode == 0


@pytest.mark.skipif(
    os.geteuid() != 0 or not _can_mount(), reason="needs mount namespaces"
)
def test_a_new_operator_needs_two_files(tmp_path: Path) -> None:
    assert (ROOT / "build/build.ninja").exists(), "run `tools/dev build` first"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", _script(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    words = dict(
        line.split(" ", 1) for line in done.stdout.splitlines() if line.count(" ") == 1
    )
    assert 3 <= int(words["units"]) <= MOST_UNITS, done.stdout
    assert float(words["seconds"]) <= MOST_SECONDS, done.stdout
