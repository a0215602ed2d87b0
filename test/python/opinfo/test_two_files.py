"""Adding a pointwise operator with a derivative touches two files.

A copy of the tree (`tree_copies.py`) is edited and built again without ccache, which is
measured. Then everything that follows from a record is tried: forms, derivatives,
forward mode, vmap, meta tensors of symbolic sizes, the record at run time, its page.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

from tree_copies import run, run_in_a_copy

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

# What the record says is read by everything else, too, without a file of its own.
from taeda import _C, _shapes
from taeda.fx.experimental.symbolic_shapes import ShapeEnv
many, few = numbers(5, 2, 3, dtype=T.float64), numbers(5, 3, dtype=T.float64)
runs = []
def body(a, b):
    runs.append(a.shape)
    return T.throwaway_blend(a, b)
before = _C._functorch.loops()
got = T.func.vmap(body)(many, few)
assert runs == [(2, 3)] and _C._functorch.loops() == before, (runs, before)
np.testing.assert_allclose(got.numpy(), want(many.numpy(), few.numpy()[:, None]))
a, b = numbers(2, 3, dtype=T.float64), numbers(3, dtype=T.float64)
da, db = numbers(2, 3, dtype=T.float64), numbers(3, dtype=T.float64)
value, tangent = T.func.jvp(T.throwaway_blend, (a, b), (da, db))
np.testing.assert_allclose(value.numpy(), want(a.numpy(), b.numpy()))
slope = 2 * a * b * da + (a * a + 3) * db
np.testing.assert_allclose(tangent.numpy(), slope.numpy())
env = ShapeEnv()
n, m = env.create_size(4, "n", "marked"), env.create_size(3, "m", "marked")
wide = T.empty_strided([n, m], [m, 1], dtype=T.float64, device="meta")
row = T.empty_strided([m], [1], dtype=T.int64, device="meta")
_shapes.take_symbolic_fallbacks()
got = T.throwaway_blend(wide, row)
assert not _shapes.take_symbolic_fallbacks() and got.dtype == T.float64
assert [str(s) for s in got.shape] == [str(n), str(m)], got.shape
record = T.ops.aten.throwaway_blend.default.record
assert (record.family, record.form) == ("pointwise", "functional")
assert record.schema.startswith("throwaway_blend(Tensor self, Tensor other, *")
assert [a.name for a in record.arguments] == ["self", "other", "scale"]
assert "float32" in record.dtypes.accepts and "bool" not in record.dtypes.accepts
forward = [e.text for e in record.expressions if e.role == "forward"]
assert forward and all("scale" in text for text in forward), forward
assert "exists only in this test" in T.throwaway_blend.__doc__
gen = pathlib.Path("build/gen")
stubs = [p.read_text() for p in gen.rglob("*.pyi")]
assert any("def throwaway_blend(" in text for text in stubs), "no stub"
pages = [p.read_text() for p in gen.rglob("*.md")]
assert any("throwaway_blend" in text for text in pages), "no API page"
"""


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


def test_a_new_operator_needs_two_files(tmp_path: Path) -> None:
    run_in_a_copy(__file__, tmp_path)


if __name__ == "__main__":
    edit_and_check(Path(sys.argv[1]))
