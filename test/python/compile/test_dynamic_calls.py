"""Calls that leave the sizes of their tensors symbols: no graph for each size."""

from __future__ import annotations

import pytest
import taeda

SHAPES = ((4, 3), (6, 3), (8, 5), (10, 7), (12, 9))
CALLS = """
    torch.einsum("bi,bj->ij", x, x)
    torch.einsum("bi,ci->bc", x, x + 1)
    torch.einsum("...i,...i->...", x, x)
    torch.einsum("ii->i", x @ x.mT)
    torch.tensordot(x, x, ([0], [0]))
    torch.tensordot(x, x, 2)
    torch.cdist(x, x + 1)
    torch.block_diag(x, x)
    torch.addr(x, x[:, 0], x[0])
    torch.trapezoid(x, dim=0)
    torch.diff(x, dim=0)
    torch.diff(x, n=2, dim=0)
    torch.broadcast_to(x[:1], x.shape)
    x.tensor_split(2)[1]
    torch.nn.functional.glu(torch.cat([x, x], 1))
    x[torch.arange(x.shape[0])]
    x[torch.zeros(3, dtype=torch.long)]
    x[torch.arange(x.shape[0]), 0]
    x[0, torch.arange(x.shape[1])]
    x[:, torch.tensor([0, 2])]
    x[None, ..., torch.tensor([[0, 1], [2, 0]])]
    x[torch.arange(x.shape[0]), torch.zeros(x.shape[0], dtype=torch.long)]
    x[1:, torch.tensor([0, -1]), None]
    torch.view_as_real(torch.complex(x, x))
    torch.polar(x.abs(), x).real
    torch.complex(x, x + 1).conj().imag
    torch.view_as_complex(torch.stack([x, x], -1)).abs()
    torch.view_as_real(torch.polar(x, x) * torch.view_as_complex(x[..., None] * PAIR))
    torch.view_as_real(torch.fft.fft(x))
    torch.fft.rfft(x, dim=0).abs()
    torch.fft.ifft(torch.fft.fft(x, dim=0), dim=0).real
    torch.view_as_real(torch.fft.fft2(x))
    torch.fft.irfft(torch.fft.rfft(torch.cat([x, x], 1)))
    torch.fft.rfft(x, n=4, dim=0).abs()
    torch.fft.fftshift(x)
    torch.nn.functional.cross_entropy(x, torch.arange(x.shape[0]) % 3)
    torch.nn.functional.cross_entropy(x @ x.mT, torch.arange(x.shape[0]))
    torch.nn.functional.cross_entropy(x, (x + 1).softmax(1))
    torch.nn.functional.interpolate(x[None, None], size=x.shape)
    torch.nn.functional.interpolate(x[None], size=x.shape[1] * 2, mode="linear")
    torch.nn.functional.interpolate(x[None, None], size=(x.shape[0], 4), mode="bicubic")
    x * (x.shape[0] + True)
    put(x.clone(), torch.arange(x.shape[0]), 0.0)
    put(x.clone(), (slice(1, None), torch.tensor([1])), x[1:, :1])
"""


PAIR = taeda.tensor([1.0, 2.0])


def put(x, key, value):
    x[key] = value
    return x


def inputs(library):
    for rows, columns in SHAPES:
        numbers = library.linspace(-1, 1, rows * columns)
        yield numbers.view(rows, columns)


@pytest.mark.parametrize("call", [line.strip() for line in CALLS.strip().split("\n")])
def test_sizes_stay_symbols(call) -> None:
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    program = eval(f"lambda x: {call}", {"torch": taeda, "put": put, "PAIR": PAIR})
    taeda.compiler.reset()
    captured = taeda.compile(program, backend=backend, fullgraph=True)
    compiled = taeda.compile(program, fullgraph=True)
    for x in inputs(taeda):
        assert taeda.allclose(captured(x), program(x), atol=1e-6)
        assert taeda.allclose(compiled(x), program(x), atol=1e-5)
    # One for the first sizes, one for each dim that was seen to differ.
    assert len(graphs) == 3


def test_an_index_too_many() -> None:
    def program(x):
        return x[taeda.tensor([0]), taeda.tensor([0]), taeda.tensor([0])]

    compiled = taeda.compile(program, dynamic=True, backend="eager")
    with pytest.raises(IndexError, match="too many indices"):
        compiled(taeda.ones(3, 4))
