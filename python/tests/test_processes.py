"""Programs as people run them: forks, signals, the end of the interpreter, locks of others."""
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import forked
import pytest

BEGIN = """
import os, signal, sys, threading, time
import torch, reprise
torch.set_num_threads(1)

def train(session, steps=3):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(6)))
    for _ in range(steps):
        with session.step():
            model(torch.randn(256, 64)).pow(2).mean().backward()
    return model
"""


def run(program, *arguments, timeout=120, **environment):
    """The exit code, what it printed, and its errors."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_kept_while_planning_is_under_way(code):
    assert run(
        """
        session = reprise.Session(reprise.live_bytes() + (8 << 20), planning_seconds=60, planning_share=float("inf"))
        train(session)
        sys.exit(int(sys.argv[1]))
        """,
        str(code),
    ) == (code, "", "")


@pytest.mark.slow
def test_the_interpreter_ends_with_a_step_and_a_graph_that_are_alive():
    assert run(
        """
        session = reprise.Session(evict_everything=True)
        step = session.step()
        step.__enter__()
        kept = torch.randn(8, 8, requires_grad=True).exp().sin()
        """
    ) == (0, "", "")


@pytest.mark.slow
def test_waiting_for_a_plan_can_be_interrupted():
    code, out, _ = run(
        """
        session = reprise.Session(reprise.live_bytes() + (1 << 20), planning_seconds=300, planning_share=float("inf"))
        try:
            train(session, 1)
        except reprise.BudgetError:
            pass
        session.budget = reprise.live_bytes() + (2 << 20)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.time()
        try:
            session.wait_for_plan()
            time.sleep(1)
        except KeyboardInterrupt:
            print("interrupted" if time.time() - start < 30 else "late")
        """
    )
    assert (code, out) == (0, "interrupted\n")


@pytest.mark.slow
def test_workers_of_a_loader_are_forked_while_a_session_plans():
    code, out, err = run(
        """
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, index):
                return torch.rand(64) * 0 + index

        session = reprise.Session(reprise.live_bytes() + (8 << 20), planning_seconds=2, planning_share=float("inf"))
        train(session)
        for _ in range(3):
            loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2)
            print(sorted(int(batch[0, 0]) for batch in loader))
            train(session, 1)
        """
    )
    assert (code, out) == (0, "[0, 2, 4, 6]\n" * 3), err


@pytest.mark.slow
def test_a_child_of_a_fork_trains_in_a_session_of_its_own():
    code, out, err = run(
        """
        session = reprise.Session(reprise.live_bytes() + (8 << 20), planning_seconds=5, planning_share=float("inf"))
        train(session)
        child = os.fork()
        if child == 0:
            own = reprise.Session(evict_everything=True)
            train(own)
            own.wait_for_plan()
            sys.exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert (code, out) == (0, "5\n"), err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tensor", "storage", "grad_fn"])
def test_nobody_waits_for_a_lock_of_ours_with_the_interpreter_in_hand(kind):
    code, out, err = run(
        """
        import weakref
        x = torch.randn(64, 64, requires_grad=True)
        session = reprise.Session(1 << 40, planning_seconds=0)
        kept, begun = [], threading.Event()

        def free():
            begun.wait()
            kept.pop()

        def finalize():
            begun.set()
            time.sleep(0.3)

        thread = threading.Thread(target=free)
        thread.start()
        with session.step():
            y = x.exp()
            kept.append({
                "tensor": lambda: y.detach() * 2,
                "storage": lambda: (y.detach() * 2).untyped_storage(),
                "grad_fn": lambda: x.sin().grad_fn,
            }[sys.argv[1]]())
            weakref.finalize(y.untyped_storage(), finalize)
            z = y.log()
            del y
            z.sum().backward()
        thread.join()
        print("no deadlock")
        """,
        kind,
        timeout=60,
    )
    assert (code, out) == (0, "no deadlock\n"), err


@pytest.mark.parametrize("late", [True, False])
def test_a_model_from_before_the_import_is_a_warning_with_its_bytes(late):
    """Once, and only if there is a budget."""
    program = """
import warnings
import torch
{early}
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Tanh(), torch.nn.Linear(512, 512))
import reprise
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for budget in (None, "64MiB", "64MiB"):
        session = reprise.Session(budget)
        for _ in range(2):
            with session.step():
                model(torch.randn(8, 512)).pow(2).mean().backward()
for warning in caught:
    print(warning.category.__name__, warning.message)
"""
    done = subprocess.run(
        [sys.executable, "-c", program.format(early="" if late else "import reprise")], capture_output=True, text=True
    )
    said = "RuntimeWarning 2.00 MiB of tensors that this step used are not in the budget"
    assert done.returncode == 0, done.stderr
    assert [line.startswith(said) for line in done.stdout.splitlines()] == ([True] if late else [])


SCRIPT = """
import sys
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.Tanh()) for _ in range(8)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(512, 128)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize(
    "budget",
    [
        ["--budget", "3.2MiB"],
        pytest.param(["--budget", "3.2MiB", "--device", "cpu"], marks=pytest.mark.slow),
        pytest.param(["--budgets", "cpu=3.2MiB"], marks=pytest.mark.slow),
    ],
)
def test_a_script_that_knows_nothing_of_it_is_run_within_a_budget(tmp_path, budget):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    plain = subprocess.run([sys.executable, script, "4"], capture_output=True, text=True)
    within = subprocess.run(
        [sys.executable, "-m", "reprise", "run", *budget, "--trace", tmp_path / "step.trace", script, "4"],
        capture_output=True,
        text=True,
    )
    assert (within.returncode, within.stdout) == (4, plain.stdout), within.stderr
    assert "budget" in within.stderr and "replay" in within.stderr
    assert (tmp_path / "step.trace").exists()


def test_a_variable_that_no_one_reads_is_said_and_the_script_may_run_untouched(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print('ran')")
    command = [sys.executable, "-m", "reprise", "run"]
    environment = {**os.environ, "REPRISE_BUGDET": "1GiB"}
    refused = subprocess.run([*command, script], capture_output=True, text=True, env=environment)
    assert refused.returncode == 2 and "the nearest is REPRISE_BUDGET" in refused.stderr and refused.stdout == ""
    untouched = subprocess.run([*command, "--if-possible", script], capture_output=True, text=True, env=environment)
    assert untouched.returncode == 0 and "runs untouched" in untouched.stderr and untouched.stdout == "ran\n"


def test_a_script_may_be_told_everything_by_flags_and_the_environment(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    plain = subprocess.run([sys.executable, script, "4"], capture_output=True, text=True)
    within = subprocess.run(
        [sys.executable, "-m", "reprise", "run", "--budget", "0.7x", "--report", tmp_path / "page.html", script, "4"],
        capture_output=True,
        text=True,
        env={**os.environ, "REPRISE_SUMMARY": "json", "REPRISE_NAME": "own", "REPRISE_POLICY": "keep_products"},
    )
    assert (within.returncode, within.stdout) == (4, plain.stdout), within.stderr
    summary = json.loads(within.stderr)
    assert summary["name"] == "own" and summary["budget_bytes"] and "<html" in (tmp_path / "page.html").read_text()


def test_a_budget_that_cannot_be_kept_is_said_with_what_to_do_about_it(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "reprise", "run", "--budget", "100KiB", script, "4"], capture_output=True, text=True
    )
    assert done.returncode == 1 and "BudgetError" in done.stderr
    assert "run once without a budget" in done.stderr and "Session::" not in done.stderr
    assert "no step has ended, a budget of 100.00 KiB" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "much", "x.py"], "much"),
        (["--budgets", "2GiB", "x.py"], "'2GiB' is not DEVICE=AMOUNT"),
        (["--budgets", "cpu=2GiB", "--device", "cpu", "x.py"], "option device is 'cpu'"),
        (["--host", "1GiB", "x.py"], "option host.bytes is 1073741824, and no accelerator is named"),
        (["--host", "1GiB", "--device", "cpu", "x.py"], "option host.bytes is 1073741824, and no accelerator is named"),
        (["--host", "much", "--device", "npu:0", "x.py"], "--host"),
        (["--disk-bytes", "1GiB", "x.py"], "--disk-bytes is about a disk, and there is none"),
        (["--policy", "aten::tahn=keep", "x.py"], "near are aten::tan, aten::tanh"),
        (["nowhere.py"], "there is no script 'nowhere.py'"),
        ([], "SCRIPT"),
    ],
)
def test_wrong_words_of_the_command_are_said(words, said):
    done = forked.run("import sys\nfrom reprise.__main__ import main\nsys.exit(main())", "run", *words)
    assert done.code == 2 and said in done.errors


def test_the_doctor_says_that_replays_are_exact():
    done = subprocess.run([sys.executable, "-m", "reprise", "doctor"], capture_output=True, text=True)
    assert done.returncode == 0 and "cpu: " in done.stdout and "the same bits" in done.stdout, done.stderr


def test_the_command_plans_a_recorded_step(tmp_path):
    import test_planning

    test_planning.chain().write(tmp_path / "chain.trace")
    command = [sys.executable, "-m", "reprise"]
    planned = subprocess.run(
        [*command, "plan", tmp_path / "chain.trace", "--budget", "0.5x", "--json"], capture_output=True, text=True
    )
    assert planned.returncode == 0 and '"status"' in planned.stdout, planned.stderr
    assert "doctor" in subprocess.run(command, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name, least", [("python.md", 3), ("distributed.md", 1)])
def test_every_program_of_the_documentation_runs(name, least):
    page = (pathlib.Path(__file__).parents[2] / "docs" / name).read_text()
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(programs) >= least
    for program in programs:
        done = forked.run(program)
        assert done.code == 0, done.errors


def test_every_row_for_python_on_the_page_about_other_systems_runs():
    page = (pathlib.Path(__file__).parents[2] / "docs/coming-from.md").read_text()
    section = page[page.index("## The same in Python") :].split("\n## ")[0]
    (beginning,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    rows = re.findall(r"^\| .* \| `([^`]*)` \|$", section, re.MULTILINE)
    assert len(rows) >= 15
    programs = "".join(f"def row_{k}():\n" + textwrap.indent(f"{beginning}\n{row}\n", "    ") for k, row in enumerate(rows))
    calls = "".join(f"row_{k}()\n" for k in range(len(rows)))
    done = forked.run(programs + calls)
    assert done.code == 0, done.errors


@pytest.mark.slow
@pytest.mark.parametrize("name, arguments", [("heat_adjoint", ["--steps", "100"]), ("accelerate_gpt", ["--steps", "2"])])
def test_an_example_says_that_the_bits_are_the_same(name, arguments):
    if name == "accelerate_gpt":
        pytest.importorskip("accelerate")
    program = pathlib.Path(__file__).parents[1] / f"examples/{name}.py"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "bit for bit" in done.stdout, done.stdout + done.stderr
