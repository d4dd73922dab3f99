"""Trains a small GPT whose parameters are spread over several processes, each within a budget of its own.

    torchrun --nproc-per-node 2 fsdp_gpt.py [--budget 0.6x] [--steps 8]
"""
from ddp_gpt import main
from torch import nn
from torch.distributed.fsdp import fully_shard


def shard(model: nn.Module) -> nn.Module:
    for block in model.blocks:
        fully_shard(block)  # its parameters are gathered while it runs, and freed after it
    return fully_shard(model)


if __name__ == "__main__":
    main(shard, __doc__.splitlines()[0])
