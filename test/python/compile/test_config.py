"""Settings of compilation, and what they do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import taeda
from taeda._dynamo import config as capture
from taeda.compiler import config

PROGRAM = """
import sys, taeda
from taeda import _compiler
{before}
taeda.compile(lambda x: taeda.tanh(x) * 2 + x, options={{"blocking": True}})(
    taeda.ones(64)
)
print(_compiler.kernel_folder() is not None)
"""


def _files(tmp_path, before: str = "", **env) -> tuple[str, list[str]]:
    """What a program prints that compiles a kernel, and the files that it leaves."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)],
        env={**os.environ, "TAEDA_CACHE_DIR": str(tmp_path), **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), sorted(p.name for p in tmp_path.rglob("*.so"))


def test_settings_of_capture_are_shared():
    with config.patch(recompile_limit=3):
        assert capture.recompile_limit == 3
    with capture.patch(capture_scalar_outputs=True):
        assert config.capture_scalar_outputs
    assert config.recompile_limit == capture.recompile_limit == 8
    assert not hasattr(config, "suppress_errors") and capture.suppress_errors is False
    with pytest.raises(AttributeError, match="no_such does not exist"):
        config.no_such = 1
    with pytest.raises(TypeError, match="recompile_limit: expected int"):
        config.recompile_limit = "8"


def test_what_has_one_value_says_so():
    assert config.job_id is None
    with pytest.warns(UserWarning, match="job_id is always None here"):
        config.job_id = "one"


def test_no_files_without_caches(tmp_path):
    off = "taeda.compiler.config.force_disable_caches = True"
    assert _files(tmp_path, off) == ("False", [])
    for name in ("TORCH_COMPILE", "TORCHINDUCTOR"):
        env = {f"{name}_FORCE_DISABLE_CACHES": "1"}
        assert _files(tmp_path, **env) == ("False", [])
    told, files = _files(tmp_path)
    assert told == "True" and len(files) == 1


def test_a_tag_is_part_of_the_name(tmp_path):
    first = _files(tmp_path)[1]
    again = _files(tmp_path)[1]
    assert first == again and len(first) == 1
    tagged = _files(tmp_path, 'taeda.compiler.config.cache_key_tag = "one"')[1]
    assert len(tagged) == 2
    assert _files(tmp_path, TORCH_COMPILE_CACHE_KEY_TAG="one")[1] == tagged


def test_regions_are_their_functions():
    @taeda.compiler.nested_compile_region
    def layer(x):
        """Twice."""
        return x * 2

    assert layer.__doc__ == "Twice."
    counted = taeda.compile(lambda x: layer(layer(x)), fullgraph=True)
    assert counted(taeda.ones(2)).tolist() == [4, 4]
    assert taeda.compiler.nested_compile_region()(layer)(taeda.ones(1)).item() == 2
    with pytest.raises(NotImplementedError, match="options"):
        taeda.compiler.nested_compile_region(layer, options=object())
    with pytest.raises(AssertionError, match="expects a callable, got int"):
        taeda.compiler.nested_compile_region(3)


@pytest.mark.parametrize("named", ["L['x']", "L['n']", r"L\['(x|n)'\], L['y']"])
def test_sources_are_symbols_at_once(named) -> None:
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    @taeda.compile(backend=backend, dynamic=False)
    def run(x, n):
        return x * n

    with taeda.compiler.config.patch(dynamic_sources=named):
        for size, n in ((2, 3), (4, 3), (6, 3)) if "n'" not in named else ((2, 3),):
            assert run(taeda.ones(size), n).equal(taeda.full((size,), float(n)))
        for n in (4, 5) if "n" in named else ():
            assert run(taeda.ones(2), n).equal(taeda.full((2,), float(n)))
    assert len(graphs) == 1


def test_sources_on_which_nothing_may_depend() -> None:
    with taeda.compiler.config.patch(unbacked_sources="L['x']"):
        run = taeda.compile(
            lambda x: x + 1 if x.shape[0] > 2 else x, backend="eager", fullgraph=True
        )
        with pytest.raises(taeda._dynamo.exc.Unsupported, match="data-dependent"):
            run(taeda.ones(3))
