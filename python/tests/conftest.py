"""What all tests share: one thread for kernels, so that they are as fast beside other tests as alone."""
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

# Where a shell started this in the background it is ignored, and then nothing here could be interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)

import os

# Virtual machines exist that claim to have tiles, and plain torch ends with an illegal instruction there.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import gc
from collections.abc import Generator

import pytest
import torch

torch.set_num_threads(1)
gc.freeze()  # what torch has imported is not looked at again by every gc.collect() of a test


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a callback of ours throws inside LibTorch ends as a line on stderr and nothing else: it fails the test."""
    report = yield
    if report.when == "call" and report.passed and "Exception in RecordFunction callback" in report.capstderr:
        report.outcome = "failed"
        report.longrepr = "a callback threw inside LibTorch:\n" + report.capstderr
    return report
