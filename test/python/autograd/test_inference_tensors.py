"""Inference tensors outside of inference mode: what PyTorch refuses is refused."""

from __future__ import annotations

import warnings

import pytest
import taeda
import torch

# Programs of a library m and an inference tensor x, of ones, and what they do with it.
WRITES = """
x.add_(1)
x.mul_(x)
x[0] = 1
x[0] = m.ones(())
x[m.tensor([0])] = 1.0
x[True] = 2.0
x.copy_(m.ones(3))
x.zero_()
x.fill_(2)
x.uniform_()
x.bernoulli_()
m.add(m.ones(3), 1, out=x)
m.sum(m.ones(3, 2), 1, out=x)
m.matmul(m.ones(3, 2), m.ones(2), out=x)
x.view(3).mul_(2)
x[:2].mul_(2)
x.squeeze_()
x.unsqueeze_(0)
x.t_()
x.swapaxes_(0, 0)
x.as_strided_((1,), (1,))
x.resize_(5)
x.set_(m.ones(3))
m._foreach_add_([x], 1.0)
m._foreach_mul_([x], [x])
m.nn.functional.relu(x, inplace=True)
m.nn.functional.dropout(x, 0.5, True, True)
x.index_add_(0, m.tensor([0]), m.ones(1))
x.scatter_(0, m.tensor([0]), 1.0)
x.masked_fill_(m.tensor([True, False, True]), 0.0)
m.nn.functional.instance_norm(m.ones(2, 3, 4), x, x, use_input_stats=True)
p = m.nn.Parameter(m.ones(3)); p.grad = x; p.sum().backward()
m.nn.Parameter(x)
with m.no_grad(): x.add_(1)
with m.inference_mode(False): x.add_(1)
x.requires_grad_()
x.requires_grad = True
w = m.ones(3, requires_grad=True); (w * x).sum().backward()
w = m.ones(3, requires_grad=True); m.nn.functional.linear(w, x.view(1, 3))
x._version
s = m.ones(3, requires_grad=True).exp()\\nwith m.inference_mode(): v = s[:2]\\nv.add_(2)
m.ones(3, requires_grad=True).clone().unbind()[0].add_(1)
""".strip().splitlines()
READS = r"""
with m.inference_mode(): x.requires_grad_().resize_(2).resize_as_(m.ones(3))
x.clone().add_(1)
(x + 1).add_(1)
m.ones(3).add_(x)
m.ones(3, requires_grad=True).add(x).sum().backward()
m.stack([m.ones(3, requires_grad=True), x]).sum().backward()
with m.inference_mode(): x.add_(1)
m.nn.functional.batch_norm(m.ones(2, 3), x, x, training=True)
a = m.ones(3)\nwith m.inference_mode(): v = a[:2]\nv.add_(1); a.add_(1)
p = m.nn.Parameter(m.ones(3)); p.grad = x; m.optim.SGD([p]).step()
x.numpy()[0] = 4
x.data = m.ones(4)
""".strip().splitlines()


def outcome(library, program: str) -> tuple[str, str]:
    """The error's type and the beginning of its text; nothing where there is none."""
    with library.inference_mode():
        x = library.ones(3)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(program.replace("\\n", "\n"), {"m": library, "x": x})
    except Exception as error:
        return type(error).__name__, str(error)[:40]
    return "", ""


@pytest.mark.parametrize("program", WRITES)
def test_refused_as_by_pytorch(program) -> None:
    ours, theirs = outcome(taeda, program), outcome(torch, program)
    assert ours == theirs and theirs[0] == "RuntimeError"


@pytest.mark.parametrize("program", READS)
def test_allowed_as_by_pytorch(program) -> None:
    assert outcome(taeda, program) == outcome(torch, program) == ("", "")


@pytest.mark.parametrize("write", ["x.add_(1)", "x[0] = 5", "m.mul(x, 2, out=x)"])
def test_what_is_refused_has_changed_nothing(write) -> None:
    with taeda.inference_mode():
        x = taeda.ones(3)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        exec(write, {"m": taeda, "x": x})
    assert x.tolist() == [1, 1, 1]
