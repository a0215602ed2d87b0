"""Random programs over tensors, as Python text that runs without an error.

A program is a function of some tensors and a number, grown line by line: a line is
kept when the program so far runs with it on the first inputs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import taeda

FLOATS = ("float32", "float64")
UNARY = (
    "{a}.relu()",
    "{a}.sin()",
    "{a}.tanh()",
    "{a}.sigmoid()",
    "{a}.abs()",
    "(-{a})",
    "F.gelu({a})",
    "F.silu({a})",
    "({a} * {a} + 1).sqrt()",
    "({a}.abs() + 1).log()",
    "{a}.clamp(-1, 1)",
    "({a} > 0)",
    "{a}.float()",
    "{a}.double()",
    "{a}.to(T.int64)",
    "{a}.to(T.bfloat16)",
    "{a}.clone()",
    "{a}.detach()",
    "T.zeros_like({a})",
    "T.ones_like({a}) * {k}",
    "T.arange({a}.numel()).view({a}.shape)",
    "F.dropout({a}, 0.5, False)",
)
BINARY = (
    "({a} + {b})",
    "({a} - {b})",
    "({a} * {b})",
    "({a} / ({b}.abs() + 1))",
    "T.maximum({a}, {b})",
    "T.where({a} > {b}, {a}, {b})",
    "T.add({a}, {b}, alpha={k})",
    "({a} == {b})",
    "({a} @ {b})",
    "({a} @ {b}.mT)",
    "T.cat([{a}, {b}], {d})",
    "T.stack([{a}, {b}], {d})",
    "T.lerp({a}, {b}, 0.25)",
    "F.mse_loss({a}, {b})",
    "{a}.masked_fill({b} > 0, {k})",
    "T.addcmul({a}, {b}, {a}, value={k})",
)
REDUCING = (
    "{a}.sum()",
    "{a}.sum({d}, keepdim={t})",
    "{a}.mean({d}, keepdim={t})",
    "{a}.amax({d}, keepdim={t})",
    "{a}.var({d}, keepdim={t})",
    "{a}.cumsum({d})",
    "T.softmax({a}, {d})",
    "T.log_softmax({a}, {d})",
    "T.logsumexp({a}, {d})",
    "F.layer_norm({a}, {a}.shape[-1:])",
    "{a}.norm()",
    "{a}.any({d})",
    "{a}.argmax({d})",
    "{a}.sort({d})[0]",
    "F.normalize({a}, dim={d})",
)
VIEWS = (
    "{a}.transpose({d}, {e})",
    "{a}.mT",
    "{a}.reshape(-1)",
    "{a}.reshape({a}.shape[0], -1)",
    "{a}.unsqueeze({d})",
    "{a}.squeeze({d})",
    "{a}[{i}]",
    "{a}[..., {i}:]",
    "{a}[::2]",
    "{a}[:, None]",
    "{a}.expand(3, *{a}.shape)",
    "{a}.flip({d})",
    "{a}.contiguous()",
    "{a}.unbind({d})[0]",
    "{a}.chunk(2, {d})[0]",
    "{a}.select({d}, 0)",
    "{a}.narrow({d}, 0, 1)",
    "{a}.diagonal()",
    "F.pad({a}, (1, 0))",
    "{a}.index_select({d}, T.tensor([0]))",
    "{a}[T.tensor([0, 0])]",
)
# Index maps, and what reads windows.
MAPS = (
    "F.pad({a}, (2, 1), value={k})",
    "F.pad({a}, (-1, 2, 1, 0))",
    "{a}.tril({i})",
    "{a}.triu()",
    "{a}.roll(1, {d})",
    "{a}.repeat(2, *[1] * ({a}.dim() - 1))",
    "{a}.repeat_interleave(2, {d})",
    "F.glu({a}, {d})",
    "T.outer({a}.reshape(-1), {b}.reshape(-1)[:8])",
    "F.max_pool2d({a}[None], 2)",
    "F.max_pool2d({a}[None], 3, 1, 1)",
    "F.avg_pool2d({a}[None], (1, 2), 1, (0, 1))",
    "F.unfold({a}[None, None, 0], (1, 2), padding=1)",
    "T.arange({a}.shape[-1]) + {a}",
    "T.zeros_like({a}) + {a}",
    "T.eye({a}.shape[-1]) * {a}",
    "F.interpolate({a}.reshape(1, 1, -1), scale_factor=2)",
    "F.pixel_shuffle({a}.reshape(1, 1, 1, -1).expand(1, 4, 2, -1), 2)",
    "{a}.reshape(1, -1).repeat_interleave(3, -1)",
)
WRITES = (
    "{a}.add_({k})",
    "{a}.mul_({b})",
    "{a}.relu_()",
    "{a}.zero_()",
    "{a}.copy_({b})",
    "{a}[0] = {k}",
    "{a}[..., {i}:] = {k}",
    "{a}[{a} > 0] = {k}",
    "{a}.transpose({d}, {e}).add_({k})",
    "{a}.view(-1).mul_({k})",
    "{a}.clamp_(max={k})",
    "{a}.masked_fill_({a} < {k}, 0)",
    "T.add({a}, {k}, out={a})",
)


def writable(inputs: list[object]) -> list[object]:
    """Tensors that may be written to, in place of leaves that need a gradient."""
    return [x * 1 if taeda.is_tensor(x) and x.requires_grad else x for x in inputs]


@dataclass
class Program:
    """A program's text, and what its inputs are."""

    lines: list[str] = field(default_factory=list)
    inputs: list[tuple[tuple[int, ...], str, bool]] = field(default_factory=list)
    count: int = 0
    seed: int = 0
    taken: bool = False  # whether a gradient is asked for

    def text(self) -> str:
        """The function, called `program`."""
        names = [f"a{i}" for i in range(len(self.inputs))]
        head = f"def program({', '.join(names)}, n, T, F):\n"
        last = f"    return [{', '.join(f'v{i}' for i in self.results())}]\n"
        return head + "".join(f"    {line}\n" for line in self.lines) + last

    def results(self) -> list[int]:
        """The numbers of variables that are returned."""
        return range(max(0, self.count - 4), self.count)

    def function(self):
        """The program, compiled by Python."""
        space: dict[str, object] = {}
        exec(compile(self.text(), f"<program {self.seed}>", "exec"), space)
        return space["program"]

    def rounds(self) -> bool:
        """Whether it computes in bfloat16."""
        return "bfloat16" in self.text() + str(self.inputs)

    def make_inputs(self, longer: int = 0) -> list[object]:
        """Fresh tensors, `longer` more along their first axes, and a number."""
        generator = taeda.Generator().manual_seed(self.seed + longer)
        made: list[object] = []
        for shape, dtype, needs_gradient in self.inputs:
            if shape and shape[0] > 1:
                shape = (shape[0] + longer, *shape[1:])
            kind = getattr(taeda, dtype)
            if kind.is_floating_point:
                t = taeda.randn(shape, generator=generator, dtype=kind)
                made.append(t.requires_grad_(needs_gradient))
            else:
                t = taeda.randint(-4, 5, shape, generator=generator)
                made.append(t.to(kind))
        return [*made, 3 + longer]


class Grower:
    """Grows a program from a generator of random numbers."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.program = Program(seed=source.randrange(2**31))
        gradient = source.random() < 0.5
        rank = source.randrange(1, 4)
        shape = tuple(source.choice((1, 2, 3, 4, 7)) for _ in range(rank))
        for _ in range(source.randrange(1, 4)):
            dtype = source.choice((*FLOATS, *FLOATS, "int64", "bool", "bfloat16"))
            cut = shape[source.randrange(rank) :] if source.random() < 0.2 else shape
            needs = gradient and dtype in FLOATS
            self.program.inputs.append((cut, dtype, needs))
            self.program.taken |= needs

    def variable(self) -> str:
        """A variable of the program so far, rather a late one."""
        names = [f"a{i}" for i in range(len(self.program.inputs))]
        names += [f"v{i}" for i in range(self.program.count)]
        return names[-1 - int(self.source.random() ** 2 * len(names))]

    def expression(self) -> str:
        """One call on variables."""
        kinds = (UNARY, BINARY, BINARY, REDUCING, VIEWS, MAPS)
        return self.filled(self.source.choice(self.source.choice(kinds)))

    def filled(self, form: str) -> str:
        """A form with its places filled."""
        pick = self.source
        return form.format(
            a=self.variable(),
            b=self.variable(),
            k=pick.choice(("0.5", "2", "-1.5", "n", "n / 4")),
            d=pick.choice((-1, 0, -1, 1)),
            e=pick.choice((-1, 0, -2)),
            i=pick.choice((0, 1, -1)),
            t=pick.random() < 0.5,
        )

    def statement(self) -> list[str]:
        """Lines that make the next variable or change an old one."""
        new = f"v{self.program.count}"
        a, chance = self.variable(), self.source.random()
        if chance < 0.68:
            return [f"{new} = {self.expression()}"]
        if chance < 0.80:
            return [self.filled(self.source.choice(WRITES)), f"{new} = {a} + 1"]
        if chance < 0.85:
            limit = self.source.randrange(1, 5)
            test = self.source.choice((f"{a}.shape[0] > {limit}", f"{a}.dim() < 3"))
            other = f"else: {new} = {self.expression()}"
            return [f"if {test}: {new} = {self.expression()}", other]
        if chance < 0.89:
            step = self.source.choice((f"{new} * 0.5 + i", f"{new} + i", f"-{new}"))
            turns = self.source.choice(("3", "n", f"{a}.shape[0]"))
            return [f"{new} = {a}", f"for i in range({turns}): {new} = {step}"]
        if chance < 0.92:
            return [f"{new} = {a} * 1", f"if {a}.sum() > 0: {new} = {new} - 1"]
        if chance < 0.94:
            return [f"{new} = [{a}[j] + j for j in range({a}.shape[0])][-1]"]
        if chance < 0.96:
            inner = f"    {new} = {self.expression()}"
            return [f"with T.no_grad():\n    {inner.strip()}".replace("\n", "\n    ")]
        if chance < 0.98:
            table = f"table = {{'x': {a}, 'k': n}}"
            return [table, f"{new} = table['x'] * table.get('k', 1)"]
        return [f"half = lambda t: t * 0.5 + {a}.shape[-1]", f"{new} = half({a})"]

    def grow(self, statements: int) -> Program:
        """A program of at most so many statements."""
        for _ in range(statements):
            before = list(self.program.lines)
            self.program.lines += self.statement()
            self.program.count += 1
            if not self._runs():
                self.program.lines = before
                self.program.count -= 1
        return self.program

    def _runs(self) -> bool:
        inputs = writable(self.program.make_inputs())
        try:
            results = self.program.function()(*inputs, taeda, taeda.nn.functional)
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
            return False
        return all(r.numel() < 5000 for r in results if taeda.is_tensor(r))
