"""Optimizers and schedules: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
(p := nn.Parameter(ones(1)), setattr(p, 'grad', ones(1)), o := optim.SGD([p]), s := \
m.amp.GradScaler('cpu'), s.scale(ones(1)), s.unscale_(o), s.unscale_(o))\
  # unscale_() has already been called on this optimizer since the last update().
(p := nn.Parameter(ones(1)), setattr(p, 'grad', ones(1)), o := optim.SGD([p]), s := \
m.amp.GradScaler('cpu'), s.scale(ones(1)), s.step(o), s.unscale_(o))\
  # unscale_() is being called after step().
(p := nn.Parameter(ones(1)), setattr(p, 'grad', ones(1)), o := optim.SGD([p]), s := \
m.amp.GradScaler('cpu'), s.scale(ones(1)), s.step(o, closure=print))\
  # Closure use is not currently supported
(p := nn.Parameter(ones(1)), setattr(p, 'grad', ones(1)), o := optim.SGD([p]), s := \
m.amp.GradScaler('cpu'), s.scale(ones(1)), s.step(o), s.step(o))\
  # step() has already been called since the last update().
(p := nn.Parameter(ones(1).half()), setattr(p, 'grad', ones(1).half()), o := \
optim.SGD([p]), s := m.amp.GradScaler('cpu'), s.scale(ones(1)), s.unscale_(o))\
  # Attempting to unscale FP16 gradients.
optim.nothing  # module 'taeda.optim' has no attribute 'nothing'
optim.Optimizer([Leaf(1)], {}).step()  # Optimizer does not define step()
optim.Optimizer([Leaf(1)], {}).add_param_group(1)  # be a dict, but got <class 'int'>
(o := optim.SGD([('a', Leaf(1))]), o.add_param_group({'params': [Leaf(1)]}))\
  # all optimizer param groups should be with/without names. cannot add param group
(o := optim.SGD([Leaf(1)]), o.register_step_pre_hook(lambda *a: 1), o.step())\
  # must return None or a tuple (new_args, new_kwargs), but got 1
optim.Adam([Leaf(1)], fused=True, differentiable=True)\
  # `fused` does not support `differentiable`
(x := Leaf(1), setattr(x, 'grad', ones(1)), optim.Adam([x], capturable=True, \
foreach=False).step())\
  # params and state_steps must be on supported devices: ['cuda', 'xpu', 'hpu',
(x := Leaf(1), setattr(x, 'grad', ones(1)), optim.SparseAdam([x]).step())\
  # SparseAdam does not support dense gradients, please consider Adam instead
(x := complexes(1).requires_grad_(), setattr(x, 'grad', complexes(1)), \
optim.Adafactor([x]).step())\
  # Adafactor does not support complex parameters
(x := Leaf(1), optim.LBFGS([x], line_search_fn='x').step(lambda: (l := (x * \
x).sum(), l.backward(), l)[2]))\
  # only 'strong_wolfe' is supported
optim.lr_scheduler.LRScheduler(optim.SGD([Leaf(1)]))\
  # LRScheduler does not define get_lr()
optim.lr_scheduler.LinearLR(optim.SGD([Leaf(1)]), 1, 2)\
  # Expected end_factor within 0 and 1, got 2
optim.lr_scheduler.OneCycleLR(optim.Adagrad([Leaf(1)]), 1, 10)\
  # optimizer must support momentum or beta1 with `cycle_momentum` option enabled
optim.lr_scheduler.CyclicLR(optim.SGD([Leaf(1)], momentum=0.5), [1, 2], 10)\
  # same length as optimizer.param_groups. base_lr has 2 values, param_groups has 1.
optim.lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD([Leaf(1)]), 1, 0)\
  # Expected integer T_mult >= 1, but got 0
optim.lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD([Leaf(1)]), 1, 1, 'x')\
  # Expected float or int eta_min, but got 'x'
optim.lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD([Leaf(1)]), 1).step(-1)\
  # Expected non-negative epoch, but got -1
optim.lr_scheduler.OneCycleLR(optim.SGD([Leaf(1)], momentum=0.5), 1, 10, pct_start=2)\
  # Expected float between 0 and 1 pct_start, but got 2
optim.lr_scheduler.OneCycleLR(optim.SGD([Leaf(1)], momentum=0.5), 1, 10, \
anneal_strategy='x')\
  # anneal_strategy must be one of 'cos' or 'linear', instead got x
optim.lr_scheduler.OneCycleLR(optim.SGD([Leaf(1)], momentum=0.5), 1, 0)\
  # Expected positive integer total_steps, but got 0
(s := optim.lr_scheduler.OneCycleLR(optim.SGD([Leaf(1)], momentum=0.5), 1, 2), \
[s.step() for _ in range(5)])\
  # Tried to step 3 times. The specified number of total steps is 2
(o := optim.SGD([Leaf(1)]), optim.lr_scheduler.SequentialLR(o, \
[optim.lr_scheduler.StepLR(o, 1)], [1, 2]))\
  # to be one more than the number of milestone points, but got 1 schedulers and 2
(o := optim.SGD([Leaf(1)]), optim.lr_scheduler.SequentialLR(o, \
[optim.lr_scheduler.StepLR(o, 1), optim.lr_scheduler.ReduceLROnPlateau(o)], [1]))\
  # SequentialLR cannot hold ReduceLROnPlateau (index 1): its step() needs a metric
optim.lr_scheduler.SequentialLR(o := optim.SGD([Leaf(1)]), [1, 2], [1])\
  # SequentialLR: the schedule at index 0 has no `optimizer`
optim.lr_scheduler.SequentialLR(o := optim.SGD([Leaf(1)]), \
[optim.lr_scheduler.StepLR(o, 1), optim.lr_scheduler.StepLR(optim.SGD([Leaf(1)]), \
1)], [1])\
  # expects all schedulers to belong to the same optimizer, but StepLR at index 1
optim.lr_scheduler.ChainedScheduler([])  # ChainedScheduler expects at least one
optim.lr_scheduler.ReduceLROnPlateau(optim.SGD([Leaf(1)]), min_lr=[1, 2])\
  # expected 1 min_lrs, got 2
optim.lr_scheduler.ReduceLROnPlateau(optim.SGD([Leaf(1)]), mode='x')\
  # mode x is unknown!
optim.lr_scheduler.ReduceLROnPlateau(optim.SGD([Leaf(1)]), threshold_mode='x')\
  # threshold mode x is unknown!
(o := optim.SGD([Leaf(1)]), s := optim.lr_scheduler.ReduceLROnPlateau(o, patience=0, \
min_lr=[0.0]), o.add_param_group({'params': [Leaf(1)]}), [s.step(5) for _ in '123'])\
  # The number of param groups in the `optimizer` is 2, but there are 1 `min_lrs`: a
optim.swa_utils.get_ema_multi_avg_fn(2)  # 2 provided. Please provide a value in [0,1]
optim.swa_utils.AveragedModel(nn.Linear(1, 1), avg_fn=abs, multi_avg_fn=abs)\
  # avg_fn and multi_avg_fn exclude each other
optim.swa_utils.SWALR(optim.SGD([Leaf(1)]), 0.1, anneal_strategy='x')\
  # anneal_strategy must be one of 'cos' or 'linear', instead got x
optim.swa_utils.SWALR(optim.SGD([Leaf(1)]), 0.1, anneal_epochs=-1)\
  # anneal_epochs must be equal or greater than 0, got -1
(p := nn.Parameter(ones(1)), o := optim.SGD([p]), s := m.amp.GradScaler('cpu'), \
s.scale(ones(1)), s.step(o))\
  # No inf checks were recorded for this optimizer.
optim.Optimizer(Leaf(1), {})  # be an iterable of Tensors or dicts, but got taeda.Tensor
optim.Optimizer([1], {})  # optimizer can only optimize Tensors, but one of the params
optim.Optimizer([Leaf(1) * 2], {})  # can't optimize a non-leaf Tensor
optim.SGD([{'params': {1}}])  # optimizer parameters need an order that is the same in
(o := optim.SGD([Leaf(1)]), o.add_param_group({'params': \
o.param_groups[0]['params']}))\
  # some parameters appear in more than one parameter group
optim.SGD([Leaf(1)]).load_state_dict({'param_groups': [], 'state': {}})\
  # loaded state dict has a different number of parameter groups (0 instead of 1)
optim.SGD([Leaf(1)]).load_state_dict({'param_groups': [{'params': []}], 'state': {}})\
  # a parameter group that doesn't match the size of optimizer's group (group 0: 0
optim.Adam([Leaf(1)], fused=True, foreach=True)  # `fused` and `foreach` cannot be
optim.Adam([Leaf(1)], betas=(1.0, 0.9))  # Invalid beta parameter at index 0: 1.0
optim.LBFGS([{'params': [Leaf(1)]}, {'params': [Leaf(1)]}])\
  # LBFGS doesn't support per-parameter options (parameter groups)
optim.lr_scheduler.LambdaLR(optim.SGD([Leaf(1)]), [abs, abs])\
  # Expected 1 lr_lambdas, but got 2
optim.lr_scheduler.StepLR(optim.SGD([Leaf(1)]), 1, last_epoch=5)\
  # "param 'initial_lr' is not specified in param_groups[0] when resuming scheduler
optim.lr_scheduler.ConstantLR(optim.SGD([Leaf(1)]), 2)\
  # Expected factor within 0 and 1, but got 2
optim.lr_scheduler.LinearLR(optim.SGD([Leaf(1)]), 2)\
  # Expected start_factor above 0 and at most 1, but got 2
optim.lr_scheduler.CyclicLR(optim.SGD([Leaf(1)], momentum=0.5), 1, 10, mode='x')\
  # mode 'x' is invalid and scale_fn is None
optim.lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD([Leaf(1)]), 0)\
  # Expected positive integer T_0, but got 0
optim.lr_scheduler.OneCycleLR(optim.SGD([Leaf(1)], momentum=0.5), 1)\
  # You must define either total_steps OR (epochs AND steps_per_epoch)
optim.lr_scheduler.SequentialLR(optim.SGD([Leaf(1)]), [], [])\
  # SequentialLR expects at least one scheduler, but got 0
optim.lr_scheduler.ReduceLROnPlateau(optim.SGD([Leaf(1)]), factor=1)\
  # Factor should be < 1.0, but is 1
"""

OWN = """
optim.Optimizer([{'params': [Leaf(1)]}], {'lr': optim.optimizer.required})\
  # ValueError: parameter group didn't specify a value of required optimization
optim.Adam([longs(1)], fused=True)  # RuntimeError: Tensors, but one is taeda.int64 on
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
