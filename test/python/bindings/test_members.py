"""Members of tensors and storages that take more than one kind of argument."""

from __future__ import annotations

import mmap

import numpy as np
import pytest
import taeda
import torch

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz"])
def test_floats_of_8_bits_from_lists(name):
    # Was a crash: no function converts many of these at a time.
    made = taeda.tensor([[1, 2.5], [-3.0, 0.1]], dtype=getattr(taeda, name))
    wanted = torch.tensor([[1, 2.5], [-3.0, 0.1]], dtype=getattr(torch, name))
    assert made.float().tolist() == wanted.float().tolist()


def test_an_array_on_the_right_of_equals():
    x, array = taeda.tensor([1, 2]), np.array([1, 3])
    assert (x == array).tolist() == [True, False]
    assert (array == x).tolist() == [True, False]
    leaf = taeda.tensor([1.0, 2.0], requires_grad=True)
    assert (leaf == array).tolist() == [True, False]
    with pytest.raises(RuntimeError, match="size of tensor a"):
        x == np.array([1, 2, 3])  # noqa: B015
    assert (x == "text") is False


def test_no_elements_have_no_address():
    x = taeda.ones(3)
    assert x.data_ptr() != 0
    assert x[0:0].data_ptr() == 0
    assert not taeda.tensor([]).is_set_to(taeda.tensor([]))
    assert x.is_set_to(x.view(3))


def test_parts_of_complex_tensors_are_set_to_numbers():
    x = taeda.tensor([1 + 2j, 3 + 4j])
    x.real = 5
    x.imag = -0.5
    assert x.tolist() == [5 - 0.5j, 5 - 0.5j]
    x.imag = taeda.tensor([1.0, 2.0])
    assert x.tolist() == [5 + 1j, 5 + 2j]


GEOMETRIES = {
    "row_major": lambda t: t.empty(2, 3, 4, 5),
    "channels_last": lambda t: t.empty(2, 3, 4, 5).to(memory_format=t.channels_last),
    "one_channel": lambda t: t.empty(2, 1, 4, 5),
    "transposed": lambda t: t.empty(2, 3, 4).transpose(1, 2),
    "expanded": lambda t: t.empty(2, 3).expand(4, 2, 3),
    "expanded_ones": lambda t: t.empty(1, 2, 1, 3).expand(4, 2, 5, 3),
    "moved_one": lambda t: t.empty(1, 2, 1, 3).transpose(1, 2),
    "empty": lambda t: t.empty(0, 2),
    "scalar": lambda t: t.empty(()),
}
CHECKS = {
    "none": lambda t: False,
    "any": lambda t: True,
    "formats": lambda t: [t.contiguous_format, t.channels_last],
    "number": lambda t: 3,
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_dim_order(geometry, check):
    found = []
    for t in (torch, taeda):
        tensor, wanted = GEOMETRIES[geometry](t), CHECKS[check](t)
        if tensor.dim() != 4 and check == "formats":
            wanted = [t.contiguous_format]
        try:
            found.append(tensor.dim_order(ambiguity_check=wanted))
        except (RuntimeError, TypeError) as error:
            found.append(type(error))
    assert found[0] == found[1]


def test_new_and_type():
    x = taeda.ones(2, dtype=taeda.int32)
    assert x.new(size=(2, 3)).shape == (2, 3)
    assert x.new(size=(2, 3)).dtype == taeda.int32
    assert x.new(data=[1, 2]).tolist() == [1, 2]
    assert x.new(other=x).data_ptr() == x.data_ptr()
    sparse = taeda.sparse_coo_tensor([[1]], [2.0], (3,))
    assert sparse.new().shape == (0,) and sparse.new(2, 3).is_sparse
    same = sparse.new(sparse._indices(), sparse._values(), sparse.size())
    assert same.to_dense().tolist() == [0, 2, 0] and same.dtype == sparse.dtype
    assert x.type(taeda.Tensor).dtype == taeda.get_default_dtype()


@pytest.mark.parametrize("stream", [0, 1, "a", 1.5])
def test_the_cpu_has_no_streams(stream):
    kind = AssertionError if isinstance(stream, int) else TypeError
    with pytest.raises(kind, match="stream"):
        taeda.ones(2).__dlpack__(stream=stream)
    assert taeda.ones(2).__dlpack__(stream=None) is not None


def test_typed_storages_read_buffers_and_files(tmp_path):
    data = np.arange(4, dtype="float64")
    data.tofile(tmp_path / "numbers")
    made = taeda.DoubleStorage.from_buffer(data.tobytes(), "native")
    assert made.dtype == taeda.float64
    assert made.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert taeda.FloatStorage(np.int16(3)).size() == 3
    mapped = taeda.DoubleStorage.from_file(str(tmp_path / "numbers"), True, 4)
    mapped[1] = 7.0
    assert np.fromfile(tmp_path / "numbers").tolist() == [0.0, 7.0, 2.0, 3.0]


def test_typed_storages_keep_their_dtype():
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        taeda.ones(2).set_(taeda.ones(2).double().storage())
    shared = taeda.ones(2).set_(taeda.zeros(3).storage())
    assert shared.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(NotImplementedError, match="meta"):
        taeda.ones(2, device="meta").storage()[0]


def test_maps_that_are_shared_write_to_the_file(tmp_path):
    # Was a crash: the map was one for reading.
    path = str(tmp_path / "saved.pt")
    taeda.save({"x": taeda.ones(4)}, path)
    with taeda.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        taeda.load(path, mmap=True)["x"][1] = 5.0
    assert taeda.load(path, mmap=True)["x"].tolist() == [1.0, 5.0, 1.0, 1.0]
    taeda.load(path, mmap=True)["x"][1] = 6.0
    assert taeda.load(path, mmap=True)["x"].tolist() == [1.0, 5.0, 1.0, 1.0]


def test_gradients_by_an_iterator():
    layer = taeda.nn.Linear(2, 1)
    found = taeda.autograd.grad(layer(taeda.ones(1, 2)).sum(), layer.parameters())
    assert [g.shape for g in found] == [(1, 2), (1,)]
    with pytest.raises(RuntimeError, match="cannot be empty"):
        taeda.autograd.grad(layer(taeda.ones(1, 2)).sum(), iter(()))


def test_warn_only_is_kept_while_nothing_is_asked():
    try:
        taeda.use_deterministic_algorithms(False, warn_only=True)
        assert taeda.is_deterministic_algorithms_warn_only_enabled()
    finally:
        taeda.use_deterministic_algorithms(False)
    assert not taeda.is_deterministic_algorithms_warn_only_enabled()


def test_arrays_are_shared_on_a_device_that_is_named():
    array = np.ones(2)
    shared = taeda.asarray(array, copy=False, device="cpu")
    shared[0] = 4.0
    assert array.tolist() == [4.0, 1.0]
    with pytest.raises(ValueError, match="can't alias"):
        taeda.asarray(array, copy=False, dtype=taeda.float32, device="cpu")


def test_take_along_dim_takes_int64_alone():
    x, places = taeda.zeros(2, 3), taeda.zeros(2, 3, dtype=taeda.int32)
    with pytest.raises(RuntimeError, match="should be Long but got Int"):
        taeda.take_along_dim(x, places, 0)
    assert taeda.take_along_dim(x, places.long(), 0).shape == (2, 3)
