"""Sessions on an accelerator that is none of torch's own: a simulated one, of tests/accelerator.

A device is there for the rest of a process, so that each of these is a program of its own. They know the device by the library
that REPRISE_ACCELERATOR names, which ./test --all builds.
"""
import os
import subprocess
import sys
import textwrap

import pytest

library = os.environ.get("REPRISE_ACCELERATOR", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not library, reason="ALL PYTHON PROGRAMS ON AN ACCELERATOR, because REPRISE_ACCELERATOR names no library"),
]

begin = """
import ctypes, os, sys, types, torch, reprise
accelerator = ctypes.CDLL(os.environ["REPRISE_ACCELERATOR"])
accelerator.accelerator_use(1, {draws_on_cpu}, {exact_statistics})
module = types.ModuleType("torch.sim")
module.is_available, module.current_device, module.device_count = lambda: True, lambda: 0, lambda: 1
torch._register_device_module("sim", module)
accelerator.accelerator_live_peak.restype = ctypes.c_int64
accelerator.accelerator_seed.argtypes = [ctypes.c_uint64]
"""


def run(program: str, draws_on_cpu: bool = False, exact_statistics: bool = False) -> str:
    text = begin.format(draws_on_cpu=draws_on_cpu, exact_statistics=exact_statistics) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "RecordFunction callback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("draws_on_cpu", [False, True])
def test_random_operators_draw_what_plain_torch_draws(draws_on_cpu: bool) -> None:
    run(
        """
        functions = {
            "noise": lambda x: (x * torch.randn_like(x)).sin(),
            "dropout": lambda x: torch.nn.functional.dropout(x.sin(), 0.5).exp(),
        }

        def gradient(f):
            torch.manual_seed(1)
            accelerator.accelerator_seed(1)
            x = torch.linspace(-1, 1, 4096).to("sim").requires_grad_()
            f(f(x)).sum().backward()
            return x.grad.cpu(), torch.rand(3)  # and where the CPU's generator is

        for name, f in functions.items():
            plain = gradient(f)
            for options in {}, dict(evict_everything=True), dict(evict_everything=True, verify="never"):
                session = reprise.Session(device="sim", **options)
                for _ in range(3):
                    with session.step():
                        there = gradient(f)
                    assert all(map(torch.equal, plain, there)), (name, options)
                if options:
                    assert session.summary()["replays"] > 0, (name, options)
            again = gradient(lambda x: reprise.checkpoint(f, x, use_reentrant=False))
            assert torch.equal(plain[0], again[0]), name
        """,
        draws_on_cpu,
    )


def test_the_doctor_has_a_verdict_where_random_operators_are_the_cpus() -> None:
    said = run(
        """
        from reprise import __main__ as command
        sys.exit(command.doctor())
        """,
        draws_on_cpu=True,
    )
    assert "sim" in said


def test_compiled_functions_run_on_it() -> None:
    run(
        """
        x = torch.ones(4, device="sim", requires_grad=True)
        f = torch.compile(lambda x: x.sin().exp(), backend="aot_eager")
        f(x).sum().backward()
        plain, x.grad = x.grad.cpu(), None
        for options in {}, dict(evict_everything=True):
            with reprise.Session(device="sim", **options).step():
                f(x).sum().backward()
            assert torch.equal(plain, x.grad.cpu())
            x.grad = None
        """
    )


def test_a_compiled_function_may_be_the_first_to_meet_it() -> None:
    run(
        """
        x = torch.ones(4, device="sim", requires_grad=True)
        f = torch.compile(lambda x: x.sin().exp(), backend="aot_eager")
        with reprise.Session().step():
            f(x).sum().backward()
        assert torch.allclose(x.grad.cpu(), torch.tensor(1.0).cos() * torch.tensor(1.0).sin().exp())
        """
    )


def test_a_session_may_be_made_under_a_fake_mode() -> None:
    run(
        """
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            reprise.Session(device="sim")
        with reprise.Session(device="sim").step():
            torch.ones(4, device="sim", requires_grad=True).sin().sum().backward()
        """
    )


@pytest.mark.parametrize("exact_statistics", [False, True])
def test_the_devices_own_peak_is_within_the_budget(exact_statistics: bool) -> None:
    run(
        """
        MB = 1 << 20
        before = torch.zeros(20 * MB, dtype=torch.uint8).to("sim")  # before anybody counts
        session = reprise.Session(device="sim", budget=30 * MB)
        with session.step():
            pass
        small = [torch.zeros(1).to("sim") for _ in range(2000)]
        with session.step():
            small.clear()
            big = []
            try:
                while len(big) < 100:
                    big.append(torch.empty(MB // 2, dtype=torch.uint8, device="sim"))
            except reprise.BudgetError:
                pass
            assert 28 * MB < accelerator.accelerator_live_peak() <= 30 * MB, accelerator.accelerator_live_peak()
        """,
        exact_statistics=exact_statistics,
    )
