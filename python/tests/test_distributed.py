"""Several processes that train together: the same bits as without Reprise, and one end for all of them."""
import json
import pathlib
import re
import socket
import subprocess
import sys

import pytest
import torch.distributed
from forked import run_together

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="this torch has no gloo"
    ),
]

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return str(listening.getsockname()[1])


def two_ranks(program, *arguments):
    """Runs a program as two processes, and returns what became of each."""
    together = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    return run_together(program, arguments, [together | {"RANK": rank, "LOCAL_RANK": rank} for rank in "01"])


def results(*cases):
    """By case, what both ranks say came of it."""
    found = {}
    for code, out, errors in two_ranks("import ranks; ranks.main()", *cases):
        assert code == 0, errors
        for line in out.splitlines():
            result = json.loads(line)
            found.setdefault(result["case"], []).append(result)
    assert all(len(both) == 2 for both in found.values())
    return found


def expect_same_bits(results_of_both, shares):
    for rank, result in enumerate(results_of_both):
        for share in ["0.0", *shares]:
            run = result[share]
            assert run.get("same"), (rank, share, run)
            assert run["budget"] is None or run["peak"] <= run["budget"]


# ---- DistributedDataParallel ----

DDP = ["buckets_rebuilt", "static_graph", "gradient_as_bucket_view", "no_sync", "comm_hook"]


@pytest.fixture(scope="module")
def ddp():
    return results(*(f"{case},0.6,0.4" for case in DDP))


@pytest.mark.parametrize("case", DDP)
def test_ddp_has_the_same_bits_with_everything_evicted_and_within_budgets(ddp, case):
    expect_same_bits(ddp[case], ["0.6", "0.4"])


@pytest.mark.parametrize("case", [case for case in DDP if case != "no_sync"])
def test_ddp_follows_its_plan_from_the_step_after_the_buckets_were_recomputed(ddp, case):
    for result in ddp[case]:
        for share in ["0.6", "0.4"]:
            assert all(result[share]["followed"][3:]), result[share]
            assert result[share]["divergences"] <= 2, result[share]


# ---- fully_shard ----

FSDP = {"fully_shard": ["0.7", "0.5"], "kept_until_backward": ["0.7"], "mixed_precision": ["0.7"], "checkpointed": []}


@pytest.fixture(scope="module")
def fsdp():
    return results(*(",".join([case, *shares]) for case, shares in FSDP.items()))


@pytest.mark.parametrize("case", FSDP)
def test_fully_shard_has_the_same_bits_with_everything_evicted_and_within_budgets(fsdp, case):
    expect_same_bits(fsdp[case], FSDP[case])


def test_fully_shard_follows_its_plan(fsdp):
    for result in fsdp["fully_shard"]:
        for share in FSDP["fully_shard"]:
            assert all(result[share]["followed"][3:]), result[share]


def test_what_fully_shard_frees_stays_freed(fsdp):
    for result in fsdp["fully_shard"]:  # with everything evicted: less than plain training, which keeps it all
        assert result["0.0"]["peak"] < max(result["peaks"])


# ---- one end for all ----

ONE_FAILS = """
import sys, torch, torch.distributed as dist, reprise
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.Linear(64, 64)
session = reprise.Session(reprise.live_bytes() + (4 << 20), planning_seconds=0, end_together="alone" not in sys.argv)
try:
    for step in range(4):
        rows = 1 << 20 if step == 2 and rank == int(sys.argv[1]) else 64
        with session.step():
            model(torch.zeros(1, 64).expand(rows, 64)).sum().backward()
            dist.all_reduce(model.weight.grad)
except reprise.BudgetError as error:
    print("budget error", error.rank, error.requested, error)
except RuntimeError as error:
    print("other error", error)
"""


TRAINER_FAILS = """
import sys, torch, transformers, reprise
from reprise.integrations.transformers import BudgetCallback

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = torch.nn.Linear(64, 64), 0
    def forward(self, x):
        self.calls += 1
        rows = 1 << 20 if self.calls == 3 and torch.distributed.get_rank() == int(sys.argv[1]) else 64
        return {"loss": self.layer(x.sum() + torch.zeros(1, 64).expand(rows, 64)).sum()}

arguments = transformers.TrainingArguments(
    output_dir=sys.argv[2], per_device_train_batch_size=1, max_steps=4, report_to=[], use_cpu=True, disable_tqdm=True,
    save_strategy="no", logging_strategy="no",
)
callback = BudgetCallback(reprise.live_bytes() + (4 << 20), planning_seconds=0)
data = [{"x": torch.zeros(1)}] * 16
trainer = transformers.Trainer(model=Model(), args=arguments, train_dataset=data, callbacks=[callback])
try:
    trainer.train()
except reprise.BudgetError as error:
    print("budget error", error.rank, error.requested, error)
"""


def expect_one_error(failing, ranks):
    """Both have the error of this one."""
    outputs = []
    for code, out, errors in ranks:
        assert code == 0, errors
        outputs.append(out)
    assert outputs[0] == outputs[1]
    assert re.match(rf"budget error {failing} \d+ \[rank {failing}\] \[budget\] \d+ bytes .* are needed", outputs[0]), outputs


@pytest.mark.parametrize("failing", [0, 1])
def test_a_budget_that_one_rank_cannot_keep_ends_all_with_its_error(failing):
    expect_one_error(failing, two_ranks(ONE_FAILS, str(failing)))


def test_trainers_of_transformers_end_together(tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    expect_one_error(1, two_ranks(TRAINER_FAILS, "1", str(tmp_path)))


def test_ranks_that_are_on_their_own_lose_their_connection():
    (_, mine, _), (_, other, _) = two_ranks(ONE_FAILS, "0", "alone")
    assert mine.startswith("budget error None")
    assert other.startswith("other error")


# ---- torchrun ----


@pytest.mark.parametrize("example, share", [("ddp_gpt.py", "0.5x"), ("fsdp_gpt.py", "0.6x")])
def test_examples_run_under_torchrun(example, share):
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    done = subprocess.run(
        [sys.executable, *torchrun, "--master-port", free_port(), EXAMPLES / example, "--steps", "5", "--budget", share],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("identical, bit for bit") == 2
