"""Every kernel's `axes:`: calls as one batch, and one call in parts, give the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from axes_cells import Cell, assert_same, check, fresh, function_of, subsets
from axes_law import MASK, Unbound, results_of
from own_calls import own_calls
from recorded import bind_values, record
from split_law import Split
from twins import twin_calls

from tools.codegen.axes import parse_axes
from tools.codegen.records import Kernel, Overload, load_records
from tools.codegen.yaml_fields import Text

ROOT = Path(__file__).resolve().parents[3]
KERNELS = {
    o.schema.name: o
    for r in load_records(ROOT / "aten" / "ops")
    for o in r.overloads
    if isinstance(o.body, Kernel)
}
NAMED = {name: o for name, o in KERNELS.items() if not o.body.axes.opaque}
MOST_OPAQUE = 123
# Overloads that no call reaches, and why not.
UNREACHED: dict[str, str] = {}
# Overloads that refuse some of the calls that PyTorch's take, and why.
REFUSED = {
    "_cdist_forward": "cdist broadcasts before it calls the kernel",
    "_cdist_backward": "cdist broadcasts before it calls the kernel",
}

Calls = dict[str, list[dict]]


def has_cells(overload: Overload) -> bool:
    """Whether there is a tensor or a list of sizes for a batch."""
    axes = overload.body.axes
    return bool(axes.inputs or axes.places(overload.schema))


@pytest.fixture(scope="module")
def recorded() -> Calls:
    """Values of the arguments of some calls of every overload."""
    schemas = {name: o.schema for name, o in NAMED.items()}
    found = record(schemas)
    for name, *values in own_calls():
        if name not in schemas and name in KERNELS:
            continue  # opaque
        names = (a.name for a in schemas[name].arguments)
        own = bind_values(schemas[name], ((), dict(zip(names, values, strict=False))))
        found.setdefault(name, []).append(own)
    twins = {n: twin_calls(s, schemas, found) for n, s in schemas.items()}
    found |= {n: twin for n, twin in twins.items() if n not in found and twin}
    return {
        name: [c for call in known for c in masked(call) if regular(NAMED[name], c)]
        for name, known in found.items()
    }


@pytest.fixture(scope="module")
def calls(recorded: Calls) -> Calls:
    """Those that the overloads take."""
    return recorded | {
        name: [call for call in recorded[name] if works(name, call)] for name in REFUSED
    }


def works(name: str, call: dict) -> bool:
    schema = NAMED[name].schema
    try:
        function_of(schema)(**fresh(schema, call))
    except RuntimeError:
        return False
    return True


def masked(call: dict) -> list[dict]:
    """The call, and where a mask says which results are wanted, for each alone."""
    mask = call.get(MASK) or []
    wanted = [i for i, on in enumerate(mask) if on]
    single = [[i == only for i in range(len(mask))] for only in wanted]
    return [call, *(call | {MASK: alone} for alone in single)]


def regular(overload: Overload, call: dict) -> bool:
    """What no pattern describes: scattering takes an empty index of any rank, and
    what is not unpacked is an empty vector.
    """
    if call.get("unpack_data") is False or call.get("unpack_pivots") is False:
        return False
    arguments = zip(overload.schema.tensor_args, overload.body.axes.inputs, strict=True)
    along = [call[a.name] for a, p in arguments if p.find("@dim") and not p.is_list]
    ranks = {t.dim() for t in along}
    return len(ranks) < 2 or all(t.numel() for t in along)


def has_values(overload: Overload) -> bool:
    """Whether two calls of it give the same values."""
    return (
        "nondeterministic_seeded" not in overload.tags
        and "empty" not in overload.schema.base
    )


def told(name: str, what: object, error: Exception) -> str:
    text = str(error)[:300]
    return f"{name} ({NAMED[name].body.axes}) {what}: {type(error).__name__}: {text}"


def run(cells: list[tuple[str, object, Callable]], most: str) -> Counter:
    """Runs all cells; how many of each overload were executed, or all failures."""
    done: Counter[str] = Counter()
    failures = []
    for name, what, cell in cells:
        try:
            done[name] += cell()
        except (AssertionError, RuntimeError, ValueError, TypeError) as error:
            failures.append(told(name, what, error))
        except (IndexError, KeyError, NotImplementedError) as error:
            failures.append(told(name, what, error))
    executed = +done
    print(f"{most}: {executed.total()} cells of {len(executed)} overloads")
    assert not failures, "\n".join(failures)
    return executed


def test_every_overload_is_reached(calls: Calls) -> None:
    wanted = {name for name, overload in NAMED.items() if has_cells(overload)}
    assert sorted(wanted - calls.keys()) == sorted(UNREACHED)


def test_refusals_are_needed(recorded: Calls, calls: Calls) -> None:
    assert all(len(calls[name]) < len(recorded[name]) for name in REFUSED)


def test_few_are_opaque() -> None:
    assert len(KERNELS) - len(NAMED) <= MOST_OPAQUE


def in_one(overload: Overload, call: dict, batched: frozenset[str]) -> bool:
    return check(Cell(overload, call, batched), has_values(overload))


def test_calls_are_one_batch(calls: Calls) -> None:
    cells = [
        (name, sorted(batched), partial(in_one, NAMED[name], call, batched))
        for name, known in calls.items()
        for call in known
        for batched in subsets(NAMED[name], call)
    ]
    executed = run(cells, "batch")
    wanted = {name for name in calls if has_cells(NAMED[name])}
    assert sorted(wanted - executed.keys()) == []
    assert executed.total() > 3600 and len(executed) >= 259


def in_parts(overload: Overload, call: dict, place: tuple[str, int]) -> bool:
    schema, function = overload.schema, function_of(overload.schema)
    values = fresh(schema, call)
    want = results_of(schema, function(**values), values)
    split = Split(overload.body.axes, schema, fresh(schema, call))
    for have, right in zip(split.calls(function, place), want, strict=True):
        assert_same(have, right, has_values(overload))
    return True


def test_a_call_is_its_parts(calls: Calls) -> None:
    cells = [
        (name, place, partial(in_parts, NAMED[name], call, place))
        for name, known in calls.items()
        for call in known
        for place in Split(NAMED[name].body.axes, NAMED[name].schema, call).places()
    ]
    executed = run(cells, "split")
    assert executed.total() > 1180 and len(executed) >= 211


# Axes that promise too much or say something else, each of them refuted by a law.
WRONG = [
    ("cumsum", "* -> *"),
    ("sort", "* -> *, *"),
    ("gather", "* @dim, * @dim -> * @dim"),
    ("stack", "[*] -> *"),
    ("mm", "n^ k, k m^ -> m^ n^"),
    ("bmm", "b^ n k, b^ k m -> b^ m n"),
    ("convolution", "n i^ *!, o! i^ *!, o! -> n o! *!"),
    ("native_batch_norm", "n^ c *!, c, c, c, c -> n^ c *!, c, c"),
    ("native_layer_norm", "*, *, * -> *, *, *"),
    ("native_group_norm", "n^ c! *!, c!, c! -> n^ c! *!, n^ g!, n^ g!"),
    ("max_pool2d_with_indices", "n?^ c h w -> n?^ c h w, n?^ c h w"),
    ("upsample_nearest2d", "n^ c h w -> n^ c h w"),
    ("upsample_nearest2d_backward", "n^ c h! w! -> n^ c h! w!"),
    ("linalg_inv", "* -> *"),
    ("isin.Tensor_Tensor", "*, * -> *"),
    ("select_backward", "* -> * @dim!"),
    ("constant_pad_nd", "* -> *"),
]


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_wrong_axes_are_refuted(calls: Calls, name: str, text: str) -> None:
    body = replace(NAMED[name].body, axes=parse_axes(Text(text)))
    wrong = replace(NAMED[name], body=body)
    attempts = [
        *(
            partial(in_one, wrong, call, batched)
            for call in calls[name]
            for batched in subsets(wrong, call)
        ),
        *(
            partial(in_parts, wrong, call, place)
            for call in calls[name]
            for place in Split(body.axes, wrong.schema, call).places()
        ),
    ]
    assert any(map(is_refuted, attempts))


def is_refuted(attempt: Callable) -> bool:
    """Whether the values differ, or the operator refuses what the axes made of it."""
    try:
        attempt()
    except (AssertionError, RuntimeError, IndexError, Unbound):
        return True
    return False
