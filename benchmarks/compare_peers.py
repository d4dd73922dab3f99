"""PyTorch's own ways to save memory, one training step at a time: the Python side of `./bench compare`.

One JSON request a line on stdin, one JSON answer a line on stdout:

    {"do": "hello"}                       {"torch": "2.13.0", "python": "3.11.7"}
    {"do": "model", "model": "gpt"}       {}; builds it anew, and takes a plain step that others are compared with
    {"do": "prepare", "way": "first 4"}   {}; two steps that are not measured, compiling included
    {"do": "step", "way": "first 4"}      {"seconds": 1.1, "peak": 187600000, "gradient_error": 0.0, "buffers_equal": true}

What fails is answered with {"error": "..."}. `peak` is in bytes of the heap above the level at the start of the step, when
parameters exist and gradients do not; benchmarks/compare_meter counts them. `gradient_error` is null if every bit is that of
the plain step, otherwise the largest difference as a share of the largest gradient of the same parameter.

The models are those of training_models.cpp. A way is a word and its arguments:

    plain
    first K                 checkpoint() around each of the first K blocks
    every K                 checkpoint() around every K blocks (in lstm: cells)
    levels                  checkpoint() around each level of the U-Net, up-convolution and concatenation inside
    parts core|mlp ...      checkpoint() around these parts of each block
    selective OPERATOR ...  checkpoint() around each block, with a policy that saves what these operators make
    budget SHARE            torch.compile(backend="aot_eager") with an activation memory budget
"""

import copy
import ctypes
import functools
import gc
import json
import math
import os
import platform
import sys
import time

# What is printed by anybody must not get between the answers.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
except Exception as error:  # whatever keeps torch from being imported: the caller tries another Python
    print(json.dumps({"error": f"torch cannot be imported: {error}"}), file=ANSWERS, flush=True)
    sys.exit(0)

MODEL_SEED, STEP_SEED = 0, 1
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


def make_model(name):
    """The model and its batch."""
    torch.manual_seed(MODEL_SEED)
    if name in ("gpt", "gpt-sdpa"):
        return Gpt(fused=name == "gpt-sdpa"), [torch.randint(256, (4, 256)), torch.randint(256, (4, 256))]
    if name == "resnet":
        return ResNet(), [torch.randn(32, 3, 64, 64), torch.randint(10, (32,))]
    if name == "unet":
        return UNet(), [torch.randn(32, 3, 64, 64), torch.randint(2, (32, 64, 64))]
    if name == "lstm":
        return Lstm(), [torch.randn(200, 32, 128)]
    raise ValueError(f"there is no model '{name}'")


# ---- steps -----------------------------------------------------------------------------------------------------------


class Heap:
    """The meter that was put in front of this process."""

    def __init__(self):
        library = ctypes.CDLL(None)
        self.mark, self.live, self.peak = library.reprise_heap_mark, library.reprise_heap_live, library.reprise_heap_peak
        for function in (self.live, self.peak):
            function.restype = ctypes.c_longlong


class Training:
    """Every step starts from the same state, with the same seed."""

    def __init__(self, name, heap):
        self.heap = heap
        self.model, self.batch = make_model(name)
        self.parameters = list(self.model.parameters())
        self.buffers = list(self.model.buffers())
        self.buffers_at_start = copy.deepcopy(self.buffers)
        self.compiled = {}
        self.reference = None
        self.step("plain")
        self.reference = self.outcome()

    def outcome(self):
        return [p.grad.clone() for p in self.parameters], [b.clone() for b in self.buffers]

    def prepare(self, way):
        if way.startswith("budget "):
            import torch._functorch.config as functorch_config
            import torch._inductor.config as inductor_config

            functorch_config.enable_autograd_cache = False
            inductor_config.fallback_random = True  # eager's random numbers, so that gradients can be compared
            share = way.split()[1]
            # torch.compile remembers by code object, so that each budget has one of its own.
            function = lambda model, *batch: model(*batch, ["plain"])
            function.__code__ = function.__code__.replace(co_name="budget_" + share.replace(".", "_"))
            self.compiled[way] = torch.compile(function, backend="aot_eager")
            with functorch_config.patch(activation_memory_budget=float(share)):
                self.run(way)
        for _ in range(2):
            self.run(way)

    def loss(self, way):
        if way in self.compiled:
            return self.compiled[way](self.model, *self.batch)
        return self.model(*self.batch, way.split())

    def run(self, way):
        """CPU seconds and peak bytes of one step."""
        self.model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for buffer, start in zip(self.buffers, self.buffers_at_start):
                buffer.copy_(start)
        gc.collect()
        torch.manual_seed(STEP_SEED)
        level = self.heap.live()
        self.heap.mark()
        start = time.process_time()
        self.loss(way).backward()
        seconds = time.process_time() - start
        return seconds, self.heap.peak() - level

    def step(self, way):
        seconds, peak = self.run(way)
        answer = {"seconds": seconds, "peak": peak, "gradient_error": None, "buffers_equal": True}
        if self.reference:
            gradients, buffers = self.reference
            got = [p.grad for p in self.parameters]
            if not all(torch.equal(a, b) for a, b in zip(got, gradients)):
                answer["gradient_error"] = max(relative_error(a, b) for a, b in zip(got, gradients))
            answer["buffers_equal"] = all(torch.equal(a, b) for a, b in zip(self.buffers, buffers))
        return answer


def relative_error(value, right):
    error = ((value - right).abs().max() / right.abs().max().clamp_min(1e-30)).item()
    return error if math.isfinite(error) else sys.float_info.max  # JSON has no infinity


def main():
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    heap = Heap()
    training = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request["do"] == "hello":
                answer = {"torch": torch.__version__.split("+")[0], "python": platform.python_version()}
            elif request["do"] == "model":
                training = None
                gc.collect()
                training = Training(request["model"], heap)
                answer = {}
            elif request["do"] == "prepare":
                training.prepare(request["way"])
                answer = {}
            else:
                answer = training.step(request["way"])
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        print(json.dumps(answer), file=ANSWERS, flush=True)


if __name__ == "__main__":
    main()
