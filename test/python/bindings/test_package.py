"""The package around the natives: import, overrides, settings, testing, as_torch."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import taeda


def run(code: str, *arguments: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def test_import_loads_only_the_standard_library():
    loaded = run(
        """
        import sys
        before = set(sys.modules)
        import taeda
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(sorted(new - set(sys.stdlib_module_names)))
        """
    )
    assert loaded == "['taeda']"


def test_what_is_seldom_used_is_bound_when_it_is_missed():
    bound = run(
        """
        import sys, taeda
        names = "_run_backward _map_file _dnn_enabled _return_type".split()
        parts = "_boxed _cuda _dlpack _profiler _shapes".split()
        print([name for name in parts if "taeda." + name in sys.modules])
        print([name for name in names if name in vars(taeda._C)])
        print(hasattr(taeda._C, "no_such_name"))
        print([name for name in names if name not in vars(taeda._C)])
        print(taeda.is_anomaly_enabled(), taeda.is_warn_always_enabled())
        print(taeda._C._op_call is taeda._boxed._op_call)
        """
    )
    assert bound.split("\n") == ["[]", "[]", "False", "[]", "False False", "True"]


def test_import_stays_small():
    loaded = run(
        """
        import sys
        before = set(sys.modules)
        import taeda
        heavy = {"typing", "dataclasses", "inspect", "enum", "re", "logging", "pathlib"}
        print(sorted(heavy & (set(sys.modules) - before)))
        """
    )
    assert loaded == "[]"


def test_as_torch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "import torch.overrides as o\n"
        "x = torch.zeros(2, dtype=torch.float64)\n"
        "print(x, x.shape, torch.__name__, o is torch.overrides)\n"
        "version = torch.__version__\n"
        "print(version, version >= (2, 9), torch.jit.is_scripting())\n"
    )
    shown = run(
        "import sys; from taeda.as_torch import main; main(sys.argv[1:])", str(program)
    )
    expected = (
        "tensor([0., 0.], dtype=torch.float64) torch.Size([2]) torch True\n"
        "2.10.0 True False"
    )
    assert shown == expected


def test_as_torch_has_the_metadata_of_its_release(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from importlib import metadata\n"
        "import torch\n"
        "found = metadata.distribution('torch')\n"
        "print(found.version == str(torch.__version__), found.name, found.files)\n"
        "print(metadata.version('numpy') == __import__('numpy').__version__)\n"
    )
    shown = run(
        "import sys; from taeda.as_torch import main; main(sys.argv[1:])", str(program)
    )
    assert shown == "True torch None\nTrue"


CHILDREN = """
import os, subprocess, sys
import torch
from torch.utils.data import DataLoader, TensorDataset

def told(index, value):
    print(index, torch.__name__, value.tolist(), flush=True)

ASKED = (
    "from importlib import metadata, util\\n"
    "print(metadata.version('torch'), util.find_spec('torch') is not None)\\n"
    "import functorch, torch.nn\\n"
    "print(torch.__name__, torch.__version__, callable(functorch.vmap))"
)
if __name__ == "__main__":
    torch.multiprocessing.spawn(told, (torch.ones(2),), nprocs=1)
    subprocess.run([sys.executable, "-c", ASKED], check=True)
    data = TensorDataset(torch.arange(4.0))
    for kind in ("spawn", "forkserver"):
        loader = DataLoader(data, 2, num_workers=1, multiprocessing_context=kind)
        print([batch.tolist() for batch, in loader], flush=True)
    before = os.environ["PYTHONPATH"]
    from taeda import as_torch
    as_torch.install()
    print(os.environ["PYTHONPATH"] == before)
    as_torch.uninstall()
    print("_children" in os.environ["PYTHONPATH"], "_children" in str(sys.path))
"""


def test_as_torch_in_programs_that_a_program_starts(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(CHILDREN)
    shown = run(
        "import sys; from taeda.as_torch import main; main(sys.argv[1:])", str(program)
    )
    batches = "[[0.0, 1.0], [2.0, 3.0]]"
    assert shown.splitlines() == [
        "0 torch [1.0, 1.0]",
        "2.10.0 True",
        "torch 2.10.0 True",
        *(batches, batches, "True", "False False"),
    ]


def test_as_torch_refuses_beside_real_torch(torch):
    from taeda import as_torch

    with pytest.raises(RuntimeError, match="already loaded"):
        as_torch.install()


# Overrides --------------------------------------------------------------------


class Logged(taeda.Tensor):
    seen: list[str] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def test_subclass_sees_calls_and_is_kept():
    x = taeda.tensor([1.0, 2.0]).as_subclass(Logged)
    Logged.seen.clear()
    results = [taeda.add(x, 1), x + x, taeda.zeros(2) + x, x[0:1], x.exp(), -x]
    assert all(type(r) is Logged for r in results)
    assert Logged.seen == ["add", "add", "add", "__getitem__", "exp", "neg"]
    assert type(x.shape) is taeda.Size


def test_foreign_type_takes_over():
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args), sorted(kwargs or {})

    assert taeda.add(taeda.zeros(1), Foreign(), alpha=2) == ("add", 2, ["alpha"])
    assert taeda.zeros(1) * Foreign() == ("mul", 2, [])


class Named:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sum", lambda x, o: x.sum(dim=o)),
        ("sum", lambda x, o: x.sum([0, o])),
        ("gelu", lambda x, o: taeda.nn.functional.gelu(x, approximate=o)),
        ("cat", lambda x, o: taeda.cat([x, x], o)),
        ("zeros", lambda x, o: taeda.zeros(2, o)),
        ("full", lambda x, o: taeda.full((2, o), 1.0)),
        ("arange", lambda x, o: taeda.arange(o)),
        ("view", lambda x, o: x.view(o, 2)),
        ("reshape", lambda x, o: x.reshape((2, o))),
        ("to", lambda x, o: x.to(o)),
        ("to", lambda x, o: x.to(dtype=o)),
        ("size", lambda x, o: x.size(o)),
        ("tensor", lambda x, o: taeda.tensor(1, dtype=o)),
        ("einsum", lambda x, o: taeda.einsum(o, o)),
        ("__getitem__", lambda x, o: x[o]),
        ("__getitem__", lambda x, o: x[0, o]),
    ],
)
def test_what_takes_calls_over_may_stand_for_any_argument(name, call):
    assert call(taeda.ones(2, 2), Named()) == name


def test_places_that_take_calls_over_are_written():
    class Place:
        calls = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls.append((func.__name__, len(args)))

    x = taeda.ones(2, 2)
    x[Place()] = 1
    x[0, Place()] = 2.0
    assert Place.calls == [("__setitem__", 3)] * 2 and x.equal(taeda.ones(2, 2))


def test_not_implemented_everywhere_is_an_error():
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="no implementation found for 'taeda"):
        taeda.exp(Foreign())


def test_modes_nest_and_see_factories():
    seen = []

    class Mode(taeda.overrides.TorchFunctionMode):
        def __init__(self, tag):
            self.tag = tag

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.tag, func.__name__))
            return func(*args, **(kwargs or {}))

    with Mode("outer"), Mode("inner"):
        taeda.zeros(1)
        taeda.tensor(1)
        with taeda.overrides.DisableTorchFunction():
            taeda.zeros(1)
    assert seen == [
        ("inner", "zeros"),
        ("outer", "zeros"),
        ("inner", "tensor"),
        ("outer", "tensor"),
    ]


def test_parameter_overrides_nothing():
    assert not taeda.overrides.has_torch_function_unary(
        taeda.nn.Parameter(taeda.zeros(1))
    )


# Settings ---------------------------------------------------------------------


def test_default_dtype():
    try:
        taeda.set_default_dtype(taeda.float64)
        assert taeda.tensor(1.5).dtype is taeda.float64
        assert taeda.zeros(1).dtype is taeda.float64
    finally:
        taeda.set_default_dtype(taeda.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        taeda.set_default_dtype(taeda.int32)


def test_default_device_and_its_scope():
    with taeda.device("meta"):
        assert taeda.zeros(1).is_meta
    assert taeda.zeros(1).is_cpu
    try:
        taeda.set_default_device("meta")
        assert taeda.zeros(1).is_meta
        assert taeda.zeros(1, device="cpu").is_cpu
    finally:
        taeda.set_default_device(None)


def test_generator_state():
    g = taeda.Generator()
    assert g.manual_seed(7) is g
    assert g.initial_seed() == 7
    state = g.get_state()
    assert state.dtype is taeda.uint8 and state.numel() == 5056
    assert g.clone_state().get_state().tolist() == state.tolist()
    with pytest.raises(TypeError):
        g.set_state(taeda.zeros(3))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_finfo(torch, name):
    ours = taeda.finfo(getattr(taeda, name))
    theirs = torch.finfo(getattr(torch, name))
    for field in "bits eps max min tiny smallest_normal resolution dtype".split():
        assert getattr(ours, field) == getattr(theirs, field), field
    assert repr(ours) == repr(theirs)


def test_cuda_answers_truthfully():
    assert taeda.cuda.is_available() is False
    assert taeda.cuda.device_count() == 0
    with pytest.raises((RuntimeError, AssertionError, NotImplementedError)):
        taeda.zeros(1, device="cuda")


def test_disabled_amp_passes_through():
    with taeda.autocast("cpu", enabled=False):
        assert (taeda.ones(1) * 2).item() == 2.0
    scaler = taeda.amp.GradScaler("cpu", enabled=False)
    x = taeda.ones(1)
    assert scaler.scale(x) is x


# taeda.testing ----------------------------------------------------------------

PAIRS = [
    "m.ones(3), m.tensor([1.0, 2.0, 1.0])",
    "m.ones(2, 2), m.tensor([[1.0, 1.5], [1.0, 3.0]])",
    "m.tensor([1, 2]), m.tensor([1, 3])",
    "m.ones(3), m.ones(2)",
    "m.ones(3), m.ones(3, dtype=m.float64)",
    "1.0, 1.5",
    "[m.ones(1)], [m.zeros(1), m.zeros(1)]",
    "m.tensor(1.0), m.tensor(float('nan'))",
]


@pytest.mark.parametrize("pair", PAIRS)
def test_assert_close_messages(torch, pair):
    def message(module) -> str:
        with pytest.raises(AssertionError) as caught:
            module.testing.assert_close(*eval(pair, {"m": module}))
        return str(caught.value)

    assert message(taeda).replace("taeda.", "torch.") == message(torch)


def test_assert_close_accepts():
    close = taeda.testing.assert_close
    close(taeda.ones(2), taeda.ones(2) + 1e-7)
    close({"a": [taeda.ones(1), 2]}, {"a": [taeda.ones(1), 2]})
    nan = taeda.tensor([float("nan")])
    close(nan, nan, equal_nan=True)
    with pytest.raises(AssertionError):
        close(nan, nan)
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol'"):
        close(nan, nan, rtol=0.1)


# Every operator the records bind has a docstring whose first line is a signature.
def test_docstrings():
    natives = vars(taeda._C._VariableFunctions)
    functions = {n: f for n, f in natives.items() if not n.startswith("_")}
    assert len(functions) > 100
    for name, function in functions.items():
        first = (function.__doc__ or "").partition("\n")[0]
        assert first.startswith(f"{name}(") and "->" in first, name


@pytest.mark.parametrize(
    ("low", "high"),
    [("2.9.1", "2.10"), ("2.0rc1", "2.0"), ("2.0.dev1", "2.0a1"), ("1.13", (2, 0))],
)
def test_versions_compare_as_versions(low, high):
    from taeda.torch_version import TorchVersion

    version = TorchVersion(low)
    assert version < high and version <= high and version != high
    assert not version > high and not version >= high
    assert TorchVersion("2.1.0+cpu") == "2.1"


def test_distributed_says_what_is_there():
    from taeda import distributed

    assert distributed.is_available() and not distributed.is_initialized()
    # MPICH is a development dependency; there is no GPU for NCCL.
    assert distributed.is_mpi_available() and not distributed.is_nccl_available()


def test_meshgrid_asks_for_its_indexing():
    with pytest.warns(UserWarning, match="indexing"):
        taeda.meshgrid(taeda.arange(2), taeda.arange(3))


def test_cuda_tensors_are_refused_as_in_a_build_without_cuda():
    assert taeda.device("cuda:1").index == 1
    for make in (lambda: taeda.zeros(2, device="cuda"), lambda: taeda.zeros(2).cuda()):
        with pytest.raises(AssertionError, match="not compiled with CUDA enabled"):
            make()


def test_a_device_decorates_functions():
    made = run(
        """
        import taeda
        @taeda.device("meta")
        def make(n):
            return taeda.ones(n)
        print(make(2).device, make.__name__, taeda.ones(2).device)
        """
    )
    assert made == "meta make cpu"
