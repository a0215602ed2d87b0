"""Models that tests export, built from either library."""

from __future__ import annotations

import math


def mlp(L):
    nn, F = L.nn, L.nn.functional

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)

        def forward(self, x):
            return self.b(F.gelu(self.a(x))).softmax(-1)

    return L.filled(MLP())


def cnn(L):
    nn = L.nn

    class CNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.n = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.p, self.f = nn.MaxPool2d(2), nn.Linear(16, 5)

        def forward(self, x):
            return self.f(self.p(self.n(self.c(x)).relu()).flatten(1))

    return L.filled(CNN())


def residual(L):
    nn = L.nn

    class Block(nn.Module):
        def __init__(self, width, out, step):
            super().__init__()
            self.c1 = nn.Conv2d(width, out, 3, step, 1, bias=False)
            self.b1, self.r = nn.BatchNorm2d(out), nn.ReLU(inplace=True)
            self.c2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.b2, self.d = nn.BatchNorm2d(out), None
            if step != 1:
                down = nn.Conv2d(width, out, 1, step, bias=False)
                self.d = nn.Sequential(down, nn.BatchNorm2d(out))

        def forward(self, x):
            y = self.b2(self.c2(self.r(self.b1(self.c1(x)))))
            y += x if self.d is None else self.d(x)
            return self.r(y)

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(
                nn.Conv2d(3, 4, 7, 2, 3, bias=False),
                nn.BatchNorm2d(4),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(3, 2, 1),
            )
            self.blocks = nn.Sequential(Block(4, 4, 1), Block(4, 8, 2))
            self.pool, self.f = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8, 3)

        def forward(self, x):
            x = self.pool(self.blocks(self.stem(x)))
            return self.f(L.flatten(x, 1))

    return L.filled(ResNet())


def gpt(L):
    nn, F = L.nn, L.nn.functional

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.m = nn.Sequential(
                nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
            )

        def forward(self, x):
            b, t, c = x.shape
            parts = self.qkv(self.n1(x)).split(c, -1)
            q, k, v = (
                p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in parts
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(y.transpose(1, 2).reshape(b, t, c))
            return x + self.m(self.n2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(11, 8), nn.Embedding(16, 8)
            self.blocks = nn.ModuleList(Block(8, 2) for _ in range(2))
            self.n, self.head = nn.LayerNorm(8), nn.Linear(8, 11, bias=False)
            self.head.weight = self.words.weight

        def forward(self, ids):
            x = self.words(ids) + self.places(L.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.n(x))

    return L.filled(GPT())


def masked(L):
    nn = L.nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q = nn.Linear(4, 4)
            self.register_buffer("mask", L.ones(16, 16).tril() == 0)

        def forward(self, x):
            t = x.size(1)
            scores = self.q(x) @ x.transpose(-2, -1) / math.sqrt(4)
            return scores.masked_fill(self.mask[:t, :t], -1e9).softmax(-1) @ x

    return L.filled(Attention())


def recurrent(L):
    nn = L.nn

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.o = nn.LSTM(3, 4, 2, batch_first=True), nn.Linear(4, 2)

        def forward(self, x):
            y, (h, _) = self.cells(x)
            return self.o(y[:, -1]), h

    return L.filled(Recurrent())


def encoder(L):
    nn = L.nn
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return L.filled(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
