"""The models of training_models.cpp in PyTorch, and the ways to checkpoint them that compare_peers.py lists.

Everything is made on torch's default device.
"""

import functools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

MODEL_SEED = 0
again = functools.partial(checkpoint, use_reentrant=False)


def run_chain(blocks, x, way):
    """The blocks one after the other, in the way that was asked for."""
    word, *arguments = way
    if word == "every":
        size = int(arguments[0])
        for start in range(0, len(blocks), size):
            x = again(functools.partial(run_chain, blocks[start : start + size], way=["plain"]), x)
        return x
    for index, block in enumerate(blocks):
        if word == "first" and index < int(arguments[0]):
            x = again(block, x)
        elif word == "selective":
            x = again(block, x, context_fn=functools.partial(create_selective_checkpoint_contexts, saving(arguments)))
        elif word == "parts":
            x = block(x, arguments)
        else:
            x = block(x)
    return x


def saving(names):
    """A policy for selective checkpointing."""
    operators = {getattr(torch.ops.aten, name).default for name in names}

    def policy(context, operator, *arguments, **named):
        return CheckpointPolicy.MUST_SAVE if operator in operators else CheckpointPolicy.PREFER_RECOMPUTE

    return policy


# ---- the models ------------------------------------------------------------------------------------------------------


class GptBlock(nn.Module):
    def __init__(self, width, heads, dropout, fused):
        super().__init__()
        self.heads, self.dropout, self.fused = heads, dropout, fused
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def core(self, q, k, v):
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=0.0, is_causal=True)
        length = q.shape[-2]
        scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float("-inf"))
        return F.dropout(scores.softmax(-1), self.dropout) @ v

    def mlp(self, x):
        return F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout)

    def forward(self, x, parts=()):
        batch, length, width = x.shape
        heads = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        y = again(self.core, q, k, v) if "core" in parts else self.core(q, k, v)
        x = x + F.dropout(self.project(y.transpose(1, 2).reshape(batch, length, width)), self.dropout)
        return x + (again(self.mlp, x) if "mlp" in parts else self.mlp(x))


class Gpt(nn.Module):
    def __init__(self, fused, layers=8, width=256, heads=8, length=256, vocabulary=256, dropout=0.1):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads, dropout, fused) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, tokens, targets, way):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        x = run_chain(self.blocks, x, way)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def convolution(inputs, outputs, size, stride=1):
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.norm1 = convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.second, self.norm2 = convolution(outputs, outputs, 3), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        inner = F.relu(self.norm1(self.first(x)))
        return F.relu(self.norm2(self.second(inner)) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        chain = [nn.Sequential(convolution(3, width, 3), nn.BatchNorm2d(width), nn.ReLU())]
        inputs = width
        for outputs, stride in ((width, 1), (2 * width, 2), (4 * width, 2)):
            for index in range(3):
                chain.append(ResidualBlock(inputs, outputs, stride if index == 0 else 1))
                inputs = outputs
        self.chain, self.head = nn.ModuleList(chain), nn.Linear(inputs, 10)

    def forward(self, images, classes, way):
        x = run_chain(self.chain, images, way)
        return F.cross_entropy(self.head(x.mean((2, 3))), classes)


def double_convolution(inputs, outputs):
    layers = []
    for size in (inputs, outputs):
        layers += [convolution(size, outputs, 3), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        sizes = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(double_convolution(i, o) for i, o in zip([3] + sizes, sizes[:depth]))
        self.middle = double_convolution(sizes[depth - 1], sizes[depth])
        self.lift = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in zip(sizes[1:], sizes))
        self.up = nn.ModuleList(double_convolution(2 * size, size) for size in sizes[:depth])
        self.head = nn.Conv2d(width, 2, 1)

    def rise(self, level, x, skip):
        return self.up[level](torch.cat([skip, self.lift[level](x)], 1))

    def forward(self, x, classes, way):
        run = again if way[0] == "levels" else lambda function, *inputs: function(*inputs)
        skips = []
        for level in self.down:
            x = run(level, x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = run(self.middle, x)
        for level in reversed(range(len(self.down))):
            x = run(functools.partial(self.rise, level), x, skips.pop())
        return F.cross_entropy(self.head(x), classes)


class Lstm(nn.Module):
    def __init__(self, inputs=128, hidden=256):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(inputs, hidden), nn.Linear(hidden, inputs)

    def cells(self, x, h, c):
        for t in range(x.shape[0]):
            h, c = self.cell(x[t], (h, c))
        return h, c

    def forward(self, x, way):
        h = c = torch.zeros(x.shape[1], self.cell.hidden_size)
        if way[0] == "every":
            size = int(way[1])
            for start in range(0, x.shape[0], size):
                h, c = again(self.cells, x[start : start + size], h, c)
        else:
            h, c = self.cells(x, h, c)
        return self.head(h).pow(2).mean()


def make_model(name, large=False):
    """The model and its batch; as the benchmarks have it, or large enough for a GPU to be busy."""
    torch.manual_seed(MODEL_SEED)
    if name in ("gpt", "gpt-sdpa"):
        sizes = dict(layers=12, width=768, heads=12, length=512) if large else dict(length=256)
        shape = (16 if large else 4, sizes["length"])
        return Gpt(fused=name == "gpt-sdpa", **sizes), [torch.randint(256, shape), torch.randint(256, shape)]
    count, side = (64, 128) if large else (32, 64)
    if name == "resnet":
        model = ResNet(width=64 if large else 16)
        return model, [torch.randn(count, 3, side, side), torch.randint(10, (count,))]
    if name == "unet":
        model = UNet(width=32 if large else 16)
        return model, [torch.randn(count, 3, side, side), torch.randint(2, (count, side, side))]
    if name == "lstm":
        inputs, hidden = (512, 1024) if large else (128, 256)
        return Lstm(inputs, hidden), [torch.randn(200, 128 if large else 32, inputs)]
    raise ValueError(f"there is no model '{name}'")
