"""FlopCounterMode and ModuleTracker count as PyTorch's do."""

from __future__ import annotations

import pytest
import taeda
import torch
import torch.utils.flop_counter as theirs
from taeda.utils import flop_counter as ours


def attention(lib):
    class Attention(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = lib.nn.Linear(8, 24)

        def forward(self, x):
            b, n, _ = x.shape
            q, k, v = (
                t.view(b, n, 2, -1).transpose(1, 2)
                for t in self.project(x).chunk(3, -1)
            )
            return (q @ k.transpose(-2, -1)).softmax(-1) @ v

    return Attention(), (lib.randn(2, 5, 8),)


def fused_attention(lib):
    class Fused(lib.nn.Module):
        def forward(self, q, k, v):
            return lib.nn.functional.scaled_dot_product_attention(q, k, v)

    return Fused(), [lib.randn(2, 3, 5, 4, requires_grad=True) for _ in range(3)]


def perceptron(lib):
    nn = lib.nn
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)), (
        lib.randn(7, 4),
    )


def convolutional(lib):
    nn = lib.nn
    module = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.Sequential(nn.ReLU(), nn.Conv2d(4, 6, 3, stride=2, groups=2)),
        nn.ConvTranspose2d(6, 2, 3, stride=2),
    )
    return module, (lib.randn(2, 3, 8, 8, requires_grad=True),)


def multihead(lib):
    x = lib.randn(2, 5, 8)
    return lib.nn.MultiheadAttention(8, 2, batch_first=True), (x, x, x)


def products(lib):
    class Products(lib.nn.Module):
        def forward(self, a, b, c):
            return lib.baddbmm(c, a, b) + lib.addmm(c[0], a[0], b[0])

    shapes = (2, 3, 4), (2, 4, 5), (2, 3, 5)
    return Products(), [lib.randn(*s, requires_grad=True) for s in shapes]


def counted(lib, flops, program, **options):
    module, args = program(lib)
    with flops.FlopCounterMode(display=False, **options) as counter:
        out = module(*args)
        out = out[0] if isinstance(out, tuple) else out
        out.sum().backward()
    return counter


@pytest.mark.parametrize(
    "program",
    [perceptron, convolutional, attention, multihead, products, fused_attention],
)
def test_counts_are_those_of_torch(program) -> None:
    found = counted(taeda, ours, program)
    wanted = counted(torch, theirs, program)
    named = lambda counts: {
        name: {str(packet): n for packet, n in row.items()}
        for name, row in counts.items()
    }
    assert named(found.get_flop_counts()) == named(wanted.get_flop_counts())
    assert found.get_total_flops() == wanted.get_total_flops()
    assert (found.get_total_flops() > 0) == (program is not fused_attention)


def test_convolutions_of_all_kinds() -> None:
    cells = 0
    for dims in (1, 2, 3):
        for transposed in (False, True):
            for groups in (1, 2):

                def program(lib, dims=dims, transposed=transposed, groups=groups):
                    name = f"Conv{'Transpose' if transposed else ''}{dims}d"
                    make = getattr(lib.nn, name)
                    x = lib.randn(2, 4, *(6,) * dims, requires_grad=True)
                    return make(4, 6, 3, stride=2, groups=groups), (x,)

                found = counted(taeda, ours, program)
                wanted = counted(torch, theirs, program)
                assert found.get_total_flops() == wanted.get_total_flops() > 0
                cells += 1
    assert cells == 12


def test_formulas_of_attention() -> None:
    q, k, v = (2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7, 8)
    assert ours.sdpa_flop_count(q, k, v) == theirs.sdpa_flop_count(q, k, v)
    same = (2, 6, 5, 4), (2, 6, 7, 4), (2, 6, 7, 8)
    grad = (2, 6, 5, 8)
    assert ours.sdpa_backward_flop_count(
        grad, *same
    ) == theirs.sdpa_backward_flop_count(grad, *same)
    with pytest.raises(AssertionError, match="incompatible"):
        ours.sdpa_flop_count(q, k, (2, 3, 6, 8))
    target = taeda.ops.aten._scaled_dot_product_flash_attention_for_cpu
    mapping = {target: ours.sdpa_flop}
    found = counted(taeda, ours, fused_attention, custom_mapping=mapping)
    assert found.get_total_flops() == ours.sdpa_flop_count(*[(2, 3, 5, 4)] * 3)


def test_a_formula_of_ones_own() -> None:
    target = taeda.ops.aten.dot

    @ours.register_flop_formula(target)
    def dot_flop(a, b, *args, out_shape=None, **kwargs):
        return 2 * a[0]

    try:
        with ours.FlopCounterMode(display=False) as counter:
            taeda.ones(3) @ taeda.ones(3)
        assert counter.get_flop_counts() == {"Global": {target: 6}}
        with pytest.raises(RuntimeError, match="duplicate registrations for aten.dot"):
            ours.register_flop_formula(target)(dot_flop)
    finally:
        del ours.flop_registry[target]
    with pytest.raises(ValueError, match="expected each target to be"):
        ours.register_flop_formula(taeda.add)(dot_flop)


def test_the_table(capsys) -> None:
    with ours.FlopCounterMode(depth=1) as counter:
        perceptron(taeda)[0](taeda.randn(7, 4))
        taeda.randn(10, 10) @ taeda.randn(10, 10)
    text = capsys.readouterr().out
    assert text == counter.get_table(1) + "\n"
    assert text.splitlines() == [
        "Module              FLOP    % Total",
        "--------------  --------  ---------",
        "Global          2490.000    100.00%",
        " - aten.addmm    490.000     19.68%",
        " - aten.mm      2000.000     80.32%",
        " Sequential      490.000     19.68%",
        "  - aten.addmm   490.000     19.68%",
    ]
    assert "Sequential.0" in counter.get_table(2)
    with ours.FlopCounterMode(display=False) as empty:
        pass
    assert empty.get_table().splitlines()[-1].split() == ["Global", "0.000", "0%"]
    with pytest.warns(UserWarning, match="mods argument is not needed"):
        ours.FlopCounterMode(taeda.nn.Linear(2, 2))


def test_modules_that_run() -> None:
    from taeda.utils.module_tracker import ModuleTracker

    seen = []

    class Inner(taeda.nn.Module):
        def forward(self, x):
            seen.append((set(tracker.parents), tracker.is_bw))
            x.register_hook(
                lambda g: seen.append((set(tracker.parents), tracker.is_bw))
            )
            return x * 2

    module = taeda.nn.Sequential(taeda.nn.Linear(2, 2), Inner())
    with ModuleTracker() as tracker:
        module(taeda.randn(1, 2)).sum().backward()
        assert tracker.parents == {"Global"}
    names = {"Global", "Sequential", "Sequential.1"}
    assert seen[0] == (names, False)
    assert seen[1][1]
    assert {"Global", "Sequential"} <= seen[1][0]
