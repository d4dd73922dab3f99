"""Models for the tests, small enough for seconds and large enough to have something to evict."""
from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A block of a transformer, with attention written out and dropout."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.together, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.together(x).view(batch, length, 3, self.heads, width // self.heads).unbind(2)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        weights = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        weights = weights.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        weights = self.dropout(weights.softmax(-1))
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attend(self.before(x)))
        return x + self.dropout(self.down(F.gelu(self.up(self.after(x)))))


class Transformer(nn.Module):
    def __init__(self, blocks: int = 4, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(blocks))
        self.head = nn.Linear(width, 50)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def transformer_loss(model, step):
    tokens = torch.randint(0, 50, (8, 48), generator=torch.Generator().manual_seed(step))
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def transformer():
    return Transformer(), transformer_loss


def _images(step, channels=3):
    return torch.randn(8, channels, 24, 24, generator=torch.Generator().manual_seed(step))


def convolutions():
    layers = []
    for before, after in [(3, 16), (16, 16), (16, 32), (32, 32)]:
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 4))
    return model, lambda model, step: model(_images(step)).pow(2).mean()


def recurrence():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.LSTMCell(32, 64), nn.Linear(64, 1)

        def forward(self, x):
            state = None
            for one in x.unbind(0):
                state = self.cell(one, state)
            return self.head(state[0])

    def loss(model, step):
        return model(torch.randn(40, 16, 32, generator=torch.Generator().manual_seed(step))).pow(2).mean()

    return Loop(), loss


class Doubled(torch.autograd.Function):
    """A function of the user's: its forward runs once."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        Doubled.calls += 1
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y * 2

    @staticmethod
    def backward(ctx, gradient):
        _, y = ctx.saved_tensors
        return gradient * y * 2


def own_function():
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(6)))

    def loss(model, step):
        x = torch.randn(256, 64, generator=torch.Generator().manual_seed(step))
        for layer in model:
            x = Doubled.apply(layer(x).tanh()) / 8
        return x.pow(2).mean()

    return model, loss


def vectorized():
    """The same layers for eight models at once, by vmap."""

    class Eight(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.ParameterList(nn.Parameter(torch.randn(8, 32, 32) / 6) for _ in range(6))

        def forward(self, x):
            for weight in self.weights:
                x = torch.vmap(lambda w, one: torch.tanh(one @ w))(weight, x)
            return x

    def loss(model, step):
        return model(torch.randn(8, 128, 32, generator=torch.Generator().manual_seed(step))).pow(2).mean()

    return Eight(), loss


def autocast():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(6)))

    def loss(model, step):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(torch.randn(256, 64, generator=torch.Generator().manual_seed(step))).float().pow(2).mean()

    return model, loss


def penalized():
    """A penalty on the gradient: backward is differentiated again."""
    model = nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))

    def loss(model, step):
        x = torch.randn(256, 32, generator=torch.Generator().manual_seed(step), requires_grad=True)
        y = model(x)
        (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.pow(2).mean() + gradient.pow(2).mean()

    return model, loss


def reshaped():
    """Results whose sizes and strides are changed in place, as pooling and many hand-written layers do."""
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(6)))

    def loss(model, step):
        x = torch.randn(256, 64, generator=torch.Generator().manual_seed(step))
        for layer in model:
            y = layer(x)
            y.unsqueeze_(0).transpose_(1, 2)
            z = y.tanh() * 2
            z.squeeze_(0).t_().as_strided_((256, 64), (1, 256))
            x = z.sin()
        return nn.functional.adaptive_avg_pool1d(x.unsqueeze(0), 1).pow(2).mean()

    return model, loss


def checkpointed():
    """torch's own checkpoint around every second block."""
    from torch.utils.checkpoint import checkpoint

    class Half(Transformer):
        def forward(self, tokens):
            x = self.embedding(tokens)
            for index, block in enumerate(self.blocks):
                x = checkpoint(block, x, use_reentrant=False) if index % 2 else block(x)
            return self.head(x)

    return Half(), transformer_loss


#: With the share of its own bytes that each is trained within.
ALL = {
    "transformer": (transformer, 0.5),
    "convolutions": (convolutions, 0.7),
    "recurrence": (recurrence, 0.6),
    "own_function": (own_function, 0.7),
    "vectorized": (vectorized, 0.8),
    "autocast": (autocast, 0.8),
    "penalized": (penalized, 0.95),
    "reshaped": (reshaped, 0.7),
    "checkpointed": (checkpointed, 0.9),
}
