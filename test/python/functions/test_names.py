"""Names that third-party libraries import exist, and say what is missing."""

from __future__ import annotations

import importlib

import pytest
import taeda

MODULES = """
__config__ _dynamo _dynamo.config _dynamo.eval_frame func futures fx hub mps mtia
multiprocessing nn.parallel.distributed onnx profiler utils._foreach_utils xpu _utils
""".split()


@pytest.mark.parametrize("name", MODULES)
def test_importable(name) -> None:
    module = importlib.import_module(f"taeda.{name}")
    for public in getattr(module, "__all__", ()):
        assert getattr(module, public) is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda: taeda.autograd.profiler_legacy.profile(),
        lambda: taeda.utils.mobile_optimizer.optimize_for_mobile(None),
    ],
)
def test_says_what_is_missing(call) -> None:
    with pytest.raises(NotImplementedError, match="is not implemented"):
        call()


def test_types_of_cuda_tensors_are_those_of_a_build_without_cuda() -> None:
    with pytest.raises(TypeError, match="FloatTensor not available"):
        taeda.cuda.FloatTensor(2)
    assert not isinstance(taeda.ones(2), taeda.cuda.FloatTensor)


def _fail(index: int) -> None:
    if index == 1:
        raise ValueError("on purpose")


def test_processes_report_their_failure() -> None:
    mp = taeda.multiprocessing
    with pytest.raises(mp.ProcessRaisedException, match="on purpose") as caught:
        mp.start_processes(_fail, nprocs=2, start_method="fork")
    assert caught.value.error_index == 1


def test_hub_reads_a_folder(tmp_path, monkeypatch) -> None:
    (tmp_path / "hubconf.py").write_text("def model(n):\n    'Doc.'\n    return n\n")
    load = taeda.hub.load
    assert load(str(tmp_path), "model", 3, source="local") == 3
    assert taeda.hub.list(str(tmp_path), source="local") == ["model"]
    taeda.save({"a": taeda.ones(2)}, tmp_path / "w.pt")
    state = taeda.hub.load_state_dict_from_url(
        (tmp_path / "w.pt").as_uri(), model_dir=str(tmp_path / "models")
    )
    assert state["a"].tolist() == [1, 1]


def test_futures() -> None:
    first, second = taeda.futures.Future(), taeda.futures.Future()
    both = taeda.futures.collect_all([first, second])
    later = first.then(lambda f: f.value() + 1)
    first.set_result(1)
    assert not both.done()
    second.set_result(2)
    assert taeda.futures.wait_all([first, second, later]) == [1, 2, 2]


def test_checks() -> None:
    with pytest.raises(IndexError, match="too far"):
        taeda._check_index(False, lambda: "too far")
    taeda._check(True)
    assert taeda.sym_max(1, 2.0) == 2.0 and taeda.sym_int(2.9) == 2


@pytest.mark.parametrize("n", [1, 4, 7])
def test_order_of_frequencies(n) -> None:
    import torch

    for name in ("fftfreq", "rfftfreq"):
        got, want = (getattr(t.fft, name)(n, d=0.5) for t in (taeda, torch))
        assert got.tolist() == want.tolist()
    for name in ("fftshift", "ifftshift"):
        got, want = (getattr(t.fft, name)(t.arange(n)) for t in (taeda, torch))
        assert got.tolist() == want.tolist()


def test_low_rank_decompositions() -> None:
    import torch

    results = []
    for library in (taeda, torch):
        library.manual_seed(0)
        a = library.randn(8, 3) @ library.randn(3, 6)
        parts = [*library.svd_lowrank(a, 3), *library.pca_lowrank(a.mT, 2)]
        results.append([part.abs() for part in parts])
    for got, want in zip(*results, strict=True):
        taeda.testing.assert_close(
            got, taeda.from_numpy(want.numpy()), atol=1e-4, rtol=0
        )


@pytest.mark.parametrize("shape, wrap", [((3, 5), 0), ((7, 3), 1), ((3, 3, 3), 0)])
def test_fill_diagonal(shape, wrap) -> None:
    import torch

    got, want = (
        t.zeros(shape).fill_diagonal_(2.0, wrap=bool(wrap)) for t in (taeda, torch)
    )
    assert got.tolist() == want.tolist()


def test_a_parameter_in_place_of_a_property_without_value() -> None:
    class Curved(taeda.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.k = taeda.nn.Parameter(taeda.ones(1))

    class Named(Curved):
        @property
        def k(self):
            return self.c

    assert dict(Named().named_parameters())["k"].item() == 1


def test_storage_of_a_file(tmp_path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(8)))
    private = taeda.UntypedStorage.from_file(str(path), False, 4)
    assert private.tolist() == [0, 1, 2, 3]
    shared = taeda.UntypedStorage.from_file(str(path), shared=True, nbytes=8)
    shared[0] = 9
    private[1] = 7
    assert list(path.read_bytes()) == [9, 1, 2, 3, 4, 5, 6, 7]
    with pytest.raises(RuntimeError, match="smaller than the required mapping size"):
        taeda.UntypedStorage.from_file(str(path), False, 9)


def test_groups_of_products_and_scans() -> None:
    from taeda._higher_order_ops.associative_scan import associative_scan

    a, b = taeda.randn(5, 4), taeda.randn(2, 4, 3)
    ends = taeda.tensor([2, 5], dtype=taeda.int32)
    got = taeda.nn.functional.grouped_mm(a, b, offs=ends)
    assert taeda.equal(got, taeda.cat([a[:2] @ b[0], a[2:] @ b[1]]))
    x = taeda.arange(1.0, 5.0)
    assert associative_scan(taeda.add, x, 0).tolist() == [1, 3, 6, 10]
    assert associative_scan(taeda.mul, x, 0, reverse=True).tolist() == [24, 24, 12, 4]


def test_every_listed_name_is_there() -> None:
    assert [name for name in dir(taeda) if not hasattr(taeda, name)] == []


def test_new_of_an_empty_size_has_no_dims():
    x = taeda.ones(3)
    assert x.new(taeda.Size([])).shape == ()
    assert x.new(taeda.Size([2, 0])).shape == (2, 0)
    assert x.new().shape == (0,)
