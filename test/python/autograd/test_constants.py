"""Arguments without a derivative do not take tensors that require gradients."""

from __future__ import annotations

import pytest
import taeda
import taeda.nn.functional as f


def wanted(*shape):
    return taeda.rand(*shape).requires_grad_()


LABELS = taeda.tensor([0, 1, 2])
CALLS = {
    "nll_loss_forward": ("weight", lambda w: f.nll_loss(wanted(3, 4), LABELS, w(4))),
    "nll_loss2d_forward": (
        "weight",
        lambda w: f.nll_loss(wanted(3, 4, 2), LABELS[:, None].expand(3, 2), w(4)),
    ),
    "binary_cross_entropy": (
        "weight",
        lambda w: f.binary_cross_entropy(taeda.rand(3), taeda.rand(3), w(3)),
    ),
    "multi_margin_loss": (
        "weight",
        lambda w: f.multi_margin_loss(taeda.rand(3, 4), LABELS, weight=w(4)),
    ),
    "native_batch_norm": (
        "running_mean",
        lambda w: f.batch_norm(wanted(3, 4), w(4), taeda.ones(4), training=True),
    ),
}


@pytest.mark.parametrize("op", CALLS)
def test_a_gradient_that_is_not_there_is_refused(op: str) -> None:
    argument, call = CALLS[op]
    text = f"'{op}' is not differentiable with respect to argument '{argument}'"
    with pytest.raises(RuntimeError, match=text):
        call(wanted)
    with taeda.no_grad():
        call(wanted)
    call(taeda.rand)


def test_cross_entropy_refuses_weights_that_require_gradients() -> None:
    with pytest.raises(RuntimeError, match="not differentiable .* 'weight'"):
        f.cross_entropy(wanted(3, 4), LABELS, weight=wanted(4))


def test_what_is_called_a_constant_is_taken() -> None:
    mask = taeda.eye(2).to_sparse().requires_grad_()
    x = wanted(2, 2)
    x.sparse_mask(mask).to_dense().sum().backward()
    assert x.grad.tolist() == [[1, 0], [0, 1]]
    count, prob = wanted(3), wanted(3)
    taeda.binomial(count, prob).sum().backward()
    assert count.grad.tolist() == prob.grad.tolist() == [0, 0, 0]
