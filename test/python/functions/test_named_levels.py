"""Levels by depth, hooks of vmap, and the package before `torch.func`."""

from __future__ import annotations

import warnings

import functorch
import pytest
import taeda
import torch
from taeda._functorch import former_package, nesting
from taeda._functorch import vmap as vmap_module


def test_levels_are_found_by_their_depth() -> None:
    c = taeda._C._functorch
    outer = c._vmap_increment_nesting(3, "error")
    inner = c._vmap_increment_nesting(2, "error")
    try:
        assert (outer, inner) == (1, 2)
        x = c._add_batch_dim(taeda.arange(12.0).view(3, 2, 2), 0, outer)
        y = c._add_batch_dim(x, 0, inner)
        assert (c.maybe_get_level(x), c.maybe_get_level(y)) == (1, 2)
        assert y.shape == (2,)
        total = c._remove_batch_dim(y.sum(), inner, 2, 0)
    finally:
        c._vmap_decrement_nesting()
    shown = c._remove_batch_dim(total, outer, 3, 0)
    assert c._vmap_decrement_nesting() == 1
    assert shown.tolist() == [[1.0, 5.0], [9.0, 13.0], [17.0, 21.0]]
    with pytest.raises(RuntimeError, match="depth 1"):
        nesting.level_at(1)
    with pytest.raises(RuntimeError, match="no level of vmap"):
        c._vmap_decrement_nesting()
    assert not hasattr(c, "_no_such_name")


class Pair:
    """A container with its own way through vmap, as tensordict has."""

    def __init__(self, a, b) -> None:
        self.a, self.b = a, b


def test_packages_replace_what_vmap_does_around_the_call(monkeypatch) -> None:
    remove = vmap_module._maybe_remove_batch_dim

    def process(in_dims, args, func):
        return args[0].a.size(0), [0], list(args), None

    def create(dims, leaves, level, spec):
        (p,) = leaves
        add = vmap_module._add_batch_dim
        return (Pair(add(p.a, 0, level), add(p.b, 0, level)),)

    def unwrap(result, out_dims, level, size, func):
        parts = (result.a, result.b)
        return Pair(*(remove("f", part, level, size, out_dims) for part in parts))

    monkeypatch.setattr(vmap_module, "_process_batched_inputs", process)
    monkeypatch.setattr(vmap_module, "_create_batched_inputs", create)
    monkeypatch.setattr(vmap_module, "_unwrap_batched", unwrap)
    given = Pair(taeda.ones(3, 2), taeda.arange(3.0))
    found = taeda.vmap(lambda p: Pair(p.a.sum() * p.b, p.b))(given)
    assert found.a.tolist() == [0.0, 2.0, 4.0]
    assert found.b.tolist() == [0.0, 1.0, 2.0]


def test_dims_are_spread_over_a_tree() -> None:
    _, spec = vmap_module.tree_flatten(([1, 2], 3))
    assert vmap_module._broadcast_to_and_flatten((0, None), spec) == [0, 0, None]
    assert vmap_module._broadcast_to_and_flatten((0, None, 1), spec) is None


def _former(library, package):
    nn = library.nn
    library.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        plain, weights = package.make_functional(net[0])
        whole, params, buffers = package.make_functional_with_buffers(net, True)
        many, stacked, others = package.combine_state_for_ensemble([net, net])
        with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
            package.make_functional(net)
        tied, tied_params = package.make_functional(nn.Sequential(net[0], net[0]))
    x = library.ones(4, 2)
    ensemble = library.vmap(many, in_dims=(0, 0, None))(stacked, others, x)
    return [
        repr(plain),
        [p.requires_grad for p in weights],
        library.equal(plain(weights, x), net[0](x)),
        [p.requires_grad for p in params],
        whole.param_names,
        whole.buffer_names,
        library.allclose(whole(params, buffers, x), net(x)),
        [tuple(p.shape) for p in (*stacked, *others)],
        [p.requires_grad for p in stacked],
        library.allclose(ensemble[1], net(x), atol=1e-6),
        tied.names_map,
        len(tied_params),
    ]


def test_the_former_package_makes_functions_of_modules() -> None:
    assert _former(taeda, former_package) == _former(torch, functorch)
    for name in former_package.__all__:
        assert hasattr(functorch, name)


def test_levels_of_several_kinds_end_together():
    functorch = taeda._C._functorch
    functorch._vmap_increment_nesting(3, "error")
    functorch._grad_increment_nesting()
    assert functorch._jvp_increment_nesting() == 3
    functorch.pop_dynamic_layer_stack_and_undo_to_depth(2)
    assert functorch.get_dynamic_layer_stack_depth() == 2
    with pytest.raises(RuntimeError, match="no level of vmap is innermost, but grad"):
        functorch._vmap_decrement_nesting()
    assert functorch._grad_decrement_nesting() == 2
    functorch.pop_dynamic_layer_stack_and_undo_to_depth(0)
    assert functorch.get_dynamic_layer_stack_depth() == 0
