"""Trains a small GPT on this file's own text: plainly, and within a share of the memory, and compares every bit.

    python train_gpt.py [--budget 0.5x] [--steps 12]
"""
import argparse
import contextlib
import time

import torch
from torch import nn
from torch.nn import functional as F

import reprise


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, dropout=0.1, batch_first=True)
        self.mix = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        y = self.norm_1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mix(self.norm_2(x))


class GPT(nn.Module):
    def __init__(self, width: int = 128, blocks: int = 4, heads: int = 4, length: int = 128) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(128, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.head = nn.Linear(width, 128)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))))


def train(session: reprise.Session | None, steps: int) -> tuple[list[float], list[torch.Tensor], float]:
    """Returns the losses, the parameters in the end, and the CPU seconds of a step."""
    torch.manual_seed(0)
    with open(__file__, "rb") as file:
        text = torch.tensor([byte & 127 for byte in file.read()])
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    start = time.thread_time()
    for _ in range(steps):
        begins = torch.randint(0, len(text) - 129, (24,))
        batch = torch.stack([text[i : i + 129] for i in begins])
        with session.step() if session else contextlib.nullcontext():
            loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
        del loss
    return losses, [p.detach() for p in model.parameters()], (time.thread_time() - start) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="0.5x", help="bytes, like 100MiB, or a multiple of what it needs; default: 0.5x")
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()

    watched = reprise.Session(name="plain")
    losses, parameters, seconds = train(watched, options.steps)
    peak = watched.summary()["peak_bytes"]
    print(f"plain:      {seconds:.3f} s a step, peak {peak / 2**20:.1f} MiB, last loss {losses[-1]:.4f}")
    del watched

    session = reprise.Session(reprise.planning.bytes_of(options.budget, peak), name="within the budget")
    within, parameters_within, seconds_within = train(session, options.steps)
    summary = session.summary()
    print(f"in {session.budget / 2**20:5.1f} MiB: {seconds_within:.3f} s a step, peak {summary['peak_bytes'] / 2**20:.1f} MiB, "
          f"last loss {within[-1]:.4f}")
    same = within == losses and all(torch.equal(a, b) for a, b in zip(parameters, parameters_within))
    print("every loss and every parameter are identical, bit for bit" if same else "THE RESULTS DIFFER")
    print()
    print(session)
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
