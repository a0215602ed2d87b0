"""Trains a character-level GPT on the Python standard library's own source text.

    python docs/examples/char_gpt.py                  # about two minutes on two cores
    python docs/examples/char_gpt.py --size gpt       # 6 layers, 6 heads, 192 wide
    python docs/examples/char_gpt.py --resume         # goes on from the checkpoint

The model is the decoder of Radford et al., "Language Models are Unsupervised Multitask
Learners" (2019): pre-norm blocks, learned positions, tied input and output embedding.
"""

from __future__ import annotations

import argparse
import math
import os
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

import taeda as T

nn, F = T.nn, T.nn.functional

CHARACTERS = "\n" + "".join(chr(c) for c in range(32, 127))


@dataclass(frozen=True)
class Size:
    """Hyperparameters of one model size; `steps` is the default length of a run."""

    layers: int
    heads: int
    width: int
    context: int
    batch: int
    steps: int
    learning_rate: float


SIZES = {
    "demo": Size(3, 4, 96, 64, 24, 2200, 4e-3),
    "gpt": Size(6, 6, 192, 128, 16, 3000, 1.5e-3),
}


class Block(nn.Module):
    """Causal self-attention and a feed-forward layer, each with a residual path."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    """[batch, length] character numbers to [batch, length, characters] logits."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.context = size.context
        self.tokens = nn.Embedding(len(CHARACTERS), size.width)
        self.positions = nn.Embedding(size.context, size.width)
        self.blocks = nn.ModuleList(
            Block(size.width, size.heads) for _ in range(size.layers)
        )
        self.norm = nn.LayerNorm(size.width)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
            if name.endswith(("proj.weight", "down.weight")):
                # Residual sums grow with the depth; their last layers start smaller.
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * size.layers))

    def forward(self, ids):
        where = T.arange(ids.shape[1])
        x = self.tokens(ids) + self.positions(where)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)

    def sample(self, prompt: str, count: int, generator) -> str:
        """`count` characters after the prompt, drawn at temperature 0.8."""
        ids = encode(prompt)
        for _ in range(count):
            logits = self(ids[-self.context :].unsqueeze(0))[0, -1]
            p = F.softmax(logits / 0.8, dim=0)
            ids = T.cat([ids, T.multinomial(p, 1, generator=generator)])
        return "".join(CHARACTERS[i] for i in ids.tolist())


def encode(text: str):
    """Character numbers; what is not printable ASCII reads as a space."""
    number = {c: i for i, c in enumerate(CHARACTERS)}
    space = number[" "]
    return T.tensor([number.get(c, space) for c in text])


def load_text(limit: int = 4_000_000) -> tuple:
    """(training, validation) character numbers from the standard library's files."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(p for p in folder.glob("*.py") if p.stat().st_size > 2000)
    train: list[str] = []
    held_out: list[str] = []
    for i, path in enumerate(files):
        text = path.read_text(encoding="utf-8", errors="replace")
        (held_out if i % 10 == 9 else train).append(text)
    return encode("".join(train)[:limit]), encode("".join(held_out)[: limit // 10])


class Run:
    """Everything that a checkpoint holds, so that a resumed run goes on identically."""

    def __init__(self, size: Size, seed: int, steps: int) -> None:
        T.manual_seed(seed)
        self.model = GPT(size)
        decay = [p for p in self.model.parameters() if p.dim() > 1]
        plain = [p for p in self.model.parameters() if p.dim() <= 1]
        groups: list[dict] = [{"params": decay}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = T.optim.AdamW(
            groups, lr=size.learning_rate, betas=(0.9, 0.95), weight_decay=0.1
        )
        self.schedule = T.optim.lr_scheduler.OneCycleLR(
            self.optimizer, size.learning_rate, total_steps=steps, pct_start=0.1
        )
        self.generator = T.Generator().manual_seed(seed)
        self.step = 0
        self.curve: list[tuple[int, float, float]] = []

    def save(self, path: Path) -> None:
        """Writes the checkpoint file."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "generator": self.generator.get_state(),
            "step": self.step,
            "curve": self.curve,
        }
        T.save(state, path)

    def load(self, path: Path) -> None:
        """Takes over a checkpoint file."""
        state = T.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.generator.set_state(state["generator"])
        self.step = state["step"]
        self.curve = [tuple(row) for row in state["curve"]]


def batch_of(text, size: Size, generator) -> tuple:
    """Random windows and the same windows one character on."""
    starts = T.randint(
        len(text) - size.context - 1, (size.batch,), generator=generator
    ).unsqueeze(1)
    window = starts + T.arange(size.context)
    return text[window], text[window + 1]


def loss_of(model: GPT, inputs, targets):
    """Mean cross-entropy in nats a character."""
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def validate(model: GPT, text, size: Size, batches: int = 20) -> float:
    """Loss on the same windows of the held-out text every time."""
    generator = T.Generator().manual_seed(1)
    with T.no_grad():
        losses = [
            loss_of(model, *batch_of(text, size, generator)).item()
            for _ in range(batches)
        ]
    return sum(losses) / batches


def train(run: Run, size: Size, options: argparse.Namespace, texts: tuple) -> None:
    """Runs the remaining steps, with a progress bar and checkpoints."""
    from tqdm import tqdm

    text, held_out = texts
    bar = tqdm(total=options.steps, initial=run.step, unit="step")
    begin, first = time.perf_counter(), run.step
    while run.step < options.steps:
        loss = loss_of(run.model, *batch_of(text, size, run.generator))
        run.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
        run.optimizer.step()
        run.schedule.step()
        run.step += 1
        bar.update()
        if run.step % options.every == 0 or run.step == options.steps:
            found = validate(run.model, held_out, size)
            run.curve.append((run.step, loss.item(), found))
            run.save(options.out / "checkpoint.pt")
            done = (run.step - first) * size.batch * size.context
            rate = done / (time.perf_counter() - begin)
            bar.set_postfix(train=f"{loss.item():.3f}", val=f"{found:.3f}")
            bar.write(
                f"step {run.step}: train {loss.item():.4f}, validation {found:.4f} "
                f"nats a character, {rate:,.0f} tokens/s"
            )
    bar.close()


def plot(curve: list, path: Path) -> None:
    """The loss curve as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    steps, losses, found = zip(*curve, strict=True)
    figure, axes = pyplot.subplots(figsize=(6, 4))
    axes.plot(steps, losses, label="training")
    axes.plot(steps, found, label="validation")
    axes.set_xlabel("step")
    axes.set_ylabel("nats a character")
    axes.legend()
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> float:
    """Trains, samples, plots; returns the last validation loss."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="demo")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--every", type=int, default=250, help="steps between checks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("char_gpt_out"))
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args(arguments)
    size = SIZES[options.size]
    options.steps = options.steps or size.steps
    options.out.mkdir(parents=True, exist_ok=True)
    T.set_num_threads(len(os.sched_getaffinity(0)))
    texts = load_text()
    run = Run(size, options.seed, options.steps)
    if options.resume:
        run.load(options.out / "checkpoint.pt")
    count = sum(p.numel() for p in run.model.parameters())
    print(f"{count:,} parameters, {len(texts[0]):,} characters of training text")
    train(run, size, options, texts)
    generator = T.Generator().manual_seed(options.seed)
    with T.no_grad():
        print(run.model.sample("def ", 300, generator))
    plot(run.curve, options.out / "loss.png")
    print(f"loss curve: {options.out / 'loss.png'}")
    print(f"validation loss {run.curve[-1][2]:.4f}")
    return run.curve[-1][2]


if __name__ == "__main__":
    main()
