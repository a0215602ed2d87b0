"""Grad and inference mode."""

from __future__ import annotations

import pytest
import taeda


def test_modes_nest():
    x = taeda.ones(1, requires_grad=True)
    with taeda.no_grad():
        assert not (x * 2).requires_grad
        with taeda.enable_grad():
            assert (x * 2).requires_grad
        assert not taeda.is_grad_enabled()
    assert taeda.is_grad_enabled()
    with pytest.raises(KeyError), taeda.no_grad():
        raise KeyError
    assert taeda.is_grad_enabled()


def test_set_grad_enabled():
    taeda.set_grad_enabled(False)
    assert not taeda.is_grad_enabled()
    taeda.set_grad_enabled(True)
    with taeda.set_grad_enabled(False):
        assert not taeda.is_grad_enabled()
    assert taeda.is_grad_enabled()

    @taeda.set_grad_enabled(False)
    def inside():
        return taeda.is_grad_enabled()

    assert taeda.is_grad_enabled() and inside() is False
    assert taeda.is_grad_enabled()


def test_decorators():
    @taeda.no_grad()
    def with_call():
        return taeda.is_grad_enabled()

    @taeda.no_grad
    def without_call():
        return taeda.is_grad_enabled()

    assert with_call() is without_call() is False
    assert taeda.is_grad_enabled()
    assert with_call.__name__ == "with_call"


def test_generators():
    @taeda.no_grad()
    def numbers():
        got = yield taeda.is_grad_enabled()
        while got:
            assert not taeda.is_grad_enabled()
            try:
                got = yield got
            except KeyError:
                got = yield "caught"
        return "end"

    source = numbers()
    assert next(source) is False
    assert taeda.is_grad_enabled()
    assert source.send(5) == 5
    assert source.throw(KeyError()) == "caught"
    with pytest.raises(StopIteration, match="end"):
        source.send(0)
    assert taeda.is_grad_enabled()


def test_inference_mode():
    x = taeda.ones(1, requires_grad=True)
    with taeda.inference_mode():
        assert taeda.is_inference_mode_enabled()
        y = x * 2
    assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        x * y
    with taeda.inference_mode(False):
        assert not taeda.is_inference_mode_enabled()

    @taeda.inference_mode()
    def inside():
        return taeda.is_inference_mode_enabled()

    assert inside() and not taeda.is_inference_mode_enabled()


@pytest.mark.parametrize("keepdim", [False, True])
def test_a_view_without_gradients_of_a_result_knows_it(keepdim):
    x = taeda.randn(3, 2, requires_grad=True)
    y = taeda.logsumexp(x * 1, -1, keepdim)
    with taeda.no_grad():
        view = y[::2]
    assert not y._is_view() and view._base is y
    assert view.requires_grad and view.grad_fn is None


def test_views_are_tracked_by_geometry():
    with taeda.autograd._force_original_view_tracking(False):
        assert taeda.ones(2, requires_grad=True).view(1, 2).requires_grad
