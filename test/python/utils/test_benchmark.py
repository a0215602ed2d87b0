"""utils.benchmark: texts are PyTorch's, instruction counts are counts."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess

import numpy as np
import pytest
import taeda
from taeda.utils import benchmark

REAL = importlib.import_module("torch.utils.benchmark")


def measured(library, times, label="one", **spec):
    spec = {"stmt": "f(x)", "setup": "pass", "label": label, **spec}
    task = library.TaskSpec(**spec)
    return library.Measurement(10, [10 * t for t in times], task)


SPECS = (
    {},
    {"label": None},
    {"label": None, "stmt": "x = 1\ny = 2", "sub_label": "s"},
    {"sub_label": "s", "description": "d", "env": "e", "num_threads": 3},
    {"setup": "a = 1", "stmt": "f(x)\n+ 1"},
    {"setup": "a = 1\nb = 2", "description": "d"},
)
TIMES = (
    [1e-3],
    [2.5e-6, 2.6e-6, 2.61e-6, 2.65e-6, 9e-6],
    [4e-8, 5e-8, 9e-8],
    [1.5, 1.6, 1.7, 1.9, 2.4, 3.0],
    list(np.linspace(1e-4, 1.01e-4, 33)),
)


def text(measurement) -> str:
    return "\n".join(repr(measurement).splitlines()[1:])


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("times", TIMES)
def test_a_measurement_reads_as_pytorchs(spec, times) -> None:
    ours, real = measured(benchmark, times, **spec), measured(REAL, times, **spec)
    assert text(ours) == text(real)
    for name in ("title", "as_row_name", "significant_figures", "has_warnings"):
        assert getattr(ours, name) == getattr(real, name), name
    for name in ("median", "mean", "iqr"):
        assert getattr(ours, name) == pytest.approx(getattr(real, name)), name
    assert ours.task_spec.summarize() == real.task_spec.summarize()
    assert ours.num_threads == spec.get("num_threads", 1)
    assert not hasattr(ours, "nothing_such")


def results(library):
    found = []
    for threads in (1, 2):
        for name, base in (("1x1", 1e-6), ("10x10", 2e-5), ("long one", 3e-3)):
            for column, factor in (("mul/sum", 1.0), ("bmm", 2.123), ("odd", 0.99)):
                if (threads, name, column) == (2, "1x1", "odd"):
                    continue
                times = [base * factor * k for k in (1, 1.02, 1.05)]
                spec = {"sub_label": name, "description": column}
                found.append(measured(library, times, num_threads=threads, **spec))
    for env in ("now", "before"):
        times = [1e-3 * (1 + 0.3 * i) for i in range(4)]
        spec = {"sub_label": "s", "description": "d", "env": env}
        found.append(measured(library, times, "two", **spec))
    found.append(measured(library, [1e-4] * 3, "three", description="d"))
    return found


def styles():
    yield lambda table: None
    yield lambda table: table.trim_significant_figures()
    yield lambda table: table.colorize()
    yield lambda table: table.colorize(rowwise=True)
    yield lambda table: table.highlight_warnings()
    yield lambda table: (table.trim_significant_figures(), table.highlight_warnings())


@pytest.mark.parametrize("style", list(styles()))
def test_tables_read_as_pytorchs(style, capsys) -> None:
    ours, real = benchmark.Compare(results(benchmark)), REAL.Compare(results(REAL))
    style(ours)
    style(real)
    assert str(ours) == str(real)
    ours.print()
    assert capsys.readouterr().out == str(real) + "\n"
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        ours.extend_results([1])


def test_units_and_figures() -> None:
    for t in (2e-12, 3e-9, 1e-6, 4.4e-5, 1e-3, 0.5, 1.0, 2000.0):
        assert benchmark.select_unit(t) == REAL.select_unit(t)
    for unit in ("ns", "us", "ms", "s"):
        assert benchmark.unit_to_english(unit) == REAL.unit_to_english(unit)
    for x in (3.14159, 1234.5, 0.00123, -17.0):
        for n in (1, 2, 4):
            assert benchmark.trim_sigfig(x, n) == pytest.approx(REAL.trim_sigfig(x, n))
    assert benchmark.ordered_unique([3, 1, 3, 2, 1]) == [3, 1, 2]


def test_timers_time() -> None:
    seen: list[int] = []
    timer = benchmark.Timer(
        "seen.append(taeda.get_num_threads())",
        "import taeda",
        globals={"seen": seen},
        num_threads=2,
        label="l",
    )
    once = timer.timeit(200)
    assert len(seen) == 202 and set(seen) == {2}
    assert len(once.raw_times) == 1 and once.number_per_run == 200
    blocks: list[tuple[int, float]] = []
    found = timer.blocked_autorange(lambda *b: blocks.append(b), min_run_time=0.02)
    assert [t for _, t in blocks] == found.raw_times
    assert sum(found.raw_times) >= 0.02 and found.label == "l"
    adapted = timer.adaptive_autorange(threshold=10.0, min_run_time=1e-4)
    assert len(adapted.raw_times) > 3
    slow = benchmark.Timer("time.sleep(0.02)", "import time")
    found = slow.adaptive_autorange(threshold=0.0, max_run_time=0.05)
    assert 2 <= len(found.raw_times) <= 4 and found.median >= 0.02
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        timer.repeat()
    with pytest.raises(ValueError, match="Invalid language"):
        benchmark.Timer(language="fortran")
    with pytest.raises(ValueError, match="globals"):
        benchmark.Timer(language="c++", globals={"x": 1})


def test_statements_in_cpp(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TAEDA_EXTENSIONS_DIR", str(tmp_path))
    timer = benchmark.Timer("total += i * i", "volatile long total = 0, i = 3;",
                            language="c++")  # fmt: skip
    few, many = timer.timeit(1000).raw_times[0], timer.timeit(1000000).raw_times[0]
    assert 20 < many / few


def test_fuzzed_tensors() -> None:
    def made(seed):
        return benchmark.Fuzzer(
            [
                benchmark.FuzzedParameter("n", 4, 64, "loguniform"),
                [benchmark.FuzzedParameter("k", 1, 5, "uniform", strict=True)],
                benchmark.FuzzedParameter(
                    "m", distribution={1: 0.5, benchmark.ParameterAlias("n"): 0.5}
                ),
            ],
            [
                benchmark.FuzzedTensor("x", ("n", "k"), probability_contiguous=0),
                benchmark.FuzzedTensor(
                    "y", ("m", "k"), ("k", 2), max_elements=100, dtype=taeda.int64
                ),
            ],
            constraints=[lambda n, k, m: n % 2 == 0],
            seed=seed,
        )

    fuzzer = made(7)
    samples = list(fuzzer.take(30))
    for tensors, properties, params in samples:
        n, k, m = params["n"], params["k"], params["m"]
        assert n % 2 == 0 and 4 <= n <= 64 and 1 <= k <= 5 and m in (1, n)
        x, y = tensors["x"], tensors["y"]
        assert x.shape == (n, k) and y.shape == (m, k) and m * k <= 100
        assert properties["x"]["order"] == [1, 0]
        assert properties["y"]["steps"] == (k, 2)
        assert y.dtype is taeda.int64 and y.min() >= 1
    assert {p["m"] == 1 for _, _, p in samples} == {True, False}
    assert 0 < fuzzer.rejection_rate < 1
    again = list(made(7).take(30))
    assert all(taeda.equal(a[0]["x"], b[0]["x"])
               for a, b in zip(samples, again, strict=True))  # fmt: skip
    with pytest.raises(AssertionError, match="normalized"):
        benchmark.FuzzedParameter("a", distribution={1: 0.5})
    with pytest.raises(ValueError, match="Duplicate"):
        benchmark.Fuzzer([benchmark.FuzzedParameter("x", 1, 2, "uniform")],
                         [benchmark.FuzzedTensor("x", (1,))])  # fmt: skip


def test_function_counts_are_pytorchs() -> None:
    data = [(30, "a.c:f [lib]"), (20, "b.c:g"), (-5, "x" * 90), (7, "a.c:h [lib]")]

    def made(library):
        items = tuple(library.FunctionCount(*d) for d in data)
        return library.FunctionCounts(items, inclusive=False, _linewidth=60)

    ours, real = made(benchmark), made(REAL)
    for change in (
        lambda c: c,
        lambda c: c + c,
        lambda c: c - c.filter(lambda f: f.startswith("a")),
        lambda c: c * 2.5,
        lambda c: c.transform(lambda f: f[:2]),
        lambda c: c[1:],
    ):
        a, b = change(ours), change(real)
        assert list(map(tuple, a)) == list(map(tuple, b))
        assert a.sum() == b.sum()
    assert text(ours) == text(real)
    assert text(ours * 1) == text(real * 1) or len(data[2][1]) > 40


def test_instructions_are_counted() -> None:
    assert shutil.which("valgrind"), "the system packages of tools/dev setup"
    timer = benchmark.Timer("y = sorted(x)", "x = [3, 1] * k", globals={"k": 50})
    found = timer.collect_callgrind(number=20)
    assert re.search(r"Instructions: +\d+ +\d+\n +Baseline: +\d+", repr(found))
    own, whole = found.stats(), found.stats(inclusive=True)
    assert own.sum() == found.counts() > found.baseline_exclusive_stats.sum() > 0
    sort = max(c for c, f in whole if "list_sort" in f or "listsort" in f.lower())
    assert 0.3 * found.counts() < sort <= max(c for c, _ in whole)
    double = timer.collect_callgrind(number=40, collect_baseline=False)
    assert 1.8 < double.counts() / found.counts() < 2.2
    assert len(double.baseline_exclusive_stats) == 0
    assert found.delta(found).sum() == 0
    standard = found.as_standardized()
    assert standard.counts() == found.counts()
    assert not any("[" in f for _, f in standard.stats())
    warned = "Without debug symbols" in repr(found)
    assert warned is not found.built_with_debug_symbols
    with pytest.raises(ValueError, match="Unsupported type"):
        benchmark.Timer("x", globals={"x": object()}).collect_callgrind(number=1)


def test_debug_symbols_are_looked_for(tmp_path) -> None:
    source = tmp_path / "a.c"
    source.write_text("int f(void) { return 1; }")
    callgrind = importlib.import_module("taeda.utils.benchmark.utils.callgrind")
    for flag, expected in (("-g", True), ("-g0", False)):
        library = tmp_path / f"lib{flag}.so"
        command = ["cc", flag, "-shared", "-fPIC", "-o", str(library), str(source)]
        subprocess.run(command, check=True)
        assert callgrind._has_debug_symbols(library) is expected
    assert callgrind._has_debug_symbols(source) is False


def test_without_valgrind_the_error_says_so(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(OSError, match="needs the program valgrind"):
        benchmark.Timer("1").collect_callgrind()
