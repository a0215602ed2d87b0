"""Memory shared with NumPy, DLPack, buffers and storages."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import taeda

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_both_ways_shares_memory(dtype):
    array = np.arange(6).astype(dtype).reshape(2, 3)
    t = taeda.from_numpy(array)
    assert str(t.dtype) == f"taeda.{dtype}"
    assert t.tolist() == array.tolist()
    back = t.numpy()
    assert back.dtype == array.dtype
    back[0, 0] = 1
    assert t[0, 0].item() == array[0, 0]


def test_numpy_strides():
    array = np.arange(24.0).reshape(4, 6)[::2, 1::2]
    t = taeda.from_numpy(array)
    assert t.stride() == (12, 2)
    assert t.tolist() == array.tolist()
    assert t.T.numpy().tolist() == array.T.tolist()


def test_memory_outlives_the_other_side():
    t = taeda.from_numpy(np.full(1000, 3.0))
    gc.collect()
    assert t.sum().item() == 3000.0
    array = (taeda.zeros(1000) + 2).numpy()
    gc.collect()
    assert array.sum() == 2000.0


def test_from_numpy_errors():
    with pytest.raises(TypeError, match="expected np.ndarray"):
        taeda.from_numpy([1])
    with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.str_"):
        taeda.from_numpy(np.array(["a"]))
    with pytest.raises(ValueError, match="strides in the given|negative"):
        taeda.from_numpy(np.arange(3)[::-1])
    with pytest.raises(ValueError, match="byte order"):
        taeda.from_numpy(np.arange(3).astype(">i8"))


def test_readonly_array_warns_once():
    array = np.arange(3)
    array.flags.writeable = False
    import subprocess
    import sys

    code = (
        "import numpy, taeda, warnings\n"
        "a = numpy.arange(3); a.flags.writeable = False\n"
        "with warnings.catch_warnings(record=True) as w:\n"
        "    warnings.simplefilter('always')\n"
        "    taeda.from_numpy(a); taeda.from_numpy(a)\n"
        "print(len(w))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "1", found.stderr


def test_numpy_of_tensor_with_grad_is_an_error():
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        taeda.zeros(2, requires_grad=True).numpy()
    assert taeda.zeros(2, requires_grad=True).numpy(force=True).tolist() == [0, 0]


def test_array_protocol():
    t = taeda.tensor([1.5, 2.5])
    assert np.asarray(t).tolist() == [1.5, 2.5]
    assert np.asarray(t, dtype=np.float32).dtype == np.float32
    assert (np.ones(2, np.float32) + np.asarray(t)).tolist() == [2.5, 3.5]


def test_tensor_of_arrays_and_numpy_scalars():
    assert taeda.tensor(np.float32(2.5)).item() == 2.5
    assert taeda.tensor(np.arange(3)).dtype == taeda.int64
    assert taeda.tensor([np.arange(2), np.arange(2)]).tolist() == [[0, 1], [0, 1]]
    assert taeda.as_tensor(np.ones(2)).dtype == taeda.float64
    assert (taeda.zeros(2) + np.float32(1)).tolist() == [1.0, 1.0]
    assert taeda.zeros(np.int64(2)).tolist() == [0.0, 0.0]


def test_numbers_become_complex_unrounded():
    inf = float("inf")
    assert taeda.tensor([1.5, -0.25], dtype=taeda.complex64).tolist() == [1.5, -0.25]
    assert taeda.tensor([inf, 2], dtype=taeda.complex128).tolist() == [inf, 2]


def test_as_tensor_takes_dtype_and_device():
    x = taeda.as_tensor([1, 2], dtype=taeda.float64, device="cpu")
    assert x.dtype == taeda.float64 and x.device == taeda.device("cpu")
    assert taeda.as_tensor(x, dtype=taeda.float64) is x
    with pytest.raises(TypeError):
        taeda.as_tensor([1], requires_grad=True)


def test_storage_counts_its_bytes_in_getsizeof():
    import sys

    small, large = taeda.zeros(0), taeda.zeros(1000)
    grown = sys.getsizeof(large.untyped_storage())
    assert grown - sys.getsizeof(small.untyped_storage()) == 4000


def test_tensor_copies_and_as_tensor_shares():
    array = np.zeros(2)
    copied, shared = taeda.tensor(array), taeda.as_tensor(array)
    array[0] = 9
    assert copied[0].item() == 0 and shared[0].item() == 9


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_dlpack_with_numpy(dtype):
    array = np.arange(6).astype(dtype).reshape(2, 3)
    t = taeda.from_dlpack(array)
    assert t.tolist() == array.tolist()
    assert np.from_dlpack(t).tolist() == array.tolist()
    assert t.__dlpack_device__() == (1, 0)


def test_dlpack_capsule_is_used_once():
    capsule = taeda.to_dlpack(taeda.zeros(2))
    assert taeda.from_dlpack(capsule).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="consumed only once"):
        taeda.from_dlpack(capsule)


def test_dlpack_keeps_memory():
    t = taeda.from_dlpack(taeda.zeros(5) + 4)
    gc.collect()
    assert t.tolist() == [4.0] * 5


def test_dlpack_with_torch(torch):
    theirs = torch.arange(4.0)
    ours = taeda.from_dlpack(theirs)
    ours[0] = 7
    assert theirs[0].item() == 7
    assert torch.from_dlpack(ours).tolist() == [7.0, 1.0, 2.0, 3.0]


def test_frombuffer():
    data = bytearray(b"\x01\x00\x02\x00\x03\x00")
    t = taeda.frombuffer(data, dtype=taeda.int16)
    assert t.tolist() == [1, 2, 3]
    data[0] = 5
    assert t[0].item() == 5
    assert taeda.frombuffer(data, dtype=taeda.int16, count=1, offset=2).tolist() == [2]
    for options in ({"offset": 9}, {"count": 9}, {"offset": 1}, {"count": 0}):
        with pytest.raises(ValueError):
            taeda.frombuffer(data, dtype=taeda.int16, **options)


def test_untyped_storage():
    t = taeda.tensor([1, 2], dtype=taeda.uint8)
    s = t.untyped_storage()
    assert s is t.untyped_storage()
    assert (s.nbytes(), len(s), s.tolist(), s[1]) == (2, 2, [1, 2], 2)
    s[0] = 9
    assert t.tolist() == [9, 2]
    assert bytes(memoryview(s)) == b"\x09\x02"
    assert s.clone().tolist() == [9, 2]
    s.resize_(4)
    assert s.nbytes() == 4
    with pytest.raises(IndexError):
        s[4]


def test_set_checks_bounds():
    s = taeda.from_numpy(np.zeros(4, np.float32)).untyped_storage()
    t = taeda.tensor([], dtype=taeda.float32)
    t.set_(s, 1, (3,), (1,))
    assert t.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="out of bounds"):
        t.set_(s, 2, (3,), (1,))
    with pytest.raises(RuntimeError, match="negative"):
        t.set_(s, 0, (2,), (-1,))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_of_numpy_has_its_dtype(dtype):
    number = np.dtype(dtype).type(1)
    for made in (taeda.tensor(number), taeda.tensor([number]), taeda.asarray(number)):
        assert str(made.dtype) == f"taeda.{dtype}"
    assert taeda.tensor([1.5, 1j]).dtype == taeda.complex64


def test_a_list_of_arrays_warns():
    with pytest.warns(UserWarning, match="list of numpy.ndarrays is extremely slow"):
        made = taeda.tensor([np.array([0]), np.array([1])])
    assert made.tolist() == [[0], [1]]


def test_a_sparse_tensor_is_no_array():
    with pytest.raises(TypeError, match="to_dense"):
        taeda.ones(2).to_sparse().numpy(force=True)


class Lender:
    """Nothing but a lender of a tensor's memory."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, *args, **kwargs):
        return self.tensor.__dlpack__(*args, **kwargs)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_dlpack_is_data():
    x = taeda.arange(6.0).view(2, 3)
    for make in (taeda.tensor, taeda.as_tensor, taeda.asarray):
        assert make(Lender(x)).tolist() == x.tolist()
    assert taeda.as_tensor(Lender(x)).data_ptr() == x.data_ptr()
    assert taeda.tensor(Lender(x)).data_ptr() != x.data_ptr()
    assert taeda.tensor(Lender(x), dtype=taeda.int64).dtype is taeda.int64


def test_dlpack_of_sparse_tensors_is_refused():
    with pytest.raises(BufferError, match="sparse_coo"):
        taeda.eye(2).to_sparse().__dlpack__()


def test_memory_that_an_array_sees_stays_where_it_is() -> None:
    x = taeda.ones(4)
    array = x.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(1000)
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(0)
    array[1] = 5
    assert x.tolist() == [1, 5, 1, 1]
    assert x.resize_(2).shape == (2,)
    assert taeda.ones(4).resize_(1000).shape == (1000,)


def test_copy_takes_its_source_by_pytorchs_name() -> None:
    x = taeda.zeros(2)
    assert x.copy_(other=taeda.ones(2)) is x and x.tolist() == [1, 1]
    assert x.copy_(src=taeda.zeros(2)).tolist() == [0, 0]
