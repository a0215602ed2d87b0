"""The same expression evaluated with both libraries, and what counts as equal."""

from __future__ import annotations

import numpy as np
import taeda
import taeda.sparse
import torch

LAYOUTS = ("coo", "repeated", "hybrid", "csr", "csc", "bsr", "bsc")
DTYPES = ("float32", "float64", "bfloat16", "complex64", "int64", "bool")


def _values(library, rng, shape, dtype: str):
    kind = getattr(library, dtype)
    if dtype == "bool":
        return library.ones(shape, dtype=kind)
    numbers = library.tensor(rng.integers(1, 9, shape).tolist())
    if dtype == "complex64":
        return (numbers + 1j * numbers.flip(0)).to(kind) / 4
    return (numbers / 4).to(kind) if kind.is_floating_point else numbers.to(kind)


def sample(library, layout: str, dtype: str):
    """A 4 x 6 tensor (4 x 6 x 2 of "hybrid") with 9 entries or 4 blocks."""
    rng = np.random.default_rng(3)
    if layout in ("coo", "repeated", "hybrid"):
        places = rng.permutation(24)[:9]
        if layout == "repeated":
            places[5:] = places[:4]
        elif layout == "coo":
            places.sort()
        indices = library.tensor([(places // 6).tolist(), (places % 6).tolist()])
        shape = (9, 2) if layout == "hybrid" else (9,)
        values = _values(library, rng, shape, dtype)
        made = library.sparse_coo_tensor(indices, values, (4, 6, *shape[1:]))
        return made.coalesce() if layout == "coo" else made
    dense = library.zeros(4, 6, dtype=getattr(library, dtype))
    dense[0:2, 2:4] = _values(library, rng, (2, 2), dtype)
    dense[2:4, 0:2] = _values(library, rng, (2, 2), dtype)
    dense[3, 5] = _values(library, rng, (1,), dtype)[0]
    if layout in ("csr", "csc"):
        return getattr(dense, f"to_sparse_{layout}")()
    return getattr(dense, f"to_sparse_{layout}")((2, 2))


def names(library, layout: str, dtype: str) -> dict:
    """What expressions may name: x sparse, and strided d, v, w beside it."""
    kind = getattr(library, dtype)
    x = sample(library, layout, dtype)
    grid = library.arange(24).reshape(4, 6) % 5 - 2
    d = grid.to(kind)
    return {
        "torch": library,
        "x": x,
        "d": library.stack([d, d + d], 2) if layout == "hybrid" else d,
        "w": (library.arange(18).reshape(6, 3) % 7 - 3).to(kind),
        "u": (library.arange(12).reshape(3, 4) % 7 - 3).to(kind),
        "v": (library.arange(6) % 4 - 1).to(kind),
        "i": library.tensor([2, 0, 2]),
    }


def numbers(tensor):
    """A strided tensor's elements, in a dtype that NumPy has."""
    t = tensor.detach()
    if str(t.dtype).endswith("bfloat16"):
        t = t.float()
    return t.resolve_conj().numpy()


def parts(tensor) -> dict:
    """By name; places of a coordinate tensor are ordered before they are compared."""
    layout = str(tensor.layout).rpartition(".")[2]
    if layout == "sparse_coo":
        done = tensor.detach().coalesce()
        return {"indices": done.indices(), "values": done.values()}
    major, minor = (
        ("crow", "col")
        if layout in ("sparse_csr", "sparse_bsr")
        else (
            "ccol",
            "row",
        )
    )
    found = [f"{major}_indices", f"{minor}_indices", "values"]
    return {name: getattr(tensor.detach(), name)() for name in found}


def assert_same(ours, theirs, what: str, tolerance: float = 0.0) -> None:
    """Equal types, layouts, dtypes, shapes and elements, parts by parts."""
    if isinstance(theirs, (tuple, list)) and not isinstance(theirs, torch.Size):
        assert len(ours) == len(theirs), what
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b, what, tolerance)
        return
    if not isinstance(theirs, torch.Tensor):
        said = str(ours).replace("taeda.", "torch.")
        assert said == str(theirs), f"{what}: {ours} for {theirs}"
        return
    assert type(ours) is taeda.Tensor, what
    for name in ("layout", "dtype", "shape", "requires_grad"):
        a, b = (str(getattr(t, name)) for t in (ours, theirs))
        assert a.replace("taeda.", "torch.") == b, f"{what}: {name} {a} for {b}"
    if theirs.layout is torch.strided:
        np.testing.assert_allclose(
            numbers(ours), numbers(theirs), tolerance, tolerance, err_msg=what
        )
        return
    own, reference = parts(ours), parts(theirs)
    for name, b in reference.items():
        assert str(own[name].dtype)[6:] == str(b.dtype)[6:], f"{what}: {name}"
        np.testing.assert_allclose(
            numbers(own[name]),
            numbers(b),
            tolerance,
            tolerance,
            err_msg=f"{what} {name}",
        )


def attempt(function):
    """(result, None) or (None, the exception)."""
    try:
        return function(), None
    except Exception as error:  # whatever a library raises is what is compared
        return None, error


def tolerance_of(dtype: str) -> float:
    """Relative and absolute, by dtype."""
    return {"bfloat16": 2e-2, "float32": 2e-6, "complex64": 2e-6}.get(dtype, 1e-13)
