"""Policies of wrapping, contracts and checkpoint wrappers, in one process."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import taeda
import taeda.distributed.fsdp.wrap as ours
import torch
import torch.distributed.fsdp.wrap as theirs
from taeda.distributed._composable import contract
from taeda.distributed.algorithms._checkpoint import checkpoint_wrapper as again
from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as reference


def model(library):
    """Modules within modules, of several sizes."""
    nn = library.nn
    return nn.Sequential(
        nn.Linear(4, 4),
        nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)),
        nn.ModuleList([nn.Linear(4, 40), nn.BatchNorm1d(3)]),
        nn.MultiheadAttention(8, 2),
    )


def names(library, module):
    """Names of the wrappers in a module."""
    return [n for n, m in module.named_modules() if type(m).__name__ == "Checkpoint"]


def policies(library, wrap):
    """By name, one of each kind."""
    nn, part = library.nn, functools.partial
    return {
        "size": part(wrap.size_based_auto_wrap_policy, min_num_params=60),
        "small": part(wrap.size_based_auto_wrap_policy, min_num_params=1),
        "leaves": part(
            wrap.size_based_auto_wrap_policy,
            min_num_params=1,
            force_leaf_modules={nn.ModuleList},
            exclude_wrap_modules=set(),
        ),
        "lambda": part(
            wrap.lambda_auto_wrap_policy,
            lambda_fn=lambda m: isinstance(m, nn.Linear) and m.out_features == 4,
        ),
        "blocks": part(
            wrap.transformer_auto_wrap_policy,
            transformer_layer_cls={nn.Sequential, nn.Linear},
        ),
        "always": wrap.always_wrap_policy,
        "either": part(
            wrap._or_policy,
            policies=[
                part(wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: False),
                wrap.ModuleWrapPolicy({nn.BatchNorm1d}),
            ],
        ),
        "classes": wrap.ModuleWrapPolicy([nn.Linear, nn.BatchNorm1d]),
    }


def checkpoint_class(library, module):
    """A wrapper of one name in both libraries."""
    return type("Checkpoint", (module.CheckpointWrapper,), {})


@pytest.mark.parametrize("name", policies(taeda, ours))
def test_choices(name):
    found = []
    for library, wrap, module in ((torch, theirs, reference), (taeda, ours, again)):
        net = model(library)
        module.apply_activation_checkpointing(
            net,
            checkpoint_wrapper_fn=checkpoint_class(library, module),
            auto_wrap_policy=policies(library, wrap)[name],
        )
        found.append((names(library, net), list(net.state_dict()), str(net)))
    assert found[1] == found[0]
    assert found[0][0]


def test_custom_policy():
    policy = ours.CustomPolicy(lambda m: {"a": 2} if m.training else True)
    net = taeda.nn.Sequential(taeda.nn.Linear(2, 2), taeda.nn.ReLU())
    net[1].eval()
    chosen = policy._run_policy(net, {net[0]}, {"a": 1, "b": 1})
    assert chosen == {net: {"a": 2, "b": 1}, net[1]: {"a": 1, "b": 1}}
    with pytest.raises(ValueError, match="lambda_fn passed to CustomPolicy"):
        ours.CustomPolicy(lambda m: 3)._run_policy(net, set(), {})
    assert "Linear" in repr(ours.ModuleWrapPolicy({taeda.nn.Linear}))


def test_annotations():
    def wrapper(module, **kwargs):
        return taeda.nn.Sequential(module), kwargs

    plain = taeda.nn.ReLU()
    assert ours.wrap(plain) is plain
    with ours.enable_wrap(wrapper_cls=wrapper, a=1, b=1):
        made, kwargs = ours.wrap(plain, b=2)
        assert made[0] is plain
        assert kwargs == {"a": 1, "b": 2}
        with pytest.raises(NotImplementedError, match="nesting"):
            with ours.enable_wrap(wrapper_cls=wrapper):
                pass
    assert ours.wrap(plain) is plain


@pytest.mark.parametrize("kind", ["REENTRANT", "NO_REENTRANT", "offload"])
def test_recomputation(kind):
    x = np.random.RandomState(0).standard_normal((3, 4))
    found = []
    for library, module in ((torch, reference), (taeda, again)):
        net = library.nn.Linear(4, 2).double()
        with library.no_grad():
            for p in net.parameters():
                p.fill_(0.5)
        if kind == "offload":
            wrapped = module.offload_wrapper(net)
        else:
            how = getattr(module.CheckpointImpl, kind)
            wrapped = module.checkpoint_wrapper(net, checkpoint_impl=how)
        inputs = library.tensor(x, requires_grad=True)
        wrapped(input=inputs).pow(3).sum().backward()
        state = wrapped.state_dict()
        wrapped.load_state_dict(net.state_dict())
        found.append(
            (
                list(state),
                [n for n, _ in wrapped.named_parameters()],
                inputs.grad.numpy(),
                net.weight.grad.numpy(),
                wrapped.in_features,
            )
        )
    for got, want in zip(found[1], found[0], strict=True):
        if isinstance(want, np.ndarray):
            np.testing.assert_allclose(got, want, rtol=1e-12)
        else:
            assert got == want


def test_contract():
    @contract()
    def mark(module):
        mark.state(module).seen = True
        return module

    @contract()
    def rename(module):
        module.more = taeda.nn.Linear(1, 1)

    net = taeda.nn.Linear(2, 2)
    assert mark.state(net) is None
    assert mark(net) is net
    assert mark.state(net).seen
    with pytest.raises(AssertionError, match="only be applied to a module once"):
        mark(net)
    with pytest.raises(RuntimeError, match="modify FQNs"):
        rename(net)
