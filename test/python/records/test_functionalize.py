"""What every record that writes or views does, it does under functionalize.

Calls of all records are made in place on a nested view of a base, with `out=` on such
a view, and on views that are written to afterwards: once as they are, once
functionalized. Results, what the base became, its strides and the errors are the
same. A mode below the level sees no operator that writes, but for the copies to inputs
at the end.
"""

from __future__ import annotations

from collections import Counter

import pytest
import taeda
from all_calls import OVERLOADS, all_calls, is_steady, overload_of, tensors_in
from taeda import _C
from taeda.func import functionalize
from taeda.utils._python_dispatch import TorchDispatchMode

from tools.codegen.record_types import View

REMOVE = ("mutations", "mutations_and_views")
# What the loops have to reach at least: calls that agree, of so many overloads.
IN_PLACE, OUT, VIEWS = (670, 110), (3800, 300), (90, 14)


class Writes(TorchDispatchMode):
    """Operators whose schema writes, and those that compute afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.after: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(
            a.alias_info is not None and a.alias_info.is_write
            for a in func._schema.arguments
        ):
            self.seen.append(str(func))
        elif self.seen and not func.is_view:
            self.after.add(str(func))
        return func(*args, **(kwargs or {}))


def nested_view(base: taeda.Tensor) -> taeda.Tensor:
    """A view of views: the middle of a base, its dims in reverse order."""
    middle = base.select(0, 1)
    return middle.permute(tuple(reversed(range(middle.dim()))))


def base_for(t: taeda.Tensor) -> taeda.Tensor:
    """A base whose nested view has the shape of `t`, and its elements."""
    base = taeda.zeros(3, *reversed(t.shape), dtype=t.dtype)
    nested_view(base).copy_(t)
    return base


def facts(t: taeda.Tensor) -> tuple:
    return tuple(t.shape), t.dtype, t.stride() if t.numel() else ()


def outcome(function, base: taeda.Tensor) -> list | Exception:
    """The results with the base after the call, or the error."""
    base = base.clone()
    taeda.manual_seed(0)
    try:
        results = function(base)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return error
    return [*tensors_in(results), base]


def equal(a: taeda.Tensor, b: taeda.Tensor) -> bool:
    """Bit for bit, but that NaN is NaN."""
    if a.is_complex():
        a, b = (taeda.view_as_real(t.resolve_conj()) for t in (a, b))
    if a.dtype == taeda.uint64:  # which only stores
        a, b = a.view(taeda.int64), b.view(taeda.int64)
    return bool(((a == b) | ((a != a) & (b != b))).all())


def brief(results: list | Exception) -> str:
    if isinstance(results, Exception):
        return repr(results)
    return " ".join(f"{facts(t)} {float(t.abs().sum())}" for t in results)


def same(
    wanted: list | Exception, found: list | Exception, remove: str, made: tuple
) -> bool:
    if isinstance(wanted, Exception) or isinstance(found, Exception):
        return type(wanted) is type(found)
    # Copies of views have strides of their own.
    keeps = remove == "mutations"
    return len(wanted) == len(found) and all(
        (facts(f) in (facts(w), made) if keeps else facts(w)[:2] == facts(f)[:2])
        and equal(w, f)
        for w, f in zip(wanted, found, strict=True)
    )


def compare(
    name: str, function, base: taeda.Tensor, seen: Counter, made: tuple = ()
) -> list[str]:
    """What differs; a tensor without elements may get the facts of `made`.

    An `out` that is resized may have strides of its own (`cholesky`); functionalized,
    it is the functional result, in PyTorch too.
    """
    wrong = []
    wanted = outcome(function, base)
    for remove in REMOVE:
        with Writes() as below:
            found = outcome(functionalize(function, remove=remove), base)
        # Copies to the input come last; results may be views of it.
        writes = {*below.seen} - {"aten.copy_.default", "aten.resize_.default"}
        late = below.after <= {"aten.clone.default"}
        if not same(wanted, found, remove, made):
            wrong.append(f"{name} ({remove}): {brief(wanted)} became {brief(found)}")
        elif not isinstance(wanted, Exception) and (writes or not late):
            wrong.append(f"{name} ({remove}): {below.seen}, then {below.after}")
        elif not isinstance(wanted, Exception):
            seen[name] += 1
    return wrong


def report(what: str, seen: Counter, wrong: list[str], least: tuple[int, int]) -> None:
    print(f"{what}: {sum(seen.values())} calls of {len(seen)} overloads")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(map(str, wrong[:20]))
    assert (sum(seen.values()), len(seen)) >= least
    assert len(seen) >= least[1]


def in_place_form(name: str) -> object | None:
    """The overload in place of a functional one, derived or written."""
    schema = OVERLOADS[name].schema
    packet = getattr(taeda.ops.aten, f"{schema.base}_", None)
    if packet is None or not schema.arguments[0].type.is_tensor:
        return None
    try:
        return getattr(packet, schema.overload or "default")
    except AttributeError:
        return None


def test_in_place_on_a_view() -> None:
    seen, wrong = Counter(), []
    for name, calls in sorted(all_calls().items()):
        overload = in_place_form(name)
        if overload is None:
            continue
        for values in calls:
            first, *rest = values.values()
            if not isinstance(first, taeda.Tensor) or first.is_conj():
                continue

            def change(base, rest=rest, overload=overload):
                view = nested_view(base)
                before = base.flatten()[:2] + 0
                names = [a.name for a in overload._schema.arguments[1:]]
                out = overload(view, **dict(zip(names, rest, strict=False)))
                return out, view, before, base.sum(), nested_view(base)

            wrong += compare(str(overload), change, base_for(first), seen)
    report("in place on a view", seen, wrong, IN_PLACE)


def test_out_of_a_view() -> None:
    seen, wrong = Counter(), []
    for name, calls in sorted(all_calls().items()):
        overload = OVERLOADS[name]
        if "out" not in overload.derived:
            continue
        schema = overload.derived["out"]
        form = overload_of(schema)
        for values in calls:
            results = [*tensors_in(overload_of(overload.schema)(**values))]
            if len(results) != 1 or len(schema.out_args) != 1:
                continue
            names = [a.name for a in schema.arguments if a.name in values]
            given = {name: values[name] for name in names}
            out = schema.out_args[0].name

            def into_view(base, given=given, form=form, out=out):
                view = nested_view(base)
                return form(**given, **{out: view}), base * 1

            def into_nothing(base, given=given, form=form, out=out):
                empty = base.new_empty(0)
                return form(**given, **{out: empty}), empty

            base = base_for(results[0])
            wrong += compare(str(form), into_view, base, seen)
            made = facts(results[0])
            wrong += compare(str(form), into_nothing, base, seen, made)
    report("out=", seen, wrong, OUT)


def test_views_that_are_written_to() -> None:
    seen, wrong = Counter(), []
    for name, calls in sorted(all_calls().items()):
        schema = OVERLOADS[name].schema
        if not (isinstance(OVERLOADS[name].body, View) or schema.is_view):
            continue
        overload = overload_of(schema)
        for values in calls:
            first, *rest = values.values()
            if not isinstance(first, taeda.Tensor) or "lift" in name:
                continue
            if first.is_conj() or first.is_neg():
                continue
            shown = [*tensors_in(overload(first, *rest))]
            if sum(t.numel() for t in shown) > first.numel():
                continue  # elements that are seen twice: what a write makes is open

            def write(base, rest=rest, overload=overload):
                again = overload(base, *rest)
                for view in [*tensors_in(overload(base, *rest))]:
                    view.mul_(2)
                    if view.dim() > 0 and view.shape[0] > 0:
                        view[0].fill_(1)
                return again, base * 1

            wrong += compare(name, write, first, seen)
    report("views", seen, wrong, VIEWS)


def test_random_numbers_are_the_same() -> None:
    calls = {
        "uniform_": (),
        "normal_": (),
        "exponential_": (),
        "geometric_": (0.5,),
        "cauchy_": (),
        "log_normal_": (),
        "random_": (),
        "bernoulli_": (0.3,),
    }
    seen, wrong = Counter(), []
    for name, args in calls.items():

        def draw(base, name=name, args=args):
            view = nested_view(base)
            getattr(view, name)(*args)
            return view + 0

        wrong += compare(name, draw, taeda.zeros(3, 4, 2), seen)

    def by_tensor(base):
        return nested_view(base).bernoulli_(taeda.full((2, 4), 0.5))

    wrong += compare("bernoulli_.Tensor", by_tensor, taeda.zeros(3, 4, 2), seen)
    report("random numbers", seen, wrong, (18, 9))


GEOMETRY = {"as_strided_", "detach_", "resize_", "resize_as_", "set_", "squeeze_"} | {
    "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"
}  # fmt: skip


def test_every_operator_that_writes_has_a_functional_form() -> None:
    taeda.func.functionalize(lambda: None)()
    missing, found = [], 0
    for name, overload, text in _C._op_schemas():
        if "::" in name or "!" not in text or name in GEOMETRY:
            continue
        record = getattr(getattr(taeda.ops.aten, name), overload or "default").record
        if record.family in ("composite", "foreach"):
            continue
        found += 1
        if _C._functorch.functional_form(name, overload) is None:
            missing.append(f"{name}.{overload}: {text}")
    print(f"functional forms: {found - len(missing)} of {found}")
    assert not missing, "\n".join(missing)
    assert found >= 500


@pytest.mark.parametrize("remove", REMOVE)
def test_steady_calls_without_writes_are_what_they_were(remove: str) -> None:
    cells = 0
    for name, calls in sorted(all_calls().items()):
        if not is_steady(OVERLOADS[name]) or OVERLOADS[name].schema.is_view:
            continue
        for values in calls[:1]:
            overload = overload_of(OVERLOADS[name].schema)
            call = lambda v, overload=overload: overload(**v)
            wanted = [*tensors_in(call(values))]
            found = [*tensors_in(functionalize(call, remove=remove)(values))]
            assert len(wanted) == len(found), name
            for w, f in zip(wanted, found, strict=True):
                assert facts(w)[:2] == facts(f)[:2], name
                assert equal(w, f), name
            cells += 1
    print(f"calls without writes ({remove}): {cells}")
    assert cells >= 420
