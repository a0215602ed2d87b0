"""Programs of `compile.py`: each is `build(T, wrap)`, which gives one call of it.

`wrap` is the library's `compile` or gives back what it gets.
"""

from __future__ import annotations

CASES = {}


def case(build):
    """Registers a builder under its name."""
    CASES[build.__name__] = build
    return build


def _training(T, wrap, net, x):
    """Forward and backward of a module."""
    run = wrap(net)
    parameters = list(net.parameters())

    def step():
        for p in parameters:
            p.grad = None
        loss = run(x).square().mean()
        loss.backward()
        return loss

    return step


@case
def mlp_batch_1(T, wrap):
    """Inference of one sample: nothing but overhead."""
    nn = T.nn
    net = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(32, 32), nn.GELU())])
    run, x = wrap(net), T.randn(1, 32)

    def step():
        with T.no_grad():
            return run(x)

    return step


@case
def vit_block(T, wrap):
    """Patches to tokens, and an encoder's layer over them."""
    nn = T.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, 192, 16, 16)
            self.place = nn.Parameter(T.zeros(1, 196, 192))
            self.block = nn.TransformerEncoderLayer(
                192, 3, 768, 0.0, "gelu", batch_first=True, norm_first=True
            )

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2) + self.place
            return self.block(x)

    return _training(T, wrap, Net(), T.randn(4, 3, 224, 224))


@case
def lstm_loop(T, wrap):
    """A cell written out, step by step."""
    nn = T.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.u = nn.Linear(64, 256), nn.Linear(64, 256)

        def forward(self, x):
            h = c = x.new_zeros(x.shape[0], 64)
            for t in range(x.shape[1]):
                i, f, g, o = (self.w(x[:, t]) + self.u(h)).chunk(4, 1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
            return h

    return _training(T, wrap, Net(), T.randn(32, 16, 64))


@case
def rotary_block(T, wrap):
    """RMS norm, rotary positions, causal attention and a gated layer."""
    nn, F = T.nn, T.nn.functional

    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return T.cat((a * cos - b * sin, a * sin + b * cos), -1)

    class Net(nn.Module):
        def __init__(self, width=192, heads=6):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = T.ones(width), T.ones(width)
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            self.gate = nn.Linear(width, 1024, bias=False)
            self.down = nn.Linear(512, width, bias=False)

        def normed(self, x, weight):
            return x * T.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight

        def forward(self, x):
            b, t, c = x.shape
            d = c // self.heads
            q, k, v = (
                y.view(b, t, self.heads, d).transpose(1, 2)
                for y in self.qkv(self.normed(x, self.norm1)).split(c, 2)
            )
            steps = T.arange(d // 2, dtype=x.dtype) * (-2.0 / d)
            angles = T.outer(T.arange(t, dtype=x.dtype), 10000.0**steps)
            cos, sin = angles.cos(), angles.sin()
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            a, g = self.gate(self.normed(x, self.norm2)).chunk(2, -1)
            return x + self.down(F.silu(g) * a)

    return _training(T, wrap, Net(), T.randn(4, 128, 192))


@case
def vae_step(T, wrap):
    """Encoder, sample, decoder and the bound on the likelihood."""
    nn, F = T.nn, T.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(nn.Linear(784, 256), nn.ReLU())
            self.head = nn.Linear(256, 32)
            self.decode = nn.Sequential(
                nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 784)
            )

        def forward(self, x, noise):
            mean, logvar = self.head(self.encode(x)).chunk(2, 1)
            z = mean + (0.5 * logvar).exp() * noise
            loss = F.binary_cross_entropy_with_logits(self.decode(z), x)
            return loss - 0.5 * (1 + logvar - mean.square() - logvar.exp()).mean()

    net = Net()
    run, parameters = wrap(net), list(net.parameters())
    x, noise = T.rand(64, 784), T.randn(64, 16)

    def step():
        for p in parameters:
            p.grad = None
        loss = run(x, noise)
        loss.backward()
        return loss

    return step


@case
def optimizer_step(T, wrap):
    """AdamW over thirty tensors, written out."""
    sizes = [(256, 256), (256,), (64, 256)] * 10
    parameters = [T.randn(s) for s in sizes]
    gradients = [T.randn(s) for s in sizes]
    first, second = ([T.zeros(s) for s in sizes] for _ in range(2))

    def update(parameters, gradients, first, second):
        for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
            p.mul_(1 - 1e-5)
            m.lerp_(g, 0.1)
            v.mul_(0.999).addcmul_(g, g, value=0.001)
            p.addcdiv_(m, v.sqrt() + 1e-8, value=-1e-3)

    run = wrap(update)

    def step():
        run(parameters, gradients, first, second)
        return parameters[0]

    return step


@case
def dynamic_batch(T, wrap):
    """A normed layer called with a batch of another size each time."""
    nn, F = T.nn, T.nn.functional
    layer, norm = nn.Linear(64, 64), nn.LayerNorm(64)
    run = wrap(lambda x: norm(F.gelu(layer(x)) + x).softmax(-1))
    inputs = [T.randn(n, 64) for n in (17, 32, 33, 50, 64, 100)]
    turn = [0]

    def step():
        turn[0] = (turn[0] + 1) % len(inputs)
        with T.no_grad():
            return run(inputs[turn[0]])

    return step
