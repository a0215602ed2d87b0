"""Function transforms: cases of `run.py`."""

from __future__ import annotations

_NET = """
net = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 10))
params = {k: v.detach() for k, v in net.named_parameters()}
x, y = rand(64, 20), ints(10, 64)
def loss(params, x, y):
    out = T.func.functional_call(net, params, (x[None],))
    return F.cross_entropy(out, y[None])
"""
# A function of 100 parameters: to 10 numbers and to one.
_HUNDRED = """
a, w = rand(10, 10), rand(100)
def vector(w): return T.tanh(a @ w.view(10, 10)).sum(1)
def scalar(w): return (T.tanh(a @ w.view(10, 10)) ** 2).sum()
"""

TRANSFORMS = {
    "per_sample_gradient": (
        _NET + "f = T.vmap(T.func.grad(loss), (None, 0, 0))",
        "f(params, x, y)",
    ),
    "gradient": (_NET + "f = T.func.grad(loss)", "f(params, x[0], y[0])"),
    "vmap": ("x, f = rand(64, 100), T.vmap(lambda v: (v * v.sin()).sum())", "f(x)"),
    "jvp": (_HUNDRED, "T.func.jvp(vector, (w,), (w,))"),
    "jacrev": (_HUNDRED + "f = T.func.jacrev(vector)", "f(w)"),
    "jacfwd": (_HUNDRED + "f = T.func.jacfwd(vector)", "f(w)"),
    "hessian": (_HUNDRED + "f = T.func.hessian(scalar)", "f(w)"),
}
