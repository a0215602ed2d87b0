"""Models whose backward passes are compiled, alone and in compiled training steps, and
each choice of what a compiled program saves: gradients are those of eager passes."""

import pytest
import taeda
from backward_programs import (
    MODELS,
    WAYS,
    captures,
    compare,
    grads_of,
    graphs,
    same,
    step,
)
from taeda._dynamo import compiled_autograd, config
from taeda._dynamo.utils import counters


@pytest.fixture(autouse=True)
def forgotten():
    """Nothing is known from other tests."""
    compiled_autograd.reset()
    counters.clear()
    yield
    compiled_autograd.reset()


@pytest.fixture(params=WAYS)
def way(request):
    """How graphs are compiled, as arguments of `_enable`."""
    return WAYS[request.param]


@pytest.mark.parametrize("name", MODELS)
def test_models(name, way):
    compare(lambda i: step(*MODELS[name]()), way)
    assert captures() == 1


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("backend", ["inductor", "aot_eager", "eager"])
def test_training_steps_of_compiled_functions(name, backend):
    taeda.manual_seed(0)
    model, *inputs = MODELS[name]()
    state = {k: v.clone() for k, v in model.state_dict().items()}

    def train(model, *inputs):
        result = model(*inputs)
        result = result[0] if isinstance(result, tuple) else result
        loss = result.square().mean()
        loss.backward()
        return loss

    def steps(function):
        model.load_state_dict(state)
        found = []
        for i in range(3):
            taeda.manual_seed(i)
            model.zero_grad()
            found.append([function(model, *inputs), grads_of(*model.parameters())])
        return found

    want = steps(train)
    with config.patch(compiled_autograd=True):
        compiled = taeda.compile(train, backend=backend)
    found = steps(compiled)
    assert same(found, want)
    assert captures() == graphs() == 1


# Partition ----------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("budget", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("recompute", [False, True])
def test_what_is_saved_changes_no_gradient(name, budget, recompute):
    """Each choice of what is saved and what is computed again, and both ways of running
    the backward pass."""
    from taeda import _compiler

    taeda.manual_seed(0)
    model, *inputs = MODELS[name]()
    model.eval() if name in ("dropout", "transformer") else None
    parameters = list(model.parameters())
    buffers = [b.clone() for b in model.buffers()]

    def function(*given):
        result = model(*given[: len(inputs)])
        return result[0] if isinstance(result, tuple) else result

    def refuse(error):
        raise error

    def grads(run):
        for b, kept in zip(model.buffers(), buffers, strict=True):
            b.copy_(kept)
        model.zero_grad()
        run(*inputs, *parameters, *model.buffers()).square().mean().backward()
        return grads_of(*parameters)

    want = grads(function)
    found = []
    compiled = _compiler.compile(
        swapped(function, model, len(inputs)),
        refuse,
        recompute=recompute,
        fuse=False,
        budget=budget,
    )
    found.append(grads(compiled))
    with compiled_autograd._enable(None):
        found.append(grads(compiled))
    assert all(same(f, want) for f in found)


def swapped(function, model, count):
    """The function of a model's inputs and of what `functional_call` puts in it."""
    names = [n for n, _ in (*model.named_parameters(), *model.named_buffers())]

    def run(*given):
        state = dict(zip(names, given[count:], strict=True))
        result = taeda.func.functional_call(model, state, given[:count])
        return result[0] if isinstance(result, tuple) else result

    return run
