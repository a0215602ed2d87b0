"""A typed program over the public interface, for mypy and for running.

`assert_type` states what a type checker must know; a line with `type: ignore[code]` is
a wrong use, which must be an error (`--warn-unused-ignores`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, assert_type

import taeda
from taeda import Generator, Size, Tensor, nn
from taeda.nn import functional as F
from taeda.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    random_split,
)

Number = bool | int | float


def wrong(use: Callable[[], object]) -> None:
    """Takes a use that a type checker must refuse, and leaves it alone."""


def constructors() -> Tensor:
    """Every way to make a tensor gives a Tensor."""
    a = taeda.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=taeda.float64)
    assert_type(a, Tensor)
    assert_type(taeda.zeros(2, 3), Tensor)
    assert_type(taeda.zeros((2, 3), dtype=taeda.int64), Tensor)
    assert_type(taeda.ones([2], device="cpu"), Tensor)
    assert_type(taeda.full((2, 2), 7.5, requires_grad=True), Tensor)
    assert_type(taeda.arange(10), Tensor)
    assert_type(taeda.arange(0, 1, 0.1), Tensor)
    assert_type(taeda.linspace(0, 1, 5), Tensor)
    assert_type(taeda.eye(3), Tensor)
    assert_type(taeda.randn(2, 3, generator=Generator()), Tensor)
    assert_type(taeda.rand((4,)), Tensor)
    assert_type(taeda.randint(0, 5, (3,)), Tensor)
    assert_type(taeda.randperm(4), Tensor)
    assert_type(taeda.empty(0), Tensor)
    assert_type(taeda.zeros_like(a), Tensor)
    assert_type(taeda.as_tensor([1, 2]), Tensor)
    # Sizes are numbers, dtypes are no strings.
    wrong(lambda: taeda.zeros("two"))  # type: ignore[arg-type]
    assert_type(taeda.from_numpy(a.numpy()), Tensor)
    wrong(lambda: taeda.ones(2, dtype="float32"))  # type: ignore[call-overload]
    assert_type(taeda.stack([a, a]), Tensor)
    # Switches are bools; what is stacked is a sequence.
    wrong(lambda: taeda.tensor([1.0], requires_grad="yes"))  # type: ignore[arg-type]
    assert_type(taeda.cat((a, a), dim=1), Tensor)
    wrong(lambda: taeda.stack(3))  # type: ignore[arg-type]
    assert_type(a.new_zeros(3), Tensor)
    # Names that are absent are absent for the checker as well.
    wrong(lambda: taeda.no_such_function(a))  # type: ignore[attr-defined]
    return a


def attributes(x: Tensor) -> None:
    """Properties of a tensor have types of their own."""
    assert_type(x.shape, Size)
    assert_type(x.shape[0], int)
    assert_type(x.shape[1:], Size)
    assert_type(x.size(), Size)
    assert_type(x.size(0), int)
    assert_type(x.stride(), tuple[int, ...])
    assert_type(x.dtype, taeda.dtype)
    assert_type(x.dtype.is_floating_point, bool)
    assert_type(x.device, taeda.device)
    assert_type(x.device.type, str)
    assert_type(x.device.index, int | None)
    assert_type(x.layout, taeda.layout)
    assert_type(x.ndim, int)
    assert_type(x.numel(), int)
    assert_type(x.dim(), int)
    assert_type(x.is_contiguous(), bool)
    assert_type(x.requires_grad, bool)
    assert_type(x.is_leaf, bool)
    assert_type(x.grad, Tensor | None)
    assert_type(x.data, Tensor)
    assert_type(x.T, Tensor)
    assert_type(x.item() if x.numel() == 1 else 0, Number)
    # A tensor has no other attributes, and its shape is not to be set.
    wrong(lambda: x.no_such_attribute())  # type: ignore[attr-defined]
    assert_type(len(x), int)
    if TYPE_CHECKING:
        x.shape = (1, 2)  # type: ignore[assignment, misc]
    assert_type(taeda.finfo(taeda.float32).eps, float)
    if TYPE_CHECKING:
        # Neither are dimensions strings.
        x.requires_grad = "no"  # type: ignore[assignment]
    assert_type(taeda.iinfo(taeda.int8).max, int)
    wrong(lambda: x.size("first"))  # type: ignore[call-overload]
    assert_type(taeda.get_default_dtype(), taeda.dtype)
    # A gradient may be None.
    wrong(lambda: x.grad.sum())  # type: ignore[union-attr]


def operators(x: Tensor, y: Tensor) -> Tensor:
    """Operators of tensors and numbers give tensors."""
    assert_type(x + y, Tensor)
    assert_type(1 + x, Tensor)
    assert_type(x - 2.5, Tensor)
    assert_type(2.5 - x, Tensor)
    assert_type(x * y, Tensor)
    assert_type(3 * x, Tensor)
    assert_type(x / 2, Tensor)
    assert_type(1 / x, Tensor)
    assert_type(x // 2, Tensor)
    assert_type(x % 3, Tensor)
    assert_type(x**2, Tensor)
    assert_type(2**x, Tensor)
    assert_type(x @ y.T, Tensor)
    assert_type(-x, Tensor)
    assert_type(abs(x), Tensor)
    assert_type(x == y, Tensor)
    assert_type(x != 1, Tensor)
    assert_type(x < y, Tensor)
    assert_type(x >= 0.5, Tensor)
    assert_type((x > 0) & (y > 0), Tensor)
    assert_type((x > 0) | (y > 0), Tensor)
    assert_type(~(x > 0), Tensor)
    assert_type(x[0], Tensor)
    assert_type(x[:, 1:], Tensor)
    assert_type(x[x > 0], Tensor)
    assert_type(x[..., None], Tensor)
    assert_type(list(x), list[Tensor])
    wrong(lambda: x + "text")  # type: ignore[operator]
    assert_type(float(x.sum()), float)
    # A list is no operand.
    wrong(lambda: [1.5] + x)  # type: ignore[operator]
    assert_type(int(x.sum()), int)
    # Products take tensors; only numbers and tensors compare.
    wrong(lambda: x @ 3)  # type: ignore[operator]
    assert_type(bool((x == x).all()), bool)
    wrong(lambda: x < "text")  # type: ignore[operator]
    z = x.clone()
    z += 1
    z *= y
    z[0] = 3.0
    assert_type(z, Tensor)
    if TYPE_CHECKING:
        # Elements are numbers.
        z[0] = "text"  # type: ignore[assignment]
    return z


def methods(x: Tensor) -> Tensor:
    """Methods and functions of the records."""
    assert_type(x.sum(), Tensor)
    assert_type(x.sum(dim=0), Tensor)
    assert_type(x.mean((0, 1), keepdim=True), Tensor)
    assert_type(x.max(), Tensor)
    assert_type(x.max(dim=1).values, Tensor)
    assert_type(x.max(1).indices, Tensor)
    values, indices = x.sort(dim=-1, descending=True)
    assert_type(values, Tensor)
    assert_type(indices, Tensor)
    assert_type(x.topk(1).values, Tensor)
    assert_type(x.argmax(dim=-1), Tensor)
    assert_type(x.view(-1), Tensor)
    assert_type(x.reshape(2, -1), Tensor)
    assert_type(x.permute(1, 0), Tensor)
    assert_type(x.transpose(0, 1), Tensor)
    assert_type(x.unsqueeze(0).squeeze(0), Tensor)
    assert_type(x.expand(2, 2), Tensor)
    assert_type(x.chunk(2), tuple[Tensor, ...])
    assert_type(x.split(1), tuple[Tensor, ...])
    assert_type(x.unbind(), tuple[Tensor, ...])
    assert_type(x.to(taeda.float32), Tensor)
    assert_type(x.to("cpu", taeda.float64), Tensor)
    assert_type(x.to(x), Tensor)
    assert_type(x.float().double().half(), Tensor)
    assert_type(x.detach().clone().contiguous(), Tensor)
    assert_type(x.requires_grad_(False), Tensor)
    assert_type(x.add(1).mul_(2), Tensor)
    assert_type(x.clamp(min=0), Tensor)
    assert_type(x.masked_fill(x > 1, 0.0), Tensor)
    assert_type(x.gather(0, x.argmax(0, keepdim=True)), Tensor)
    assert_type(taeda.add(x, 1, alpha=2), Tensor)
    assert_type(taeda.where(x > 0, x, 0.0), Tensor)
    # Dims are numbers in sums and in shapes.
    wrong(lambda: x.sum(dim="rows"))  # type: ignore[arg-type]
    assert_type(taeda.exp(x).log(), Tensor)
    wrong(lambda: x.reshape("flat"))  # type: ignore[arg-type]
    assert_type(taeda.allclose(x, x), bool)
    # The field is called values.
    wrong(lambda: x.max(1).value())  # type: ignore[attr-defined]
    assert_type(taeda.equal(x, x), bool)
    wrong(lambda: x.chunk())  # type: ignore[call-arg]
    assert_type(taeda.is_tensor(x), bool)
    # No method takes what its schema does not have.
    wrong(lambda: x.exp(2))  # type: ignore[call-arg]
    assert_type(taeda.linalg.inv(x), Tensor)
    wrong(lambda: taeda.exp(x, y=2))  # type: ignore[call-arg]
    assert_type(taeda.linalg.svd(x).S, Tensor)
    # Strings are no tensors.
    wrong(lambda: taeda.exp("x"))  # type: ignore[arg-type]
    assert_type(taeda.linalg.slogdet(x).logabsdet, Tensor)
    wrong(lambda: taeda.where("x", x, x))  # type: ignore[call-overload]
    assert_type(taeda.special.erf(x), Tensor)
    # Namespaces have only their own functions.
    wrong(lambda: taeda.linalg.no_such(x))  # type: ignore[attr-defined]
    return values


class Block(nn.Module):
    """A residual block, whose layers keep their types."""

    def __init__(self, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, width), nn.GELU())
        self.scale = nn.Parameter(taeda.ones(width))
        self.drop = nn.Dropout(dropout)
        self.register_buffer("calls", taeda.zeros((), dtype=taeda.long))

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = self.inner(self.norm(x))
        return x + self.scale * self.drop(inner)


def modules() -> Block:
    """Layers, parameters, functions."""
    block = Block(4)
    assert_type(block.norm, nn.LayerNorm)
    assert_type(block.scale, nn.Parameter)
    assert_type(block.forward(taeda.ones(2, 4)), Tensor)
    linear = nn.Linear(4, 2, bias=False)
    assert_type(linear.weight, nn.Parameter)
    assert_type(linear.in_features, int)
    assert_type(linear.forward(taeda.ones(1, 4)), Tensor)
    assert_type(block.train(), Block)
    assert_type(block.eval().to("cpu").double().float(), Block)
    assert_type(list(block.parameters()), list[nn.Parameter])
    assert_type(dict(block.named_parameters()), dict[str, nn.Parameter])
    assert_type(list(block.modules()), list[nn.Module])
    assert_type(list(block.named_buffers()), list[tuple[str, Tensor]])
    assert_type(block.state_dict(), dict[str, Any])
    x = taeda.randn(3, 4)
    assert_type(F.relu(x), Tensor)
    assert_type(F.softmax(x, dim=-1), Tensor)
    assert_type(F.gelu(x), Tensor)
    assert_type(F.linear(x, linear.weight), Tensor)
    assert_type(F.cross_entropy(x, taeda.zeros(3, dtype=taeda.long)), Tensor)
    # Layers check widths and want all of them.
    wrong(lambda: nn.Linear("four", 2))  # type: ignore[arg-type]
    assert_type(F.mse_loss(x, x, reduction="sum"), Tensor)
    wrong(lambda: nn.Linear(4))  # type: ignore[call-arg]
    assert_type(F.dropout(x, 0.5, training=False), Tensor)
    # Unknown layers and functions are seen.
    wrong(lambda: nn.NoSuchLayer())  # type: ignore[attr-defined]
    assert_type(F.layer_norm(x, (4,)), Tensor)
    wrong(lambda: F.no_such_function(x))  # type: ignore[attr-defined]
    assert_type(F.one_hot(taeda.arange(3)), Tensor)
    # Own layers are checked like ours.
    wrong(lambda: block.forward("x"))  # type: ignore[arg-type]
    assert_type(nn.init.zeros_(linear.weight), Tensor)
    wrong(lambda: nn.Dropout(p="half"))  # type: ignore[arg-type]
    return block


class Squares(Dataset[tuple[Tensor, int]]):
    """Samples (x, x squared)."""

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return taeda.tensor(float(index)), index**2

    def __len__(self) -> int:
        return 10


class Count(IterableDataset[int]):
    """Samples without an index."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


def data() -> DataLoader[tuple[Tensor, int]]:
    """Datasets and loaders are generic in the sample."""
    squares = Squares()
    assert_type(squares[2], tuple[Tensor, int])
    assert_type(squares + squares, ConcatDataset[tuple[Tensor, int]])
    assert_type((squares + squares)[3], tuple[Tensor, int])
    assert_type(next(iter(Count())), int)
    pairs = TensorDataset(taeda.ones(4, 2), taeda.zeros(4))
    assert_type(pairs[0], tuple[Tensor, ...])
    parts = random_split(squares, [7, 3])
    assert_type(parts, list[Subset[tuple[Tensor, int]]])
    assert_type(parts[0][0], tuple[Tensor, int])
    # A loader needs a dataset and a number.
    wrong(lambda: DataLoader(3))  # type: ignore[arg-type]
    assert_type(list(BatchSampler(RandomSampler(squares), 4, False)), list[list[int]])
    wrong(lambda: DataLoader(squares, batch_size="four"))  # type: ignore[arg-type]
    loader = DataLoader(squares, batch_size=4, shuffle=True)
    assert_type(loader, DataLoader[tuple[Tensor, int]])
    # Datasets hold tensors and add to datasets.
    wrong(lambda: TensorDataset([1, 2]))  # type: ignore[arg-type]
    assert_type(loader.dataset, Dataset[tuple[Tensor, int]])
    wrong(lambda: squares + 3)  # type: ignore[operator]
    assert_type(len(loader), int)
    # Lengths are a sequence.
    wrong(lambda: random_split(squares, 3))  # type: ignore[arg-type]
    return loader


class Cube(taeda.autograd.Function):
    """x to the third, with its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


def training(loader: DataLoader[tuple[Tensor, int]]) -> float:
    """A loop as programs have it."""
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = taeda.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.99))
    schedule = taeda.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    assert_type(optimizer, taeda.optim.AdamW)
    # Optimizers are known, with their options.
    wrong(lambda: taeda.optim.NoSuchOptimizer())  # type: ignore[attr-defined]
    assert_type(optimizer.state_dict(), dict[str, Any])
    wrong(lambda: taeda.optim.SGD(model.parameters(), learning_rate=1))  # type: ignore[call-arg]
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x.unsqueeze(1)).squeeze(1), y.float())
        assert_type(loss, Tensor)
        assert_type(loss.backward(), None)
        optimizer.step()
        total += loss.item() * len(x)
    schedule.step()
    with taeda.no_grad():
        assert_type(taeda.is_grad_enabled(), bool)
    with taeda.inference_mode():
        model(taeda.ones(1, 1))
    x = taeda.tensor([2.0], requires_grad=True)
    cube: Tensor = Cube.apply(x)
    cube.backward()
    assert x.grad is not None
    assert_type(x.grad.tolist(), Any)
    # Options have types.
    wrong(lambda: taeda.optim.SGD(model.parameters(), nesterov="no"))  # type: ignore[arg-type]
    if TYPE_CHECKING:
        loss.backward(3)  # type: ignore[arg-type]
    if TYPE_CHECKING:
        # So have the arguments of methods.
        optimizer.zero_grad(set_to_none="no")  # type: ignore[arg-type]
    if TYPE_CHECKING:
        taeda.set_default_dtype("float64")  # type: ignore[arg-type]
    if TYPE_CHECKING:
        # Seeds and devices too.
        taeda.manual_seed("seed")  # type: ignore[arg-type]
    if TYPE_CHECKING:
        taeda.device(3.5)  # type: ignore[call-overload]
    return total


def main() -> None:
    """Runs everything that a type checker has judged."""
    x = constructors()
    attributes(x)
    operators(x, x + 1)
    methods(x)
    modules()
    assert training(data()) > 0


if __name__ == "__main__":
    main()
