"""Compiled programs give what they give eagerly: results, inputs and gradients.

Each random program (`programs.py`) is run twice on inputs of the first sizes and twice
on longer ones, of which the first may make sizes symbols. It is compiled with the
default backend or the one that TAEDA_FUZZ_BACKEND names, or its backward pass is
(compiled autograd), or both. Calls do not wait for kernels, in whose place tiles run,
unless TAEDA_FUZZ_BLOCKING=1. A difference counts when it
is larger than what the program's own results move by where its floating-point inputs
are changed in their last places, as they do behind comparisons and roundings. One that
is gone where kernels round 16-bit results as eager calls do is noted with its seed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import warnings

import taeda
from harness import main
from programs import Grower, Program, writable
from taeda._dynamo import compiled_autograd
from taeda.compiler import config

BACKEND = os.environ.get("TAEDA_FUZZ_BACKEND")
BLOCKING = os.environ.get("TAEDA_FUZZ_BLOCKING") == "1"
ERRORS = (RuntimeError, ValueError, TypeError, IndexError, ZeroDivisionError)
# The error of a few dozen operations in each dtype, relative to the largest element.
BOUNDS = {taeda.float32: 2e-5, taeda.float64: 1e-12, taeda.bfloat16: 4e-2}


class Stale(RuntimeError):
    """What backward needs was changed. A graph may have saved something else, with
    which it computes the gradient of what the program computed."""


def asked_for(results: list[object], seed: int) -> list[object]:
    """The results whose gradients are taken: in every other program only some."""
    source = random.Random(seed)
    every = source.random() < 0.5
    return [r for r in results if every or source.random() < 0.6]


# The globals of each are its own, so that no two programs share their captures.
WITH_PASS = """
def step(*given):
    results = function(*given)
    loss = 0.0
    for each, asked in zip(results, wanted):
        if asked and tensor(each) and each.requires_grad and each.is_floating_point():
            loss = loss + each.double().sum()
    if tensor(loss):
        loss.backward()
    return results
"""


def with_pass(function, seed: int):
    """A function that makes the backward pass itself."""
    source = random.Random(seed)
    wanted = [source.random() < 0.7 for _ in range(64)]
    made = {"function": function, "wanted": wanted, "tensor": taeda.is_tensor}
    exec(WITH_PASS, made)
    return made["step"]


def outcome(function, inputs: list[object], seed: int, inside: bool = False) -> object:
    """Results, inputs afterwards and gradients, or the class of an error.

    Args:
        inside: whether the function makes backward passes itself.
    """
    taeda.manual_seed(seed)
    leaves = [x for x in inputs if taeda.is_tensor(x)]
    given = writable(inputs)
    try:
        results = function(*given, taeda, taeda.nn.functional)
        loss = [
            r.double().sum()
            for r in asked_for(results, seed)
            if taeda.is_tensor(r) and r.requires_grad and r.is_floating_point()
        ]
        if loss and not inside:
            sum(loss).backward()
    except ERRORS as error:
        return Stale if "modified by an inplace" in str(error) else type(error)
    tensors = [*results, *(x for x in given if taeda.is_tensor(x))]
    return [*tensors, *(x.grad for x in leaves)]


# What makes float32 of integers or bools, which a graph may compute by other roundings.
NARROW = (".float()", "> 0", "==", "int64", "arange", "argmax", ".any(", "bool")


def floor_of(program: Program) -> float:
    """The bound of the smallest dtype inside: a graph rounds to it between calls where
    an eager derivative, one kernel, does not."""
    text = program.text() + str(program.inputs)
    if program.rounds():
        return BOUNDS[taeda.bfloat16]
    return BOUNDS[taeda.float32] if any(name in text for name in NARROW) else 0.0


def distance(ours: object, theirs: object, floor: float = 0) -> float:
    """The largest difference in units of the dtype's bound; inf for all else."""
    if theirs is Stale and not isinstance(ours, type):
        return 0.0
    if isinstance(ours, type) or isinstance(theirs, type):
        return 0.0 if ours is theirs else float("inf")
    pairs = zip(ours, theirs, strict=True)
    return max((_apart(a, b, floor) for a, b in pairs), default=0.0)


def _apart(a: object, b: object, floor: float) -> float:
    if not taeda.is_tensor(a) or not taeda.is_tensor(b):
        return 0.0 if type(a) is type(b) and a == b else float("inf")
    same = a.shape == b.shape and a.dtype == b.dtype
    if not same or a.requires_grad != b.requires_grad:
        return float("inf")
    a, b = a.detach(), b.detach()
    if not a.is_floating_point():
        return 0.0 if a.equal(b) else float("inf")
    bound = max(BOUNDS[a.dtype], floor)
    a, b = a.double(), b.double()
    finite = a.isfinite()
    if not finite.equal(b.isfinite()):
        return float("inf")
    if not a[~finite].nan_to_num(7).equal(b[~finite].nan_to_num(7)):
        return float("inf")
    a, b = a[finite], b[finite]
    if a.numel() == 0:
        return 0.0
    scale = max(float(b.abs().max()), 1.0)
    return float((a - b).abs().max()) / scale / bound


def moved(inputs: list[object], source: random.Random) -> list[object]:
    """Inputs whose floating-point elements are changed in their last places."""

    def one(x: object) -> object:
        if not taeda.is_tensor(x) or not x.is_floating_point():
            return x
        step = 4 * taeda.finfo(x.dtype).eps * source.choice((-1, 1))
        return (x.detach() * (1 + step)).requires_grad_(x.requires_grad)

    return [one(x) for x in inputs]


def is_unstable(
    program: Program, function, inside: bool, longer: int, source: random.Random
) -> bool:
    """Whether the program's own results jump under small changes of its inputs."""
    seed = program.seed
    expected = outcome(function, program.make_inputs(longer), seed, inside)
    for _ in range(4):
        inputs = moved(program.make_inputs(longer), source)
        if distance(outcome(function, inputs, seed, inside), expected) > 1:
            return True
    return False


@contextlib.contextmanager
def rounded():
    """Inside, what is compiled rounds 16-bit results; nothing of it is kept."""
    with config.patch(emulate_precision_casts=True):
        taeda.compiler.reset()
        yield
    taeda.compiler.reset()


def backward_compiled(dynamic: bool | None):
    """A context in which backward passes are compiled."""
    return compiled_autograd._enable(None, dynamic=bool(dynamic))


LENGTHS = (0, 0, 2, 5)


def attempt(source: random.Random) -> bool | str:
    """One program; False where it is unstable and told nothing."""
    program = Grower(source).grow(source.randrange(2, 14))
    function = program.function()
    options = {} if BACKEND is None else {"backend": BACKEND}
    if BLOCKING:
        options["options"] = {"blocking": True}
    dynamic = source.choice((None, None, True, False))
    mode = source.choice(("forward", "inside", "both", "backward"))
    inside = mode == "inside"
    if inside:
        function = with_pass(function, program.seed)
    compiled = taeda.compile(function, dynamic=dynamic, **options)
    if mode == "backward":
        compiled = function
    around = contextlib.nullcontext
    if mode in ("both", "backward"):
        around = functools.partial(backward_compiled, dynamic)

    def found_with(longer: int) -> object:
        with around():
            inputs = program.make_inputs(longer)
            return outcome(compiled, inputs, program.seed, inside)

    result: bool | str = True
    for turn, longer in enumerate(LENGTHS):
        inputs = program.make_inputs(longer)
        expected = outcome(function, inputs, program.seed, inside)
        found = found_with(longer)
        if distance(found, expected, floor_of(program)) <= 1:
            continue
        if is_unstable(program, function, inside, longer, source):
            result = result if isinstance(result, str) else False
            continue
        with rounded():
            again = [found_with(each) for each in LENGTHS[: turn + 1]][-1]
        if program.rounds() and distance(again, expected, floor_of(program)) <= 1:
            result = "a graph leaves out roundings to 16 bits"
            continue
        print(f"{program.text()}inputs {program.inputs}, {longer} longer")
        print(f"{mode}, dynamic={dynamic}\nfound {found}\nexpected {expected}")
        raise AssertionError("the compiled program gives something else")
    return result


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    raise SystemExit(main("fuzz_compile", attempt))
