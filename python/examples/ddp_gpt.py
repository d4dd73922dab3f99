"""Trains a small GPT in several processes, each within a budget of its own, and compares every bit with plain training.

    torchrun --nproc-per-node 2 ddp_gpt.py [--budget 0.5x] [--steps 8]
"""
import argparse
import contextlib
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from train_gpt import GPT

import reprise


def train(wrap: Callable[[nn.Module], nn.Module], session: reprise.Session | None, steps: int) -> list[float | torch.Tensor]:
    """Returns the losses and the parameters of this rank in the end."""
    torch.manual_seed(0)  # the same model everywhere
    model = wrap(GPT())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(100 + dist.get_rank())  # other batches and other masks of dropout
    results: list[float | torch.Tensor] = []
    for _ in range(steps):
        batch = torch.randint(0, 128, (16, 1)) + torch.arange(97) & 127
        with session.step() if session else contextlib.nullcontext():
            loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            loss.backward()  # what was evicted is replayed here, and gradients go to the other ranks
            optimizer.step()
            optimizer.zero_grad()
        results.append(loss.item())
        del loss
    return results + [p.to_local() if hasattr(p, "to_local") else p.detach() for p in model.parameters()]


def main(wrap: Callable[[nn.Module], nn.Module], what: str) -> None:
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--budget", default="0.5x", help="of each rank: bytes, or a multiple of what it needs; default: 0.5x")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")

    watched = reprise.Session(name="plain")
    plain = train(wrap, watched, options.steps)
    peak = watched.summary()["peak_bytes"]
    session = reprise.Session(reprise.planning.bytes_of(options.budget, peak), name=f"rank {dist.get_rank()}")
    within = train(wrap, session, options.steps)
    same = all(torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(plain, within))

    for rank in range(dist.get_world_size()):  # one after the other
        dist.barrier()
        if rank == dist.get_rank():
            print(f"rank {rank}: plain peak {peak / 2**20:.1f} MiB, within {session.budget / 2**20:.1f} MiB:",
                  "every loss and every parameter are identical, bit for bit" if same else "THE RESULTS DIFFER")
            print(session, flush=True)
    dist.destroy_process_group()
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main(DistributedDataParallel, __doc__.splitlines()[0])
