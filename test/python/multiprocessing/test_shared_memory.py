"""Storages in shared memory and over files; compared with PyTorch where it says."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
import taeda
import torch

LIBRARIES = pytest.mark.parametrize("L", [taeda, torch], ids=["taeda", "torch"])


@LIBRARIES
def test_share_memory(L):
    tensor = L.arange(5.0)
    view = tensor[1:3]
    assert not tensor.is_shared()
    assert tensor.share_memory_() is tensor
    address = tensor.data_ptr()
    assert tensor.is_shared() and view.is_shared()
    assert tensor.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    view.fill_(9)
    assert tensor.tolist() == [0.0, 9.0, 9.0, 3.0, 4.0]
    assert tensor.share_memory_().data_ptr() == address
    assert not tensor.clone().is_shared()
    assert tensor.untyped_storage().filename is None
    assert L.empty(0).share_memory_().is_shared()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        L.empty(2, device="meta").share_memory_()
    assert not L.empty(2, device="meta").is_shared()


def test_shared_memory_is_not_resized():
    with pytest.raises(RuntimeError, match="not resizable"):
        taeda.ones(2).share_memory_().resize_(100)


def test_gradients_with_shared_leaves():
    weight = taeda.ones(3, requires_grad=True).share_memory_()
    (weight * taeda.arange(3.0)).sum().backward()
    assert weight.grad.tolist() == [0.0, 1.0, 2.0]


@LIBRARIES
def test_from_file(L, tmp_path):
    path = os.fspath(tmp_path / "numbers")
    values = np.arange(16, dtype=np.float32)
    values.tofile(path)
    private = L.from_file(path, size=16)
    assert private.tolist() == values.tolist() and private.is_shared()
    private.fill_(1)
    assert np.fromfile(path, np.float32).tolist() == values.tolist()
    shared = L.from_file(path, shared=True, size=4, dtype=L.float32)
    shared.fill_(-1)
    assert np.fromfile(path, np.float32)[:5].tolist() == [-1.0] * 4 + [4.0]
    assert shared.untyped_storage().filename == path
    assert private.untyped_storage().filename is None
    assert L.from_file(path, shared=True, size=20).shape == (20,)
    assert os.path.getsize(path) == 80
    assert L.from_file(path, size=2, dtype=L.int64).dtype == L.int64
    assert L.from_file(path, size=1, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="size <80> is smaller than the required"):
        L.from_file(path, size=100)
    with pytest.raises(RuntimeError, match="unable to open file .* in read-only mode"):
        L.from_file(path + "x", size=1)


@LIBRARIES
def test_storage_from_file(L, tmp_path):
    path = os.fspath(tmp_path / "bytes")
    with open(path, "wb") as file:
        file.write(bytes(range(8)))
    storage = L.UntypedStorage.from_file(path, True, 8)
    storage[0] = 42
    assert open(path, "rb").read()[0] == 42
    assert storage.filename == path and storage.is_shared()


@LIBRARIES
def test_conversions(L):
    storage = L.UntypedStorage([1, 2, 255])
    assert list(storage) == [1, 2, 255]
    for name, dtype in {"float": L.float32, "long": L.int64, "char": L.int8}.items():
        typed = getattr(storage, name)()
        assert typed.dtype == dtype
        assert typed.tolist() == L.tensor([1, 2, 255]).to(dtype).tolist()
    typed = L.tensor([1.5, 2.0]).storage()
    assert typed.int().tolist() == [1, 2] and typed.int().dtype == L.int32
    assert typed.complex_float().tolist() == [1.5, 2.0]
    assert storage.to(device="cpu") is storage
    assert not typed.is_shared() and typed.share_memory_().is_shared()
    assert typed._new_shared(3).is_shared() and typed._new_shared(3).size() == 3


@LIBRARIES
def test_from_buffer(L):
    data = np.array([1, 258], ">i4").tobytes()
    storage = L.UntypedStorage.from_buffer(data, "big", dtype=L.int32)
    assert storage.tolist() == list(np.array([1, 258], "<i4").tobytes())
    assert L.UntypedStorage.from_buffer(b"abc", offset=1, dtype=L.uint8)[0] == 98
    storage.byteswap(L.int32)
    assert bytes(storage.tolist()) == data
    with pytest.raises(ValueError, match="multiple of element size"):
        L.UntypedStorage.from_buffer(b"abc", "big", dtype=L.int32)
    with pytest.raises(ValueError, match="has only 3 elements"):
        L.UntypedStorage.from_buffer(b"abc", count=9, dtype=L.uint8)


def test_descriptors_and_mappings_go_with_their_storage():
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = count()
    kept = [taeda.ones(10).share_memory_() for _ in range(20)]
    assert count() == before + 20
    del kept
    assert count() == before


def test_threads_share_and_drop():
    def work() -> None:
        for _ in range(200):
            tensor = taeda.ones(64).share_memory_()
            storage = tensor.untyped_storage()
            fd = os.dup(taeda._C._shared_memory_of(storage)[1])
            if taeda._C._open_shared_descriptor(fd, 256) is not storage:
                failures.append(1)

    failures: list = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
