"""Autograd: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
m.vmap(m.mul, in_dims=((0,), 0))(ones(2), ones(2))\
  # in_dims is not compatible with the structure of `inputs`
m.vmap(m.sin, out_dims=(0, 0))(ones(2))\
  # out_dims is not compatible with the structure of `outputs`
m.autograd.nothing  # module 'taeda.autograd' has no attribute 'nothing'
m.autograd.variable(1)  # taeda.autograd.variable(...) is deprecated, use
m.autograd.backward([ones(1)], [ones(1), ones(1)])  # got 1 tensors and 2 gradients
m.autograd.backward([Leaf(1)], [1])  # gradients can be either Tensors or None, but got
m.autograd.backward([Leaf(1)], grad_tensors=[None], grad_variables=[ones(1)])\
  # `grad_tensors` and `grad_variables` (deprecated) arguments both passed to
m.autograd.grad(Leaf(1).sum(), [Leaf(1)], allow_unused=False, materialize_grads=True)\
  # allow_unused to be True or not passed when materialize_grads=True, but got:
m.autograd.grad(Leaf(1).sum(), [])  # `inputs` argument to `grad()` cannot be empty.
m.autograd.grad(Leaf(1).sum(), [ones(1)])  # One of the differentiated Tensors does not
m.autograd.graph.get_gradient_edge(ones(1))  # It is not possible to get the gradient
ones(1).register_post_accumulate_grad_hook(print)  # cannot register a hook on a tensor
(Leaf(1) * 2).register_post_accumulate_grad_hook(print)\
  # post accumulate grad hooks cannot be registered on non-leaf tensors
m.autograd.graph.register_multi_grad_hook([Leaf(1)], print, mode='x')\
  # Expects mode to be one of ('all', 'any') but got x
m.autograd.forward_ad.exit_dual_level(level=5)  # Trying to exit a forward AD level that
function().forward(None)  # You must implement the forward function for custom
function().setup_context(None, (), None)  # setup_context is not implemented.
function().jvp(None)  # You must implement the jvp function for custom autograd.Function
function().vmap(None, (), None)  # To use autograd.Function with vmap, you must either
function(forward=lambda ctx, x: x * 1, backward=lambda ctx, g: g, vjp=lambda ctx, g: \
g).apply(Leaf(1)).sum().backward()\
  # Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You
m.autograd.backward([m.autograd.graph.get_gradient_edge(Leaf(2))])\
  # grad can be implicitly created only for
function(forward=lambda ctx, x: x * 1, backward=lambda ctx, g: \
g.real.long()).apply(Leaf(1) + 0j).sum().abs().backward()\
  # 0 - expected a floating dtype compatible with complex64 but got
function(forward=lambda ctx, x: ctx.save_for_backward(1) or x * 1).apply(Leaf(1))\
  # save_for_backward can only save variables, but argument 0 is of type int
function(forward=lambda ctx, x: x * 1, backward=lambda ctx, g: \
1).apply(Leaf(1)).sum().backward()\
  # expected Variable or None (got int)
function(forward=lambda ctx, x: x * 1, backward=lambda ctx, g: \
ones(3)).apply(Leaf(2)).sum().backward()\
  # Function MadeBackward returned an invalid gradient at index 0 - got [3] but
function(forward=lambda ctx, x: x * 1, backward=lambda ctx, g: m.ones(1, \
device='meta')).apply(Leaf(1)).sum().backward()\
  # returned an invalid gradient at index 0 - expected device cpu but got meta
m.autograd.functional.vjp(lambda x: x * 2, ones(2), (ones(2), ones(2)))\
  # The given v should contain a single Tensor.
m.autograd.functional.vjp(lambda x: x * 2, ones(2))\
  # The vector v can only be None if the user-provided function returns a single
m.autograd.functional.vjp(lambda x: x * 2, ones(2), ones(3))\
  # v has invalid size: should be taeda.Size([2]) but got taeda.Size([3])
m.autograd.functional.jacobian(lambda x: x * 2, ones(2), strategy='x')\
  # Expected strategy to be either "forward-mode" or "reverse-mode", got 'x'
m.autograd.functional.jacobian(lambda x: x * 2, ones(2), strategy='forward-mode', \
strict=True)\
  # jacobian: `strict=True` and `strategy="forward-mode"` are not supported together
m.autograd.functional.jacobian(lambda x: x * 2, 1)  # inputs has type <class 'int'>.
m.autograd.functional.hessian(lambda x: (x, x), ones(2))\
  # The function given to hessian should return a single Tensor
m.autograd.functional.hessian(lambda x: x, ones(2))\
  # The Tensor returned by the function given to hessian should contain a single
m.autograd.gradcheck(lambda x: x, Leaf(2).double(), check_forward_ad=False, \
check_backward_ad=False)\
  # Expected at least one of check_forward_ad or check_backward_ad to be True
m.autograd.gradcheck(lambda x: x * 1, doubles(1).requires_grad_().expand(3))\
  # The 0th input has a dimension with stride 0. gradcheck only supports inputs that
m.autograd.gradcheck(lambda x: x.detach() * 1, doubles(1).requires_grad_())\
  # function expected to be zero: output 0 requires no grad but depends on input 0
(c := [0], m.autograd.gradcheck(function(forward=lambda ctx, x: x * 1, \
backward=lambda ctx, g: g * (1 + 1e-7 * c.append(0) if c.append(0) else 1 + 1e-9 * \
len(c))).apply, doubles(2).requires_grad_(), nondet_tol=0))\
  # gradient matches numerical gradient. Input 0: the difference is 1e-09, the
Leaf(2).backward(complexes(2))  # grad_output[0] has a dtype of complex64 and output[0]
complexes(1).requires_grad_().sum().backward()  # real scalar outputs but got complex64
setattr(x := Leaf(2), 'grad', x)  # can't assign Variable as its own grad
setattr(Leaf(2), 'grad', doubles(2))  # 'float64' to a tensor with grad_dtype 'Float'
setattr(Leaf(2), 'grad', 1)  # assigned grad expected to be a Tensor or None but got
setattr(Leaf(2), 'grad', m.ones(2, device='meta'))  # device: expected cpu, got meta
setattr(Leaf(2), 'requires_grad', 1)  # requires_grad must be a bool
setattr(Leaf(2), 'data', 1)  # Variable data has to be a tensor, but got int
delattr(Leaf(2), 'data')  # Deleting tensor data is not allowed. Delete tensor instead!
setattr(Leaf(2), 'data', longs(2))  # data set to a tensor that requires gradients must
(x := Leaf(2) * 2)[0].detach_()  # Can't detach views in-place. Use detach() instead. If
(x := Leaf(2), x.set_(ones(2)))  # set_: not allowed on a tensor that requires grad; use
(x := Leaf(2), h := x.register_hook(lambda g: 1), x.sum().backward())\
  # hook '' has changed the type of value (was Tensor, got int)
(x := Leaf(2), h := x.register_hook(lambda g: ones(3)), x.sum().backward())\
  # hook has changed the size of value: expected [2], got [3]
(y := Leaf(2) * 2, y.grad_fn.register_prehook(lambda g: (g[0], g[0])), \
y.sum().backward())\
  # pre-hook has returned an incorrect number of values (got 2, but expected 1)
(y := Leaf(2) * 2, y.grad_fn.register_prehook(lambda g: 1), y.sum().backward())\
  # backward pre-hook: expected Tensor, got int
(h := m.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: 1), h.__enter__(), \
y := Leaf(2).exp(), h.__exit__(), y.sum().backward())\
  # Output of saved tensor unpack_hook expected to be a Tensor but got result of
(i := m.inference_mode(), i.__enter__(), x := ones(2), i.__exit__(None, None, None), \
x.requires_grad_())\
  # Setting requires_grad=True on inference tensor outside InferenceMode is not
(i := m.inference_mode(), i.__enter__(), x := ones(2), i.__exit__(None, None, None), \
x._version)\
  # Inference tensors do not track version counter.
copy.deepcopy(Leaf(2) * 2)  # created explicitly by the user (graph leaves) support the
Leaf(2).__dlpack__()  # __dlpack__: Can't export tensors that require gradient
Leaf(2).apply_(abs)  # Can't call apply_() on a tensor that requires grad
m.histc(Leaf(2), 2).sum().backward()  # derivative for histc is not implemented
ones(1).register_hook(print)  # cannot register a hook on a tensor that doesn't require
function(forward=lambda ctx, x: x * 1).apply(Leaf(1)).sum().backward()\
  # You must implement either the backward or vjp method for your custom
function(forward=lambda ctx, x: (ctx.mark_dirty(x), x * 1)[1]).apply(Leaf(1) * 2)\
  # Some elements marked as dirty during the forward method were not returned as out
function(forward=lambda ctx, x: x * 1, backward=lambda ctx, g: (g, \
g)).apply(Leaf(1)).sum().backward()\
  # MadeBackward returned an incorrect number of gradients (expected 1, got 2)
function(forward=lambda ctx, x, y: x * 1, backward=lambda ctx, g: (g, \
g)).apply(Leaf(1), 2).sum().backward()\
  # function MadeBackward returned a gradient different from None at position 2, but
(f := function(forward=lambda ctx, x: (ctx.save_for_backward(x), x * 1)[1], \
backward=lambda ctx, g: (ctx.saved_tensors, g)[1]), y := f.apply(Leaf(1)).sum(), \
y.backward(), y.backward())\
  # Trying to backward through the graph a second time (or directly access saved
m.autograd.gradcheck(lambda x: x * 1, [1])  # gradcheck expects at least one input
m.autograd.gradcheck(lambda x, y: x.detach() * y, (doubles(1).requires_grad_(), \
doubles(1).requires_grad_()))\
  # Jacobian mismatch for output 0 with respect to input 0,
Leaf(2).backward(ones(3))  # grad_output[0] has a shape of [3] and output[0] has a shape
Leaf(2).mul_(2)  # a leaf Variable that requires grad is being used in an in-place
(i := m.inference_mode(), i.__enter__(), x := ones(2), i.__exit__(None, None, None), \
Leaf(2) * x)\
  # Inference tensors cannot be saved for backward. Make a clone of this one
m.heaviside(Leaf(2), ones(2)).sum().backward()  # element 0 of tensors does not require
(x := Leaf(2), y := x.exp(), y.detach().add_(1), y.sum().backward())\
  # been modified by an inplace operation: [float32 tensor [2]], which is output 0
ones(2).map_(Leaf(2), max)  # Can't call map_() with a tensor that requires grad
m.add(ones(2), 1, out=Leaf(3).exp())  # add(): functions with out=... arguments don't
(i := m.inference_mode(), i.__enter__(), x := ones(2), i.__exit__(None, None, None), \
x.add_(Leaf(2)))\
  # Inplace update to inference tensor outside InferenceMode is not allowed. Change
"""

OWN = """
function(forward=lambda ctx, x: setattr(ctx, 'to_save', 1) or x * 1).apply(Leaf(1))\
  # TypeError: saved_tensors must be a tuple, got int
function(forward=lambda ctx, x: (ctx.mark_dirty(x), ctx.mark_non_differentiable(x), \
x)[2]).apply(Leaf(1) * 2)\
  # RuntimeError: a tensor that is marked dirty cannot be marked non-
(keep := [], f := function(forward=lambda ctx, x: (keep.append(ctx), \
ctx.save_for_backward(x), x * 1)[2]), f.apply(Leaf(1)) and None, \
keep[0].saved_tensors)\
  # RuntimeError: Attribute 'saved_tensors' is invalid for this instance of
(keep := [], f := function(forward=lambda ctx, x: (keep.append(ctx), x * 1)[1]), \
f.apply(ones(1)), keep[0].next_functions)\
  # RuntimeError: Attribute is invalid: the autograd Node of this ctx does not exist
(x := Leaf(2), h := x.register_post_accumulate_grad_hook(lambda g: 1), \
x.sum().backward())\
  # RuntimeError: Tensor post accumulate grad hooks should return None.
(i := m.inference_mode(), i.__enter__(), x := ones(2), i.__exit__(None, None, None), \
setattr(ones(2), 'data', x))\
  # RuntimeError: Attempted to call `variable.set_data(tensor)`, but `variable` and
m.autograd.backward([1])  # TypeError: expected a Tensor or a GradientEdge, got int
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
