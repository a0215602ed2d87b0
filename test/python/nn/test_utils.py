"""nn.utils: packing, clipping, vectors, fusing, parametrizations, pruning."""

from __future__ import annotations

import pytest
import taeda
from taeda import nn
from taeda.nn.utils import parametrizations, parametrize, prune, rnn, stateless
from tolerance import rounding


def test_pack_and_pad_unsorted():
    parts = [taeda.ones(2, 3), taeda.ones(4, 3) * 2, taeda.ones(1, 3) * 3]
    packed = rnn.pack_sequence(parts, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
    assert lengths.tolist() == [2, 4, 1] and tuple(padded.shape) == (3, 4, 3)
    for part, back in zip(parts, rnn.unpack_sequence(packed), strict=True):
        assert bool((part == back).all())
    with pytest.raises(RuntimeError):
        rnn.pack_sequence(parts)
    with pytest.raises(ValueError, match="total_length"):
        rnn.pad_packed_sequence(packed, total_length=1)


def test_packed_sequence_through_lstm():
    net = nn.LSTM(3, 4, bidirectional=True)
    parts = [taeda.randn(4, 3), taeda.randn(2, 3)]
    output, (h, _) = net(rnn.pack_sequence(parts))
    padded, _ = rnn.pad_packed_sequence(output)
    error = rounding("float32", 2 * 8)  # two steps of sums of eight terms
    alone, (last, _) = net(parts[1].unsqueeze(1))
    assert taeda.allclose(padded[:2, 1], alone[:, 0], rtol=0, atol=error)
    assert taeda.allclose(h[:, 1], last[:, 0], rtol=0, atol=error)


def test_packed_sequence_converts():
    packed = rnn.pack_sequence([taeda.ones(2)])
    assert packed.double().data.dtype is taeda.float64
    assert packed.to(taeda.float32) is packed
    assert not packed.is_cuda and packed.cpu() is packed
    data, sizes, order, back = packed
    assert order is None and back is None and sizes is packed.batch_sizes


@pytest.mark.parametrize("foreach", [None, False])
@pytest.mark.parametrize("norm", [2.0, 1.0, float("inf")])
def test_clip_grad_norm(foreach, norm):
    params = [nn.Parameter(taeda.zeros(2)) for _ in range(3)]
    for i, p in enumerate(params):
        p.grad = taeda.full((2,), float(i))
    flat = taeda.cat([p.grad for p in params])
    want = taeda.linalg.vector_norm(flat, norm)
    total = nn.utils.clip_grad_norm_(params, 0.5, norm, foreach=foreach)
    assert taeda.allclose(total, want)
    after = nn.utils.get_total_norm([p.grad for p in params], norm)
    # The formula adds 1e-6 to the norm, which is 1 or more.
    assert float(after) == pytest.approx(0.5, rel=rounding("float32", 6) + 1e-6)


def test_clip_refuses_nonfinite_and_clips_values():
    p = nn.Parameter(taeda.zeros(1))
    p.grad = taeda.full((1,), float("inf"))
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    nn.utils.clip_grad_value_(p, 2.0)
    assert float(p.grad) == 2


def test_vectors():
    net = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(vector * 2, net.parameters())
    again = nn.utils.parameters_to_vector(net.parameters())
    assert taeda.allclose(again, vector * 2)
    with pytest.raises(TypeError):
        nn.utils.vector_to_parameters([1], net.parameters())


def test_fusing_keeps_the_function():
    conv, bn = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
    x = taeda.randn(4, 2, 5, 5)
    bn(conv(x))
    conv.eval(), bn.eval()
    error = rounding("float32", 32)  # sums of 18 terms, then scale and shift
    fused = nn.utils.fuse_conv_bn_eval(conv, bn)
    assert taeda.allclose(fused(x), bn(conv(x)), rtol=0, atol=error)
    linear, bn = nn.Linear(2, 3), nn.BatchNorm1d(3)
    bn(linear(taeda.randn(8, 2)))
    linear.eval(), bn.eval()
    fused, x = nn.utils.fuse_linear_bn_eval(linear, bn), taeda.randn(4, 2)
    assert taeda.allclose(fused(x), bn(linear(x)), rtol=0, atol=error)
    with pytest.raises(AssertionError, match="eval"):
        nn.utils.fuse_linear_bn_eval(linear.train(), bn)


def test_skip_init_and_functional_call():
    layer = nn.utils.skip_init(nn.Linear, 2, 3)
    assert tuple(layer.weight.shape) == (3, 2) and not layer.weight.is_meta
    layer = nn.Linear(2, 1)
    before = layer.weight
    new = {"weight": taeda.ones(1, 2), "bias": taeda.zeros(1)}
    out = stateless.functional_call(layer, new, taeda.ones(1, 2))
    assert float(out) == 2 and layer.weight is before
    with pytest.raises(RuntimeError, match="Missing"):
        stateless.functional_call(
            layer, {"weight": new["weight"]}, taeda.ones(1, 2), strict=True
        )


def test_functional_call_ties_weights():
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    net[1].weight = net[0].weight
    three = {"0.weight": taeda.full((1, 1), 3.0)}
    assert float(stateless.functional_call(net, three, taeda.ones(1))) == 9


def test_modules_have_other_tensors_within_a_context():
    layer = nn.Linear(1, 1, bias=False)
    own, given = layer.weight, {"weight": taeda.full((1, 1), 3.0)}
    for reverse in (False, True):
        with stateless._reparametrize_module(layer, given, stack_weights=reverse):
            assert layer.weight is given["weight"]
        assert layer.weight is own
    with pytest.raises(RuntimeError, match="Unexpected"):
        stateless._reparametrize_module(layer, {"nothing": own}, strict=True)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", taeda.zeros(1))
        self.width = 3

    def forward(self, x):
        self.seen = self.seen + 1
        return x * self.seen if self.seen.item() < 9 else x * self.extra


def test_functional_call_gives_back_what_was_assigned():
    net, given = Counting(), {"seen": taeda.full((1,), 2.0)}
    assert taeda.func.functional_call(net, given, taeda.ones(1)).item() == 3
    assert given["seen"].item() == 3 and net.seen.item() == 0


def test_functional_call_with_a_new_name():
    net, nine = Counting(), taeda.full((1,), 9.0)
    call = taeda.func.functional_call
    assert call(net, {"seen": nine, "extra": nine}, taeda.ones(1)).item() == 9
    assert not hasattr(net, "extra")
    for name, error in ("width", TypeError), ("gone.x", AttributeError):
        with pytest.raises(error, match=name.partition(".")[0]):
            call(net, {name: nine}, taeda.ones(1))
    with pytest.raises(TypeError, match="text is not an instance"):
        call(net, {"seen": "text"}, taeda.ones(1))
    assert net.seen.item() == 0 and net.width == 3


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


def test_parametrization_life():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert parametrize.is_parametrized(layer, "weight")
    assert type(layer).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert bool((layer.weight == layer.weight.T).all())
    layer(taeda.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    value = taeda.eye(3)
    layer.weight = value
    assert bool((layer.weight == value).all())
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert "parametrizations.weight.original" in layer.state_dict()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and isinstance(layer.weight, nn.Parameter)
    with pytest.raises(ValueError):
        parametrize.remove_parametrizations(layer, "weight")
    with pytest.raises(ValueError, match="shape"):
        parametrize.register_parametrization(layer, "weight", nn.Flatten(0))


@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("trivialize", [True, False])
def test_orthogonal(kind, shape, trivialize):
    layer = parametrizations.orthogonal(
        nn.Linear(*shape), "weight", kind, use_trivialization=trivialize
    )
    w = layer.weight
    w = w if w.size(0) <= w.size(1) else w.T
    identity = taeda.eye(w.size(0))
    assert taeda.allclose(w @ w.T, identity, rtol=0, atol=rounding("float32", 64))
    layer.weight.sum().backward()


def test_weight_and_spectral_norm():
    layer = nn.Linear(3, 2)
    plain = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    assert taeda.allclose(layer.weight, plain, rtol=rounding("float32", 8))
    old = nn.Linear(3, 2)
    with pytest.warns(FutureWarning):
        nn.utils.weight_norm(old)
    layer.load_state_dict(old.state_dict())
    assert taeda.allclose(layer.weight, old.weight)
    nn.utils.remove_weight_norm(old)
    assert "weight" in old._parameters
    for wrap in (parametrizations.spectral_norm, nn.utils.spectral_norm):
        layer = wrap(nn.Linear(8, 4))
        for _ in range(30):
            layer(taeda.ones(1, 8))
        sigma = taeda.linalg.matrix_norm(layer.weight, 2)
        # Thirty power iterations of a random matrix, not roundings, set the error.
        assert float(sigma) == pytest.approx(1, abs=0.05)
    nn.utils.remove_spectral_norm(layer)
    assert not layer._state_dict_hooks and "weight" in layer._parameters


def test_pruning_life():
    layer = nn.Linear(4, 4)
    prune.l1_unstructured(layer, "weight", amount=4)
    assert int((layer.weight == 0).sum()) == 4 and prune.is_pruned(layer)
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    assert int((layer.weight_mask.sum(1) == 0).sum()) >= 1
    layer(taeda.ones(1, 4)).sum().backward()
    kept = layer.weight.detach().clone()
    prune.remove(layer, "weight")
    assert bool((layer.weight == kept).all()) and not prune.is_pruned(layer)
    with pytest.raises(ValueError, match="has to be pruned"):
        prune.remove(layer, "weight")
    for wrong, error in ((1.5, ValueError), (-1, ValueError), ("1", TypeError)):
        with pytest.raises(error):
            prune.random_unstructured(layer, "weight", wrong)


def test_a_program_s_pruning_method():
    class Largest(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def __init__(self, amount):
            prune._validate_pruning_amount_init(amount)
            self.amount = amount

        def compute_mask(self, t, default_mask):
            prune._validate_pruning_amount(self.amount, t.nelement())
            count = prune._compute_nparams_toprune(self.amount, t.nelement())
            mask = default_mask.clone()
            mask.view(-1)[taeda.topk(t.abs().view(-1), count).indices] = 0
            return mask

    kept = Largest(0.5).prune(taeda.arange(1.0, 5).reshape(2, 2))
    assert kept.tolist() == [[1, 2], [0, 0]]
    norms = prune._compute_norm(taeda.ones(2, 3, 4), 2, -1)
    assert norms.tolist() == pytest.approx([6**0.5] * 4)


def test_refused_pruning_changes_nothing():
    layer = nn.Linear(4, 4)
    with pytest.raises(ValueError, match="amount=99"):
        prune.l1_unstructured(layer, "weight", amount=99)
    assert list(layer.state_dict()) == ["weight", "bias"]
    prune.l1_unstructured(layer, "weight", amount=4)
    with pytest.raises(ValueError, match="amount=99"):
        prune.l1_unstructured(layer, "weight", amount=99)
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.L1Unstructured)
    assert int((layer.weight == 0).sum()) == 4


def test_removed_weight_hooks_leave_nothing():
    layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    assert "weight_u" in layer.state_dict()
    nn.utils.remove_spectral_norm(layer)
    tables = (layer._forward_pre_hooks, layer._state_dict_hooks)
    assert not any((*tables, layer._load_state_dict_pre_hooks))
    layer.load_state_dict(nn.Linear(3, 2).state_dict())


def test_losses_take_what_their_signature_says():
    import inspect

    names = [*inspect.signature(nn.MarginRankingLoss).parameters]
    assert names == ["margin", "size_average", "reduce", "reduction"]
    weight = taeda.ones(3)
    with pytest.warns(UserWarning, match="reduction='none'"):
        loss = nn.CrossEntropyLoss(weight, reduce=False, label_smoothing=0.5)
    assert list(loss.state_dict()) == ["weight"] and loss.reduction == "none"
    assert (loss.ignore_index, loss.label_smoothing) == (-100, 0.5)
    assert not hasattr(loss, "reduce")
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        nn.KLDivLoss(log_targets=True)


def test_data_parallel_without_devices():
    net = nn.DataParallel(nn.Linear(2, 1))
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    assert tuple(net(taeda.ones(3, 2)).shape) == (3, 1)


def test_the_old_functional_call_names_the_new_one():
    layer = nn.Linear(1, 1, bias=False)
    new = {"weight": taeda.full((1, 1), 3.0)}
    with pytest.warns(FutureWarning, match="func.functional_call"):
        assert stateless.functional_call(layer, new, taeda.ones(1)).item() == 3


class Loads(taeda.Tensor):
    seen: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is taeda.Tensor.module_load:
            cls.seen.append((kwargs or {}).get("assign"))
            return args[1].detach()
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize("assign", [False, True])
def test_a_loaded_subclass_decides_how_it_is_put_in_place(assign):
    Loads.seen.clear()
    value = taeda.ones(2).as_subclass(Loads)
    assert type(taeda.nn.Parameter(taeda.ones(2)).module_load(value, assign)) is Loads
    assert Loads.seen == [assign]


@pytest.mark.parametrize("bias", [True, False])
def test_fused_layers_have_one_dtype(bias):
    norm = taeda.nn.BatchNorm2d(2).eval()
    layer = taeda.nn.Conv2d(2, 2, 1, bias=bias).bfloat16().eval()
    fused = taeda.nn.utils.fuse_conv_bn_eval(layer, norm)
    assert fused.weight.dtype is fused.bias.dtype is taeda.bfloat16
    assert fused(taeda.ones(1, 2, 3, 3).bfloat16()).shape == (1, 2, 3, 3)
