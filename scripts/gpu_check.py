#!/usr/bin/env python3
"""Checks what needs a GPU, in about ten minutes: whether training inside a budget is the plain training,
bit for bit, also with memory of the host below it; whether its peaks keep the budget; how long steps take beside plain
ones and beside torch's checkpoint().

    pip install 'torch==2.13.*'                   # one that is built for CUDA, as on PyPI
    pip install nvidia-cuda-crt                   # headers that torch does not bring, where CUDA itself is not installed
    pip install .                                 # Reprise, for that
    python3 scripts/gpu_check.py                  # writes gpu-check.json
    python3 scripts/gpu_check.py --help

Every run trains the same steps from the same start, with Adam. Bits are those of every loss, and of parameters,
gradients, buffers and the generator in the end. Peaks are those of torch's allocator, not of Reprise's; the first step,
which makes Adam's state, is not in them. docs/devices.md says what is known already, and where to send the file.
"""

import argparse
import copy
import ctypes
import gc
import hashlib
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or cuBLAS may add in another order each time
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

import torch  # noqa: E402
from peer_models import make_model  # noqa: E402

try:
    import reprise
except ImportError as error:
    sys.exit(f"gpu_check: the package reprise cannot be imported ({error}); type: pip install .")

# Models, and the way to checkpoint each that compare_peers.py would take.
MODELS = {"gpt": "every 1", "gpt-sdpa": "every 1", "gpt-autocast": "every 1", "resnet": "every 1", "unet": "levels",
          "lstm": "every 14"}
MIB = 1 << 20


# ---- what is measured ------------------------------------------------------------------------------------------------


class Device:
    """What differs between an accelerator and the CPU, where the script can be tried as well."""

    def __init__(self, name):
        self.name = torch.device(name)
        self.is_cuda = self.name.type == "cuda"
        if self.is_cuda and not torch.cuda.is_available():
            sys.exit("gpu_check: torch finds no CUDA device; --device cpu tries the script without one")
        torch.set_default_device(self.name)

    def facts(self):
        facts = {"device": str(self.name), "torch": torch.__version__, "reprise": reprise.__version__,
                 "python": platform.python_version(), "system": platform.platform()}
        if self.is_cuda:
            properties = torch.cuda.get_device_properties(self.name)
            facts |= {"gpu": properties.name, "capability": f"{properties.major}.{properties.minor}",
                      "memory": properties.total_memory, "cuda": torch.version.cuda,
                      "cudnn": torch.backends.cudnn.version() if torch.backends.cudnn.enabled else None,
                      "allocator": torch.cuda.memory.get_allocator_backend(),
                      "allocator_settings": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")}
        return facts

    def clean(self):
        gc.collect()
        if self.is_cuda:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()

    def mark_peaks(self):
        if self.is_cuda:
            torch.cuda.reset_peak_memory_stats()

    def peaks(self, session):
        """Allocated and reserved. The CPU's allocator has no statistics but Reprise's."""
        if self.is_cuda:
            return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        return session.summary()["peak_bytes"] if session else None, None

    def now(self):
        if not self.is_cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, start, end):
        if not self.is_cuda:
            return end - start
        end.synchronize()
        return start.elapsed_time(end) / 1000

    def generator(self):
        own = torch.cuda.default_generators[self.name.index or 0] if self.is_cuda else torch.default_generator
        return own.get_state()

    def limit_reserved(self, budget):
        """None: no limit."""
        share = 1.0 if budget is None else budget / torch.cuda.get_device_properties(self.name).total_memory
        torch.cuda.set_per_process_memory_fraction(share, self.name)


def add_bits(digest, tensor):
    if tensor is not None:
        host = tensor.detach().cpu().contiguous()
        digest.update(ctypes.string_at(host.data_ptr(), host.numel() * host.element_size()))


class Training:
    """One model. Every run begins with the same parameters."""

    def __init__(self, device, name, large, warm, timed):
        self.device, self.autocast, self.warm, self.timed = device, name.endswith("-autocast"), warm, timed
        self.model, self.batch = make_model(name.removesuffix("-autocast"), large)
        self.start = copy.deepcopy(self.model.state_dict())

    def loss(self, way):
        with torch.autocast(self.device.name.type, torch.bfloat16, enabled=self.autocast):
            return self.model(*self.batch, way.split())

    def run(self, way="plain", session=None):
        """The outcome of all steps. Raises reprise.BudgetError."""
        self.model.load_state_dict(self.start)
        self.model.zero_grad(set_to_none=True)
        adam = torch.optim.Adam(self.model.parameters(), 1e-4)
        self.device.clean()
        torch.manual_seed(1)
        losses, times = [], []
        for index in range(1 + self.warm + self.timed):
            if index == 1:
                self.device.mark_peaks()
            begin = self.device.now()
            if session:
                with session.step():
                    loss = self.step(way, adam)
            else:
                loss = self.step(way, adam)
            times.append((begin, self.device.now()))
            losses.append(loss)
            if session and index <= self.warm:
                session.wait_for_plan()
        seconds = [self.device.seconds(*pair) for pair in times][1 + self.warm :]
        allocated, reserved = self.device.peaks(session)
        return {"bits": self.bits(losses), "allocated": allocated, "reserved": reserved,
                "milliseconds": round(1000 * statistics.median(seconds), 3)}

    def step(self, way, adam):
        adam.zero_grad(set_to_none=True)
        loss = self.loss(way)
        loss.backward()
        adam.step()
        return loss.detach().clone()

    def bits(self, losses):
        digest = hashlib.sha256()
        for tensor in [*losses, *self.model.state_dict().values(), self.device.generator()]:
            add_bits(digest, tensor)
        for parameter in self.model.parameters():
            add_bits(digest, parameter.grad)
        return digest.hexdigest()


# ---- what is asked ---------------------------------------------------------------------------------------------------


def in_budget(training, device, plain, budget, fraction=False, host=None):
    """A run of Reprise's; `host` is the number of bytes of host memory below the device."""
    answer = {"budget": budget, "share": round(budget / plain["allocated"], 3), "fraction": fraction, "host": host}
    try:
        session = reprise.Session(budget=budget, device=str(device.name), host=host)
        device.clean()
        if fraction:
            device.limit_reserved(budget)
        answer |= training.run(session=session)
    except reprise.BudgetError as error:
        return answer | {"refused": str(error)}
    except Exception as error:
        return answer | {"error": f"{type(error).__name__}: {error}"}
    finally:
        if fraction:
            device.limit_reserved(None)
    summary = session.summary()
    peak = answer["reserved" if fraction else "allocated"]
    answer |= {"kept": peak <= budget, "equal": answer.pop("bits") == plain["bits"],
               "time": round(answer["milliseconds"] / plain["milliseconds"], 3)}
    names = ("replays", "followed_plan", "promised_overhead", "verified", "divergences", "planning_seconds",
             "host_put_last_step_bytes", "host_got_last_step_bytes", "host_peak_bytes")
    return answer | {name: summary[name] for name in names}


def examine(device, name, options):
    training = Training(device, name, options.size == "large", options.warm, options.timed)
    measure = reprise.Session(device=str(device.name)) if not device.is_cuda else None
    plain = training.run(session=measure)
    again = training.run()
    answer = {"model": name, "plain": {key: value for key, value in plain.items() if key != "bits"},
              "repeats": plain["bits"] == again["bits"],
              "plain_again": round(again["milliseconds"] / plain["milliseconds"], 3)}
    budgets = [int(share * plain["allocated"]) for share in options.budgets]
    if device.is_cuda:
        checkpoint = training.run(MODELS[name])
        answer["checkpoint"] = {"way": MODELS[name], "allocated": checkpoint["allocated"],
                                "reserved": checkpoint["reserved"], "equal": checkpoint["bits"] == plain["bits"],
                                "time": round(checkpoint["milliseconds"] / plain["milliseconds"], 3)}
        if checkpoint["allocated"] < plain["allocated"]:
            budgets.insert(0, checkpoint["allocated"])  # as much memory as checkpoint() takes: times can be compared
    answer["reprise"] = [in_budget(training, device, plain, budget) for budget in budgets]
    if device.is_cuda:
        middle = sorted(budgets)[len(budgets) // 2]
        answer["reprise"].append(in_budget(training, device, plain, middle, fraction=True))
        answer["reprise"].append(in_budget(training, device, plain, middle, host=plain["allocated"]))
    return answer


def graph_in_a_step(device):
    """A graph that is captured while a step is open, as those who mix both would."""
    session = reprise.Session(budget=4 << 30, device=str(device.name))
    weight = torch.randn(256, 256, requires_grad=True)
    x = torch.randn(64, 256)
    try:
        torch.tanh(x @ weight).sum().backward()
        with session.step():
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = torch.tanh(x @ weight).detach()
            graph.replay()
            torch.tanh(x @ weight).sum().backward()
        torch.cuda.synchronize()
        return {"works": bool(torch.equal(y, torch.tanh(x @ weight)))}
    except Exception as error:
        return {"works": False, "error": f"{type(error).__name__}: {error}"}


# ---- what is said ----------------------------------------------------------------------------------------------------


def row(model, what, run, verdict):
    peaks = [f"{run[key] / MIB:10.1f}" if run.get(key) is not None else f"{'':10}" for key in ("allocated", "reserved")]
    when = f"{run['time']:7.3f}" if "time" in run else f"{'':7}"
    print(f"{model:13} {what:24} {peaks[0]} {peaks[1]} {when}  {verdict}", flush=True)


def print_answer(answer):
    """Prints the rows of a model; returns what did not hold."""
    failures, name = [], answer["model"]
    row(name, "plain", answer["plain"] | {"time": 1.0}, "" if answer["repeats"] else "two plain runs differ")
    if "checkpoint" in answer:
        row(name, f"checkpoint {answer['checkpoint']['way']}", answer["checkpoint"],
            "same bits" if answer["checkpoint"]["equal"] else "other bits")
    for run in answer["reprise"]:
        if "refused" in run:
            verdict = "does not fit"
        elif "error" in run:
            verdict = run["error"][:60]
        else:
            verdict = "budget kept, " if run["kept"] else "BUDGET PASSED, "
            verdict += "same bits" if run["equal"] else "OTHER BITS"
            if run["host"] is not None:
                verdict += f", {run['host_put_last_step_bytes'] / MIB:.0f} MiB to the host"
        bad = "error" in run or run.get("kept") is False or (answer["repeats"] and run.get("equal") is False)
        if bad:
            failures.append(f"{name} in {run['share']}: {verdict}")
        how = ", fraction" if run["fraction"] else ", host" if run["host"] is not None else ""
        row(name, f"reprise {run['share']:.2f}{how}", run, verdict)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0", help="cpu: tries the script, without checkpoint()")
    parser.add_argument("--models", default=",".join(MODELS), help="some of %(default)s")
    parser.add_argument("--budgets", default="0.7,0.5,0.35", help="shares of the plain peak")
    parser.add_argument("--size", choices=["large", "small"], default="large", help="small: as in the benchmarks")
    parser.add_argument("--warm", type=int, default=5, metavar="STEPS", help="that are not timed; plans are waited for")
    parser.add_argument("--timed", type=int, default=10, metavar="STEPS")
    parser.add_argument("--without-cudnn", action="store_true", help="convolutions without it")
    parser.add_argument("--output", type=Path, default=Path("gpu-check.json"))
    options = parser.parse_args()
    options.budgets = [float(share) for share in options.budgets.split(",")]
    unknown = set(options.models.split(",")) - set(MODELS)
    if unknown:
        parser.error(f"--models: there is no {', '.join(sorted(unknown))}")

    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    torch.backends.cudnn.enabled = not options.without_cudnn
    torch.use_deterministic_algorithms(True, warn_only=True)
    device = Device(options.device)
    try:
        reprise.Session(device=str(device.name))
    except ValueError as error:  # it was built without CUDA, or without CUDA's headers
        sys.exit(f"gpu_check: there can be no session on {device.name}: {error}")
    began = time.time()
    result = {"facts": device.facts(), "size": options.size, "models": []}
    print(f"{result['facts'].get('gpu', 'cpu')}, torch {torch.__version__}\n")
    print(f"{'model':13} {'way':24} {'allocated':>10} {'reserved':>10} {'time':>7}   (MiB; time of a step, plain is 1)")
    failures = []
    for name in options.models.split(","):
        answer = examine(device, name, options)
        result["models"].append(answer)
        failures += print_answer(answer)
    if device.is_cuda:
        result["graph_in_a_step"] = graph_in_a_step(device)
        if not result["graph_in_a_step"]["works"]:
            failures.append(f"a graph in a step: {result['graph_in_a_step'].get('error', 'other values')}")
    result |= {"failures": failures, "seconds": round(time.time() - began)}
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    print("\n" + ("\n".join(failures) if failures else "everything held"))
    print(f"{options.output} has all of it: docs/devices.md says where to send it")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
