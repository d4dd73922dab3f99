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
import gc
import json
import math
import os
import platform
import sys
import time

# What else is printed must not get between the answers.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

try:
    import torch
    from peer_models import make_model
except Exception as error:  # whatever keeps torch from being imported: the caller tries another Python
    print(json.dumps({"error": f"torch cannot be imported: {error}"}), file=ANSWERS, flush=True)
    sys.exit(0)

STEP_SEED = 1


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
