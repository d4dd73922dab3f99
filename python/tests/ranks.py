"""What one of two processes does for test_distributed.py: it trains plainly and in sessions, and prints what came of it.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=... python ranks.py CASE[,SHARE ...] ...
"""
import contextlib
import gc
import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import torch
import torch.distributed as dist
from models import Transformer
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from trained import Record, digest

import reprise
from reprise import _core

STEPS = 5


def loss_of(model: torch.nn.Module, step: int) -> torch.Tensor:
    """Each rank has batches of its own."""
    generator = torch.Generator().manual_seed(2 * step + dist.get_rank())
    tokens = torch.randint(0, 50, (8, 48), generator=generator)
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def replicated(**options: Any) -> torch.nn.Module:
    # Small buckets, so that there are several, and they are recomputed after the first step.
    return DistributedDataParallel(Transformer(blocks=4, width=32), bucket_cap_mb=0.02, **options)


def hooked() -> torch.nn.Module:
    def average(calls: list, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        calls.append(bucket.index())
        done = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True).get_future()
        return done.then(lambda future: future.value()[0])

    model = replicated()
    calls: list[int] = []
    model.register_comm_hook(calls, average)
    model.calls = calls
    return model


def sharded(**options: Any) -> torch.nn.Module:
    model = Transformer(blocks=4, width=32)
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def half_sharded() -> torch.nn.Module:
    return sharded(mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))


def checkpointed() -> torch.nn.Module:
    """torch's own checkpoint around every layer that is sharded, as is usual."""
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model = Transformer(blocks=4, width=32)
    for index, block in enumerate(model.blocks):
        model.blocks[index] = fully_shard(checkpoint_wrapper(block))
    return fully_shard(model)


CASES: dict[str, Any] = {
    "buckets_rebuilt": replicated,
    "static_graph": lambda: replicated(static_graph=True),
    "gradient_as_bucket_view": lambda: replicated(gradient_as_bucket_view=True),
    "no_sync": replicated,
    "comm_hook": hooked,
    "fully_shard": sharded,
    "kept_until_backward": lambda: sharded(reshard_after_forward=False),
    "mixed_precision": half_sharded,
    "checkpointed": checkpointed,
}


def local(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


class Training:
    """A model from a fixed seed, and what came of training it."""

    def __init__(self, case: str, session: reprise.Session | None) -> None:
        gc.collect()
        torch.manual_seed(7)
        self.model, self.session = CASES[case](), session
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.parts = 3 if case == "no_sync" else 1
        torch.manual_seed(100 + dist.get_rank())
        self.record = Record()
        self.followed: list[bool] = []
        self.seconds: list[float] = []

    def step(self) -> None:
        step = len(self.record.steps)
        self.optimizer.zero_grad(set_to_none=True)
        _core.mark_peak()
        self.record.before.append(_core.live_bytes())
        start = time.thread_time()
        losses = []
        with self.session.step() if self.session else contextlib.nullcontext():
            for part in range(self.parts):
                last = part == self.parts - 1
                with contextlib.nullcontext() if last else self.model.no_sync():
                    loss = loss_of(self.model, step * self.parts + part)
                    loss.backward()
                losses.append(loss.item())
                del loss
            self.optimizer.step()
        self.seconds.append(time.thread_time() - start)
        self.record.peaks.append(_core.peak_bytes())
        self.record.steps.append(
            {
                "losses": losses,
                "gradients": digest(local(p.grad) for p in self.model.parameters()),
                "parameters": digest(local(p) for p in self.model.parameters()),
                "random": digest([torch.get_rng_state()]),
                "hook": list(getattr(self.model, "calls", [])),
            }
        )
        if self.session:
            self.session.wait_for_plan()
            self.followed.append(self.session.summary()["followed_plan"])

    def run(self) -> "Training":
        for _ in range(STEPS):
            self.step()
        return self


def compare(case: str, shares: list[float]) -> dict[str, Any]:
    plain = Training(case, None).run().record
    result: dict[str, Any] = {"peaks": plain.peaks, "before": plain.before}
    for share in [0.0, *shares]:
        budget = plain.budget(share) if share else None
        session = reprise.Session(budget, evict_everything=not share, planning_seconds=0.1)
        try:
            trained = Training(case, session).run()
        except reprise.SessionError as error:
            result[str(share)] = {"error": str(error), "kind": type(error).__name__}
            continue
        summary = session.summary()
        result[str(share)] = {
            "same": trained.record.steps == plain.steps,
            "budget": budget,
            "peak": max(trained.record.peaks),
            "followed": trained.followed,
            "replays": summary["replays"],
            "divergences": summary["divergences"],
            "last_divergences": summary["last_divergences"],
        }
        del trained
    return result


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for argument in sys.argv[1:]:
        case, *shares = argument.split(",")
        print(json.dumps({"case": case, **compare(case, [float(share) for share in shares])}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
