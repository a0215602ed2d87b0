"""NAME_copy of every view: the same elements in memory of their own, row-major."""

import pytest
import taeda

VIEWS = {
    "alias": (),
    "as_strided": ((2, 2), (1, 4), 1),
    "diagonal": (1,),
    "expand": ((2, 3, 4),),
    "permute": ((1, 0),),
    "select": (0, 1),
    "slice": (1, 1, 4, 2),
    "split": (2, 1),
    "split_with_sizes": ((1, 3), 1),
    "squeeze": (0,),
    "t": (),
    "transpose": (0, 1),
    "unbind": (1,),
    "unfold": (1, 2, 1),
    "unsqueeze": (1,),
    "view": ((4, 3),),
}


def _list(found):
    return list(found) if isinstance(found, (tuple, list)) else [found]


@pytest.mark.parametrize("name", VIEWS)
def test_copies(name) -> None:
    base = taeda.arange(12.0).to(taeda.complex64).view(3, 4)
    copy = getattr(taeda, f"{name}_copy")
    view = getattr(taeda.ops.aten, name)
    for x in (base, (base * 1j).conj()):
        got, want = _list(copy(x, *VIEWS[name])), _list(view(x, *VIEWS[name]))
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert taeda.equal(a, b) and a.is_contiguous() and not a.is_conj()
            assert a.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    x = base.real.clone().requires_grad_()
    sum(t.sum() for t in _list(copy(x, *VIEWS[name]))).backward()
    seen, x.grad = x.grad, None
    sum(t.sum() for t in _list(view(x, *VIEWS[name]))).backward()
    assert taeda.equal(seen, x.grad)


@pytest.mark.parametrize("name", VIEWS)
def test_tags(name) -> None:
    packet = getattr(taeda.ops.aten, f"{name}_copy")
    for overload in packet.overloads():
        if not overload.endswith("out"):
            assert taeda.Tag.view_copy in getattr(packet, overload).tags


def test_out() -> None:
    x = taeda.arange(6.0).view(2, 3)
    out = taeda.empty(0)
    assert taeda.t_copy(x, out=out) is out and taeda.equal(out, x.t())
    outs = [taeda.empty(0) for _ in range(2)]
    assert taeda.unbind_copy(x, out=outs) is None
    assert all(taeda.equal(a, b) for a, b in zip(outs, x, strict=True))
    with pytest.raises(RuntimeError):
        taeda.unbind_copy(x, out=outs[:1])
