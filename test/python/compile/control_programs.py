"""Programs on the compiler's controls, for either library; each tells what happened.

`python control_programs.py torch` prints what each returns under PyTorch, as JSON: its
compiler wants the frame hook of a whole process for itself.
"""

from __future__ import annotations

import json
import sys
import threading


class Backend:
    """Counts graphs and runs them as captured."""

    def __init__(self) -> None:
        self.modules, self.runs = [], 0

    def __call__(self, gm, inputs):
        self.modules.append(gm)

        def run(*args):
            self.runs += 1
            return gm.forward(*args)

        return run

    @property
    def counts(self) -> list[int]:
        return [len(self.modules), self.runs]


def error(function, *args) -> str:
    """The class of what a call raises."""
    try:
        function(*args)
    except Exception as raised:
        return type(raised).__name__
    return "nothing"


def with_length(x, s):
    return x + len(s)


def broken(T):
    def fn(x):
        x = x + 1
        T._dynamo.graph_break()
        return x * 2

    return fn


def is_compiling_tells_captured_code(T):
    b = Backend()

    def fn(x):
        return x + 10 if T.compiler.is_compiling() else x

    def after_break(x):
        y = fn(x)
        T._dynamo.graph_break()
        return y + fn(x)

    x = T.ones(1)
    results = [T.compile(f, backend=b)(x).tolist() for f in (fn, after_break)]
    return results, fn(x).tolist(), T.compiler.is_dynamo_compiling(), b.counts


def disabled_functions(T):
    b, seen = Backend(), []

    @T.compiler.disable
    def helper(x):
        seen.append(T.compiler.is_compiling())
        return inner(x) + 1

    inner = T.compile(lambda x: x * 3, backend=b)
    out = T.compile(lambda x: helper(x * 2) * 2, backend=b)(T.ones(2))
    refused = error(
        T.compile(lambda x: helper(x) + 1, backend=b, fullgraph=True), T.ones(2)
    )
    return out.tolist(), seen, b.counts, refused, helper.__name__


def disabled_forms(T):
    b = Backend()
    compiled = T.compile(lambda x: x + 1, backend=b)
    T.compiler.disable(compiled)(T.ones(1))
    none = b.counts
    # What is compiled is the function that was disabled.
    T.compile(T.compiler.disable(lambda x: x + 1), backend=b)(T.ones(1))
    module = T.compiler.disable(T.nn.Linear(2, 2))
    return none, b.counts, list(module.state_dict()), type(module).__name__


def disabled_method(T):
    b = Backend()

    class Net:
        k = 3

        @T.compiler.disable(reason="it prints")
        def show(self, x):
            return x * self.k

        def run(self, x):
            return self.show(x + 1) + 1

    net = Net()
    compiled = T.compile(net.run, backend=b)
    again = T.compile(compiled, backend=b)
    return compiled(T.ones(1)).tolist(), b.counts, again(T.ones(1)).tolist()


def functions_that_graphs_hold(T):
    b = Backend()

    def helper(x):
        return x * 2

    T.compiler.allow_in_graph(helper)
    out = T.compile(lambda x: helper(x) + 1, backend=b)(T.ones(2))
    targets = [n.target is helper for n in b.modules[0].graph.nodes]
    return out.tolist(), sum(targets)


def functions_that_no_graph_holds(T):
    b = Backend()
    T._dynamo.disallow_in_graph(T.sub)
    try:
        fn = T.compile(lambda x: T.sub(x + 1, 1) * 2, backend=b)
        out = fn(T.ones(2)).tolist()
    finally:
        T._dynamo.allow_in_graph(T.sub)
    return out, b.counts


def constant_results(T):
    b, calls = Backend(), []

    @T.compiler.assume_constant_result
    def size(k):
        calls.append(k)
        return k + 1

    compiled = T.compile(lambda x: x + size(2), backend=b)
    return [compiled(T.ones(1)).tolist() for _ in range(3)], calls, b.counts


def substitutes(T):
    b = Backend()

    def original(x):
        return len(str(x))

    @T.compiler.substitute_in_graph(original)
    def other(x):
        return 40

    def refused(polyfill):
        return error(T.compiler.substitute_in_graph(original), polyfill)

    out = T.compile(lambda x: x + original(5), backend=b)(T.ones(1))
    return out.tolist(), original(5), refused(other), refused(lambda a, b: a)


def stances(T):
    b, told = Backend(), []
    compiled = T.compile(with_length, backend=b)
    x = T.ones(1)
    with T.compiler.set_stance("force_eager"):
        told.append([compiled(x, "a").tolist(), b.counts])
    with T.compiler.set_stance("eager_on_recompile"):
        told.append([compiled(x, "a").tolist(), b.counts])
    compiled(x, "a")
    with T.compiler.set_stance("eager_on_recompile"):
        told += [[compiled(x, s).tolist(), b.counts] for s in ("bb", "a")]
    with T.compiler.set_stance("fail_on_recompile"):
        told += [error(compiled, x, "bb"), error(compiled, x, "a")]

    @T.compiler.set_stance("force_eager")
    def plain():
        return compiled(x, "bb").tolist()

    told += [plain(), b.counts, compiled(x, "bb").tolist(), b.counts]
    return told


def recompile_limit(T):
    config, b = T._dynamo.config, Backend()
    compiled = T.compile(with_length, backend=b)
    full = T.compile(lambda x, s: x - len(s), backend=b, fullgraph=True)
    x = T.ones(1)
    with config.patch(recompile_limit=3):
        outs = [compiled(x, "x" * n).tolist() for n in range(6)]
        counted = b.counts
        # What was captured is still used.
        compiled(x, "x")
        errors = [error(full, x, "x" * n) for n in range(5)]
    return outs, counted, b.counts, errors, config.recompile_limit


def settings(T):
    config = T._dynamo.config
    with config.patch({"cache_size_limit": 5}):
        inside = config.recompile_limit

    @config.patch(recompile_limit=2)
    def read():
        return config.recompile_limit

    def write():
        config.no_such_setting = 1

    known = config.recompile_limit, config.cache_size_limit
    return inside, read(), known, error(write), hasattr(config, "no_such_setting")


def error_on_recompile(T):
    b = Backend()
    compiled = T.compile(with_length, backend=b)
    with T._dynamo.config.patch(error_on_recompile=True):
        return error(compiled, T.ones(1), "a"), error(compiled, T.ones(1), "bb")


def errors_of_backends(T):
    def bad(gm, inputs):
        raise ValueError("no")

    def bad_later(gm, inputs):
        def run(*args):
            raise ArithmeticError("at run time")

        return run

    def fn(x):
        return x + 1

    outs = [error(T.compile(fn, backend=b), T.ones(1)) for b in (bad, bad_later)]
    with T._dynamo.config.patch(suppress_errors=True):
        outs.append(T.compile(fn, backend=bad)(T.ones(1)).tolist())
    return outs


def error_on_graph_break(T):
    fn, on = broken(T), T._dynamo.error_on_graph_break
    outs = []
    with on(True):
        outs.append(error(T.compile(fn, backend="eager"), T.ones(1)))
    outs.append(T.compile(fn, backend="eager")(T.ones(1)).tolist())

    def inside(x):
        T._dynamo.graph_break()
        with on(True):
            x = x + 1
            T._dynamo.graph_break()
        return x

    def outside(x):
        with on(True):
            x = x + 1
        T._dynamo.graph_break()
        return x

    @on(True)
    def decorated(x):
        with on(False):
            T._dynamo.graph_break()
        return x + 1

    for f in (inside, outside, decorated):
        outs.append(error(T.compile(f, backend="eager"), T.ones(1)))
    return outs


def explained(T):
    out = T._dynamo.explain(broken(T))(T.ones(1))
    whole = T._dynamo.explain(lambda x: (x.sin() + 1).sum())(T.ones(1))
    stack = out.break_reasons[0].user_stack
    return (
        [out.graph_count, out.graph_break_count, out.op_count, len(out.graphs)],
        [len(ops) for ops in out.ops_per_graph],
        [frame.name.split(".")[-1] for frame in stack],
        "graph_break" in out.break_reasons[0].reason,
        [whole.graph_count, whole.graph_break_count, len(whole.break_reasons)],
        str(out).splitlines()[:3],
    )


def counted(T):
    from importlib import import_module

    counters = import_module(f"{T.__name__}._dynamo.utils").counters
    counters.clear()
    compiled = T.compile(broken(T), backend="eager")
    compiled(T.ones(1))
    compiled(T.ones(1))
    counter = import_module(f"{T.__name__}._dynamo.testing").CompileCounter()
    T.compile(lambda x: x.sin() * 2, backend=counter)(T.ones(2))
    stats = counters["stats"]
    return (
        stats["unique_graphs"],
        stats["calls_captured"],
        sum(counters["graph_break"].values()),
        [counter.frame_count, counter.op_count],
    )


def forgotten(T):
    b = Backend()
    compiled = T.compile(lambda x: x + 1, backend=b)
    compiled(T.ones(2))
    before = b.counts
    T.compiler.reset()
    compiled(T.ones(2))
    return before, b.counts


def forgotten_while_it_runs(T):
    def fn(x, n):
        x = x + 1
        if n:
            helper()
        return x * 2

    @T.compiler.disable
    def helper():
        T._dynamo.reset()

    compiled = T.compile(fn, backend="eager")
    return [compiled(T.ones(1), n).tolist() for n in (0, 1, 0, 1)]


def threads(T):
    b = Backend()
    compiled = T.compile(lambda x, k: (x + k).sin(), backend=b)
    results: dict = {}

    def work(k):
        results[k] = [compiled(T.ones(4), k % 2).tolist() for _ in range(20)][-1]

    all_threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    return [[round(v, 4) for v in results[k]] for k in sorted(results)]


def generators(T):
    def numbers(x):
        for i in range(3):
            yield x + i

    compiled = T.compile(numbers, backend="eager")
    full = T.compile(numbers, backend="eager", fullgraph=True)
    return error(full, T.ones(1)), [t.tolist() for t in compiled(T.ones(1))]


def default_backends(T):
    b = Backend()
    known = [T.compiler.get_default_backend()]
    T.compiler.set_default_backend(b)
    try:
        T.compile(lambda x: x + 1)(T.ones(1))
        known.append(T.compiler.get_default_backend() is b)
    finally:
        T.compiler.set_default_backend(None)
    return known, b.counts, T.compiler.get_default_backend()


PROGRAMS = [
    generators,
    default_backends,
    is_compiling_tells_captured_code,
    disabled_functions,
    disabled_forms,
    disabled_method,
    functions_that_graphs_hold,
    functions_that_no_graph_holds,
    constant_results,
    substitutes,
    stances,
    recompile_limit,
    settings,
    error_on_recompile,
    errors_of_backends,
    error_on_graph_break,
    explained,
    counted,
    forgotten,
    forgotten_while_it_runs,
    threads,
]


def main(name: str) -> None:
    import logging
    from importlib import import_module

    logging.disable(logging.CRITICAL)
    T = import_module(name)
    found = {}
    for program in PROGRAMS:
        T._dynamo.reset()
        try:
            found[program.__name__] = program(T)
        except Exception as raised:
            found[program.__name__] = repr(raised)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
