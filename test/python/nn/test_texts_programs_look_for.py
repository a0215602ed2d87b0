"""Parts of messages by which programs tell what went wrong."""

from __future__ import annotations

import pytest
import taeda
from taeda import nn
from taeda.nn.utils import parametrize


class Inverse(nn.Module):
    def __init__(self, inverse) -> None:
        super().__init__()
        self.right_inverse = inverse

    def forward(self, x, *rest):
        return x


def test_right_inverses():
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="element 0 of the sequence with type None"):
        parametrize.register_parametrization(
            layer, "weight", Inverse(lambda x: [None, x])
        )
    parametrize.register_parametrization(layer, "weight", nn.Identity())
    with pytest.raises(ValueError, match="right_inverse must have the same dtype"):
        parametrize.register_parametrization(
            layer, "weight", Inverse(lambda x: x.bool())
        )


def test_state_dicts():
    layer = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="expected torch.Tensor or Tensor-like obj"):
        layer.load_state_dict({"weight": [1.0], "bias": taeda.ones(2)})

    def hook(*arguments) -> None:
        pass

    layer.register_state_dict_post_hook(hook)
    with pytest.raises(RuntimeError, match="previously registered via register_state_"):
        layer._register_state_dict_hook(hook)


def test_backward_hooks_of_a_dict():
    class Both(nn.Module):
        def forward(self, x):
            return {"x": x}

    module = Both()
    module.register_full_backward_hook(lambda *arguments: None)
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors"):
        module(taeda.ones(2, requires_grad=True))


def test_channels_of_inputs_of_other_ranks():
    for name, rank in (("dropout2d", 5), ("dropout3d", 3)):
        function = getattr(nn.functional, name)
        with pytest.warns(UserWarning, match=f"Received a {rank}-D input to {name}"):
            function(taeda.ones([2] * rank))
