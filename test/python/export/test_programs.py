"""Exported programs compute at other sizes, after a file, as submodules."""

from __future__ import annotations

import copy
import io
import json
import pathlib
import sys
import zipfile

import pytest
import taeda
from taeda import _higher_order_ops, export
from taeda.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fx"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import models
from both import Library

B, T = export.Dim("b", max=64), export.Dim("t", max=16)
AUTO = export.Dim.AUTO


def ids(*sizes):
    return taeda.arange(taeda.Size(sizes).numel()).reshape(sizes) % 11


def values(*sizes):
    return Library("taeda").values(*sizes)


# Name -> (model, training, dynamic sizes, inputs of some sizes, the first exported).
CASES = {
    "mlp": (models.mlp, True, {0: B}, values, [(3, 4), (1, 4), (64, 4)]),
    "cnn": (models.cnn, False, {0: B}, values, [(3, 3, 4, 4), (7, 3, 4, 4)]),
    "cnn-train": (models.cnn, True, {0: B}, values, [(3, 3, 4, 4), (7, 3, 4, 4)]),
    "residual": (
        *(models.residual, False, {0: B, 2: AUTO, 3: AUTO}, values),
        [(2, 3, 32, 32), (5, 3, 48, 40)],
    ),
    "residual-train": (
        *(models.residual, True, {0: B}, values),
        [(2, 3, 32, 32), (5, 3, 32, 32)],
    ),
    "gpt": (models.gpt, True, {0: B, 1: T}, ids, [(2, 5), (7, 16), (1, 9)]),
    "masked": (models.masked, True, {0: B, 1: T}, values, [(2, 5, 4), (3, 16, 4)]),
    "recurrent": (models.recurrent, True, {0: B, 1: T}, values, [(3, 5, 3), (4, 9, 3)]),
    "encoder": (models.encoder, True, {0: B, 1: T}, values, [(3, 5, 8), (4, 9, 8)]),
}


@pytest.fixture(scope="module")
def programs() -> dict:
    return {}


def program_of(name: str, programs: dict):
    """The model, its program and inputs of several sizes."""
    if name not in programs:
        make, train, shape, fill, sizes = CASES[name]
        net = make(Library("taeda")).train(train)
        inputs = [fill(*s) for s in sizes]
        ep = export.export(
            copy.deepcopy(net), (inputs[0],), dynamic_shapes=({**shape},)
        )
        programs[name] = net, ep, inputs
    return programs[name]


def agree(net, module, inputs) -> None:
    """The module computes and changes what a copy of the net does."""
    net = copy.deepcopy(net)
    for x in inputs:
        taeda.testing.assert_close(module(x), net(x), rtol=1e-4, atol=1e-5)
    buffers = dict(net.named_buffers())
    for name, value in module.named_buffers():
        if name in buffers:
            taeda.testing.assert_close(value, buffers[name], rtol=1e-4, atol=1e-5)


def saved(ep) -> io.BytesIO:
    file = io.BytesIO()
    export.save(ep, file)
    file.seek(0)
    return file


def as_it_was(net, ep):
    """The program with the buffers that the net has."""
    before = dict(net.named_buffers(remove_duplicate=False))
    with taeda.no_grad():
        for name, buffer in ep.named_buffers():
            buffer.copy_(before[name])
    return ep


@pytest.mark.parametrize("name", CASES)
def test_other_sizes(name: str, programs) -> None:
    net, ep, inputs = program_of(name, programs)
    agree(net, as_it_was(net, ep).module(), inputs)


@pytest.mark.parametrize("name", CASES)
def test_core_operators(name: str, programs) -> None:
    net, ep, inputs = program_of(name, programs)
    core = as_it_was(net, ep).run_decompositions()
    written = [
        n for n in core.graph.nodes if n.op == "call_function" and n.is_impure(False)
    ]
    assert not written and core.dialect == "ATEN"
    agree(net, core.module(), inputs)


@pytest.mark.parametrize("name", CASES)
def test_submodules(name: str, programs) -> None:
    net, ep, inputs = program_of(name, programs)
    module = export.unflatten(as_it_was(net, ep))
    called = {path for path, _ in module.named_modules()}
    assert {path for path, _ in net.named_children()} & called
    agree(net, module, inputs)


@pytest.mark.parametrize("name", CASES)
def test_files(name: str, programs) -> None:
    net, ep, inputs = program_of(name, programs)
    for program in (ep, ep.run_decompositions()):
        loaded = export.load(saved(as_it_was(net, program)))
        assert str(loaded) == str(program)
        agree(net, loaded.module(), inputs)
        assert taeda.equal(loaded.example_inputs[0][0], inputs[0])


def test_gradients_reach_the_parameters(programs) -> None:
    net, ep, (x, *_) = program_of("mlp", programs)
    net = copy.deepcopy(net)
    ep.module()(x)[:, 0].sum().backward()
    net(x)[:, 0].sum().backward()
    for ours, theirs in zip(ep.parameters(), net.parameters(), strict=True):
        taeda.testing.assert_close(ours.grad, theirs.grad)
        ours.grad = None


class Branch(taeda.nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


class Counted(taeda.nn.Module):
    """Numbers out of tensors."""

    def forward(self, x, c):
        n = c.item()
        taeda._check(n >= 2)
        taeda._check(n <= 5)
        return x.new_zeros(n), x * n, x.nonzero(), x * x.sum().item()


def test_numbers_of_tensors() -> None:
    args = (values(4), taeda.tensor(3))
    shapes = ({0: AUTO}, None)
    ep = export.export(Counted(), args, dynamic_shapes=shapes)
    assert str(ep.range_constraints) == "{s0: VR[2, int_oo], u0: VR[2, 5], " + (
        "u1: VR[0, int_oo], zuf0: VR[-oo, oo]}"
    )
    given = (values(7), taeda.tensor(5))
    for program in (ep, ep.run_decompositions(), export.load(saved(ep))):
        taeda.testing.assert_close(program.module()(*given), Counted()(*given))
        with pytest.raises(RuntimeError, match="Runtime assertion failed .* u0 <= 5"):
            program.module()(values(7), taeda.tensor(6))


def test_symbolic_numbers_as_arguments() -> None:
    class Scaled(taeda.nn.Module):
        def forward(self, x, n):
            size = x.shape[0]
            return x * size, x / size**0.5, x + n, x[: size - 1], n + size

    args = (values(4, 2), 3)
    ep = export.export(Scaled(), args, dynamic_shapes=({0: AUTO}, AUTO))
    assert ep.graph_signature.user_inputs == ("x", "n")
    for program in (ep, ep.run_decompositions()):
        given = (values(6, 2), 5)
        taeda.testing.assert_close(program.module()(*given), Scaled()(*given))


def test_branches_on_data_are_refused_with_their_line() -> None:
    from taeda.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    with pytest.raises(GuardOnDataDependentSymNode) as caught:
        export.export(Branch(), (taeda.ones(3),))
    text = str(caught.value)
    assert "Could not guard on data-dependent expression" in text
    assert "return x + 1 if x.sum() > 0 else x - 1" in text


def test_the_module_is_as_before() -> None:
    class Net(taeda.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", taeda.zeros(2))
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            self.steps += x
            return self.steps

    net = Net()
    steps = net.steps
    export.export(net, (taeda.ones(2),))
    assert net.steps is steps and net.calls == 0 and net.steps.tolist() == [0, 0]
    assert not taeda.compiler.is_exporting()


def net_and_shape(shape):
    return lambda: export.export(
        taeda.nn.Linear(3, 2), (taeda.ones(4, 3),), dynamic_shapes=shape
    )


REFUSED = [
    (
        lambda: export.export(lambda x: x, (taeda.ones(1),)),
        ValueError,
        "Expected `mod`",
    ),
    (lambda: export.export(Branch(), [1]), RuntimeError, "Expecting `args` to be a"),
    (lambda: export.export(Branch(), ()), TypeError, "missing a required argument"),
    (net_and_shape({"y": None}), RuntimeError, r"must be the arg names \['input'\]"),
    (net_and_shape(({0: "b"},)), RuntimeError, "Unexpected dimension mapped to"),
    (net_and_shape(({1: T},)), RuntimeError, r"Constraints violated \(t\)"),
    (net_and_shape(({1: export.Dim.DYNAMIC},)), RuntimeError, "specialized it to be"),
    (net_and_shape(({0: export.Dim("q", max=3)},)), RuntimeError, "4 not in range"),
    (net_and_shape(([B, 4],)), RuntimeError, "Static shape constraint of 4 does not"),
    (net_and_shape((None, None)), RuntimeError, "Detected mismatch between the"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_cannot_be_exported(case: int) -> None:
    call, kind, text = REFUSED[case]
    with pytest.raises(kind, match=text):
        call()


def test_calls_that_do_not_fit() -> None:
    ep = export.export(taeda.nn.Linear(3, 2), (taeda.ones(4, 3),))
    module = ep.module()
    for args, kind, text in (
        (
            (taeda.ones(5, 3),),
            AssertionError,
            r"Guard failed: input.size\(\)\[0\] == 4",
        ),
        (([taeda.ones(4, 3)],), ValueError, "Trying to flatten user inputs"),
        ((), ValueError, "Trying to flatten user inputs"),
    ):
        with pytest.raises(kind, match=text):
            module(*args)
    with pytest.raises(ValueError, match="kwarg keyword mismatch"):
        module(taeda.ones(4, 3), z=1)
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        ep(taeda.ones(4, 3))
    with pytest.raises(NotImplementedError, match="eval"):
        module.eval()
    assert ep.module(check_guards=False)(taeda.ones(5, 3)).shape == (5, 2)


def rewritten(file: io.BytesIO, change) -> io.BytesIO:
    """The archive with another graph."""
    made = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("model.json"):
                data = json.loads(content)
                change(data)
                content = json.dumps(data).encode()
            new.writestr(name, content)
    made.seek(0)
    return made


def test_files_that_are_no_programs() -> None:
    ep = export.export(taeda.nn.Linear(3, 2), (taeda.ones(4, 3),))

    def target(*path):
        def change(data):
            call = next(n for n in data["nodes"] if n["kind"] == "call_function")
            call["target"] = list(path)

        return change

    for path in (
        ("op", "aten", "__init__", "__globals__"),
        ("op", "aten", "no_such", "default"),
        ("function", "os.system"),
    ):
        with pytest.raises(ValueError, match="there is no function"):
            export.load(rewritten(saved(ep), target(*path)))
    with pytest.raises(ValueError, match="version"):
        export.load(rewritten(saved(ep), lambda data: data.update(version=99)))
    with pytest.raises(ValueError, match="guard"):
        loaded = export.load(
            rewritten(
                saved(ep),
                lambda data: data.update(guards=["__import__('os').getpid()"]),
            )
        )
        loaded.module()(taeda.ones(4, 3))
    with pytest.raises(zipfile.BadZipFile):
        export.load(io.BytesIO(b"no archive"))
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram'"):
        export.save(taeda.nn.Linear(1, 1), io.BytesIO())


def test_files_beside_the_program(tmp_path) -> None:
    ep = export.export(taeda.nn.Linear(3, 2), (taeda.ones(4, 3),))
    path = tmp_path / "net.pt2"
    export.save(ep, path, extra_files={"notes.txt": "hello"})
    notes = {"notes.txt": ""}
    export.load(path, extra_files=notes)
    assert notes == {"notes.txt": "hello"}


def test_strict_captures_the_bytecode_first(programs) -> None:
    from taeda._dynamo.exc import Unsupported

    class Answer(taeda.nn.Module):
        def forward(self, x):
            taeda._dynamo.graph_break()
            return x + 1

    for net in (Branch(), Answer()):
        with pytest.raises(Unsupported):
            export.export(net, (taeda.ones(3),), strict=True)
    net, ep, inputs = program_of("mlp", programs)
    strict = export.export(net, (inputs[0],), strict=True, dynamic_shapes=({0: B},))
    assert str(strict.graph) == str(ep.graph)
    export.export(Answer(), (taeda.ones(3),))


class Chosen(taeda.nn.Module):
    """Branches within branches, by values."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = taeda.nn.Linear(3, 3)

    def forward(self, x, y):
        def outer(a):
            return taeda.cond(
                a.mean() > 1,
                lambda b: (self.lin(b) + y, b.shape[0] * b),
                lambda b: (b - y, b),
                (a,),
            )

        return taeda.cond(x.sum() > 0, outer, lambda a: (a.cos(), a * y), (x,))


def test_branches_are_graphs() -> None:
    net, size = Chosen(), export.Dim("size")
    args = (taeda.ones(4, 3), values(4, 3))
    ep = export.export(net, args, dynamic_shapes=({0: size}, {0: size}))
    calls = [str(n.target) for n in ep.graph.nodes if n.op == "call_function"]
    assert calls[-3:] == ["cond", *["<built-in function getitem>"] * 2]
    programs = [ep, ep.run_decompositions(), export.load(saved(ep))]
    modules = [p.module() for p in programs] + [export.unflatten(ep)]
    for factor in (1.0, 2.0, -1.0):
        given = (taeda.ones(6, 3) * factor, values(6, 3))
        for module in modules:
            taeda.testing.assert_close(module(*given), net(*given))


def test_branches_that_give_numbers() -> None:
    class Numbers(taeda.nn.Module):
        def forward(self, x):
            y, n, same = taeda.cond(
                x.sum() > 0, lambda a: (a.sin(), 3, 2), lambda a: (a.cos(), 5, 2), (x,)
            )
            return y * n + same

    net, x = Numbers(), taeda.ones(4, 3)
    ep = export.export(net, (x,))
    (bounds,) = ep.range_constraints.values()
    assert (bounds.lower, bounds.upper) == (3, 5)
    programs = [ep, ep.run_decompositions(), export.load(saved(ep))]
    for module in [p.module() for p in programs] + [export.unflatten(ep)]:
        for given in (x, -x):
            taeda.testing.assert_close(module(given), net(given))


def test_branches_that_differ_are_refused() -> None:
    class Differ(taeda.nn.Module):
        def forward(self, x):
            return taeda.cond(x.sum() > 0, lambda a: a[:1], lambda a: a, (x,))

    with pytest.raises(RuntimeError, match="same shapes and dtypes"):
        export.export(Differ(), (taeda.ones(3),))
    assert Differ()(taeda.ones(3)).shape == (1,)


def test_copies_of_programs(programs) -> None:
    net, ep, inputs = program_of("gpt", programs)
    twin = copy.deepcopy(ep)
    assert str(twin) == str(ep)
    assert next(twin.parameters()) is not next(ep.parameters())
    agree(net, copy.deepcopy(ep.module()), inputs)


SIZED = {
    "dtypes": lambda x: (x.double(), x.long() + 1, x.to(taeda.float16).float()),
    "indices": lambda x: (x[taeda.arange(x.shape[0] - 1)], x[x > 0], x[:, x[0] > 0]),
    "slices": lambda x: (taeda.ones(16, 4)[: x.shape[0]] * x, x[: x.shape[0] // 2]),
    "factories": lambda x: (taeda.linspace(0, 1, x.shape[0]), taeda.eye(x.shape[0])),
    "reductions": lambda x: (x.logsumexp(0), x.max(), x.max(0), x.sum() / x.numel()),
    "products": lambda x: (taeda.outer(x[:, 0], x[0]), x @ x.T, x.mv(x[0])),
    "equations": lambda x: taeda.einsum("ij,kj->ik", x, x),
    "choices": lambda x: (x.gather(0, taeda.zeros_like(x).long()), x.where(x > 0, 0.0)),
    "views": lambda x: (x.view(-1, 2), x.unflatten(1, (2, 2)), x.reshape(-1)),
}


def assigned(x):
    y, z = x.clone(), taeda.zeros(16, 4)
    y[x > 0] = 0
    y[: x.shape[0] // 2] = 3
    y[taeda.arange(2)] += 5
    z[: x.shape[0]] = x
    return y, z


SIZED["assignments"] = assigned


@pytest.mark.parametrize("name", SIZED)
def test_operators_of_dynamic_sizes(name: str) -> None:
    class Net(taeda.nn.Module):
        def forward(self, x):
            return SIZED[name](x)

    x, other = values(5, 4), values(8, 4) * 2
    ep = export.export(Net(), (x,), dynamic_shapes=({0: export.Dim.DYNAMIC},))
    for program in (ep, ep.run_decompositions(), export.load(saved(ep))):
        for given in (x, other):
            taeda.testing.assert_close(program.module()(given), Net()(given))


def test_decompositions_that_need_a_size_are_refused() -> None:
    net = taeda.nn.ReLU()
    ep = export.export(net, (values(4),), dynamic_shapes=({0: AUTO},))
    table = export.default_decompositions()
    table[taeda.ops.aten.relu.default] = lambda x: x.clamp(min=0).view(int(x.shape[0]))
    with pytest.raises(RuntimeError, match="need sizes as they are in the example"):
        ep.run_decompositions(table)


class Plus(taeda.nn.Module):
    def forward(self, x):
        return x + 1


def test_the_root_of_a_derived_dim_has_its_range_in_files_too() -> None:
    root = export.Dim("root", min=2)
    ep = export.export(Plus(), (values(5, 3),), dynamic_shapes=({0: 2 * root + 1},))
    assert str(ep.range_constraints) == "{2*s0 + 1: VR[5, int_oo], s0: VR[2, int_oo]}"
    file = io.BytesIO()
    export.save(ep, file)
    file.seek(0)
    loaded = export.load(file)
    assert str(loaded.range_constraints) == str(ep.range_constraints)
    assert loaded.module()(values(9, 3)).equal(values(9, 3) + 1)


@pytest.mark.parametrize("other", [4.0, 3, "a"])
def test_examples_whose_other_values_differ(other) -> None:
    found = export.AdditionalInputs()
    found.add((other,))
    with pytest.raises(ValueError, match="they cannot be marked as dynamic"):
        found.dynamic_shapes(Plus(), (3.0,))


def test_a_program_of_constants_alone():
    class Constants(taeda.nn.Module):
        def forward(self):
            return taeda.tensor([1, 2]), taeda.tensor([3])

    made = taeda.export.export(Constants(), ()).module()()
    assert [t.tolist() for t in made] == [[1, 2], [3]]


class Chooses(taeda.nn.Module):
    def forward(self, asked, x):
        return taeda.cond(asked, lambda x: x + 1, lambda x: x - 1, (x,))


def test_branches_of_submodules_are_unflattened():
    class Net(taeda.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Chooses()

        def forward(self, asked, x):
            return self.inner(asked, x) * 2

    args = taeda.tensor(False), taeda.ones(2)
    program = taeda.export.export(Net(), args)
    assert taeda.export.unflatten(program)(*args).tolist() == [0.0, 0.0]


class Held(taeda.nn.Module):
    """Has a tensor that is neither parameter nor buffer."""

    def __init__(self, writes: bool):
        super().__init__()
        self.held, self.writes = taeda.ones(2, requires_grad=not writes), writes

    def forward(self, x):
        return x + (self.held.add_(1) if self.writes else self.held)


def test_constants_do_not_train_and_are_not_written():
    args = (taeda.ones(2),)
    assert not taeda.export.export(Held(False), args).module().held.requires_grad
    with pytest.raises(RuntimeError, match="Constant held is mutated"):
        taeda.export.export(Held(True), args).run_decompositions()


class ChoosesBySize(taeda.nn.Module):
    def forward(self, x):
        return taeda.cond(x.shape[0] > 4, lambda x: x + 1, lambda x: x - 1, (x,))


@pytest.mark.parametrize("strict", [False, True])
def test_a_size_may_choose_a_branch(strict: bool):
    sizes = {"x": {0: export.Dim("b", min=2)}}
    net, args = ChoosesBySize(), (taeda.zeros(4, 2),)
    module = export.export(net, args, dynamic_shapes=sizes, strict=strict).module()
    compiled = taeda.compile(net, dynamic=True, fullgraph=True, backend="eager")
    for size in (3, 5, 4):
        x = taeda.zeros(size, 2)
        for made in (module, compiled):
            assert taeda.equal(made(x), net(x))


class CountsInParts(taeda.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = taeda.nn.Module()
        self.part.seen = taeda.nn.Buffer(taeda.zeros(1))
        self.part.weight = self.weight = taeda.nn.Parameter(taeda.ones(1))

    def forward(self, x):
        self.part.seen.add_(1)
        return x * self.weight + self.part.weight + self.part.seen


def test_modules_of_one_program_count_for_themselves():
    program = export.export(CountsInParts(), (taeda.ones(1),))
    unflattened = export.unflatten(program)
    assert unflattened.weight is unflattened.part.weight
    assert unflattened.weight is not program.state_dict["weight"]
    assert program.module()(taeda.ones(1)).item() == 3
    assert [unflattened(taeda.ones(1)).item() for _ in range(2)] == [3, 4]


SIZES_OF_DATA = {
    "sums": lambda n, x, y: y.sum() + taeda.ones(n, 5).sum(),
    "joined": lambda n, x, y: taeda.cat([y, taeda.ones(n, 5)]).relu().sum(0),
    "views": lambda n, x, y: taeda.ones(n, 6).view(-1, 3) + 1,
    "chosen": lambda n, x, y: (y[y > 0] * 2).exp(),
    "rows": lambda n, x, y: y[n] * y[n],
}


@pytest.mark.parametrize("function", SIZES_OF_DATA.values(), ids=SIZES_OF_DATA)
def test_sizes_out_of_tensors_lay_results_out(function) -> None:
    class Sized(taeda.nn.Module):
        def forward(self, x, y):
            n = x.item()
            if function is SIZES_OF_DATA["rows"]:
                taeda._check(n >= 0)
                taeda._check(n < 4)
            return function(n, x, y)

    net, y = Sized(), taeda.randn(4, 5)
    ep = export.export(net, (taeda.tensor(3), y))
    for program in (ep, ep.run_decompositions()):
        for n in (0, 2):
            given = (taeda.tensor(n), y)
            taeda.testing.assert_close(program.module()(*given), net(*given))
    if function is not SIZES_OF_DATA["chosen"]:
        with pytest.raises(RuntimeError):
            ep.module()(taeda.tensor(-9), y)


def test_branches_take_numbers_out_of_tensors_outside() -> None:
    class Read(taeda.nn.Module):
        def forward(self, yes, a, b, x):
            first, second = (lambda x: x * a.item()), (lambda x: x * b.item())
            found = taeda.cond(yes, first, second, (x,))
            return found * 2

    args = (taeda.tensor(True), taeda.tensor([4]), taeda.tensor([5]), taeda.ones(3))
    module = export.export(Read(), args).module()
    assert module(*args).tolist() == [8.0] * 3
    assert module(taeda.tensor(False), *args[1:]).tolist() == [10.0] * 3


class GraphsInside(taeda.nn.Module):
    """A branch and loops whose bodies have composites."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = taeda.nn.Linear(4, 4)

    def forward(self, x):
        def widen(x):
            return F.gelu(self.lin(x))

        def norm(x):
            return F.layer_norm(x, (4,)) + x.shape[0]

        def step(carry, row):
            return F.silu(carry + row), self.lin(carry)

        y = taeda.cond(x.sum() > 0, widen, norm, (x,))
        ys = _higher_order_ops.scan(step, y[0], y)
        (z,) = taeda.while_loop(
            lambda z: z.sum() < 9, lambda z: (F.silu(z) + F.softplus(z),), (y[0],)
        )
        return y, *ys, z


@pytest.mark.parametrize("dynamic", [False, True])
def test_graphs_inside_are_decomposed(dynamic) -> None:
    model, x = GraphsInside(), taeda.randn(5, 4)
    shapes = ({0: taeda.export.Dim("rows", min=2)},) if dynamic else None
    program = taeda.export.export(model, (x,), dynamic_shapes=shapes)
    made = program.run_decompositions()
    called = {
        str(n.target)
        for part in made.graph_module.modules()
        for n in part.graph.nodes
        if n.op == "call_function"
    }
    assert not any("linear" in name or "silu" in name for name in called)
    assert {"aten.addmm.default", "aten.native_layer_norm.default"} <= called
    for rows in (5, 7) if dynamic else (5,):
        for sign in (1, -1):
            x = taeda.rand(rows, 4) * sign
            for ours, eager in zip(made.module()(x), model(x), strict=True):
                assert taeda.allclose(ours, eager, atol=1e-6)
