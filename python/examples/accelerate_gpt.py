"""Trains a small GPT with a loop of `accelerate`, plainly and within a share of the memory, and compares every bit.

    python accelerate_gpt.py [--budget 0.6x] [--steps 8]

Nothing of accelerate's is wrapped: a step of the session goes around everything that belongs to one step of the optimizer,
the batches that are accumulated included.
"""
import argparse
import contextlib

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn import functional as F
from train_gpt import GPT

import reprise

ACCUMULATED = 2


def train(session: reprise.Session | None, steps: int) -> tuple[list[float], list[torch.Tensor]]:
    """Returns the losses, and the parameters in the end."""
    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATED)
    with open(__file__, "rb") as file:
        text = torch.tensor([byte & 127 for byte in file.read()])
    rows = text[: len(text) // 129 * 129].view(-1, 129)
    rows = rows.repeat(1 + 8 * steps * ACCUMULATED // len(rows), 1)
    model = GPT()
    model, optimizer, loader = accelerator.prepare(
        model,
        torch.optim.AdamW(model.parameters(), lr=1e-3),
        torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True, drop_last=True),
    )
    batches = iter(loader)
    losses = []
    for _ in range(steps):
        with session.step() if session else contextlib.nullcontext():
            for _ in range(ACCUMULATED):
                batch = next(batches)
                with accelerator.accumulate(model):
                    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
                    accelerator.backward(loss)
                    optimizer.step()
                    optimizer.zero_grad()
                losses.append(loss.item())
                del loss
    return losses, [parameter.detach() for parameter in accelerator.unwrap_model(model).parameters()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="0.6x", help="bytes, like 100MiB, or a multiple of what it needs; default: 0.6x")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()

    watched = reprise.Session(name="plain")
    losses, parameters = train(watched, options.steps)
    peak = watched.summary()["peak_bytes"]
    del watched
    session = reprise.Session(reprise.planning.bytes_of(options.budget, peak), name="within the budget")
    within, parameters_within = train(session, options.steps)
    same = within == losses and all(torch.equal(a, b) for a, b in zip(parameters, parameters_within))
    print(f"plain:  peak {peak / 2**20:.1f} MiB, last loss {losses[-1]:.4f}")
    print(f"within: peak {session.summary()['peak_bytes'] / 2**20:.1f} MiB, last loss {within[-1]:.4f}")
    print("every loss and every parameter are identical, bit for bit" if same else "THE RESULTS DIFFER")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
