"""Programs in processes of their own, forked from one that has imported torch and Reprise: to import them takes longer than
most of these programs do. Where it matters how an interpreter starts or ends, a program is started as people do it."""
from __future__ import annotations

import multiprocessing
import os
import pathlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch", "torch.distributed.fsdp", "reprise"])


class Ended(NamedTuple):
    """What a program left behind."""

    code: int
    out: str
    errors: str


def run(program: str, *arguments: str, timeout: float = 120) -> Ended:
    """Runs a program, as `python -c` does."""
    return run_together(program, arguments, [{}], timeout)[0]


def run_together(
    program: str, arguments: Sequence[str], environments: Sequence[Mapping[str, str]], timeout: float = 300
) -> list[Ended]:
    """Runs a program several times at the same time, once in each of these environments."""
    with tempfile.TemporaryDirectory() as name:
        folders = [pathlib.Path(name) / str(number) for number in range(len(environments))]
        processes = []
        try:
            for folder, environment in zip(folders, environments, strict=True):
                folder.mkdir()
                processes.append(_context.Process(target=_execute, args=(program, arguments, environment, folder)))
                processes[-1].start()
            for process in processes:
                process.join(timeout)
        finally:
            for process in processes:
                process.kill()  # if it has not ended
                process.join()
        return [
            Ended(process.exitcode, (folder / "out").read_text(), (folder / "errors").read_text())
            for process, folder in zip(processes, folders, strict=True)
        ]


def _execute(program: str, arguments: Sequence[str], environment: Mapping[str, str], folder: pathlib.Path) -> None:
    os.environ.update(environment)
    for descriptor, name in (1, "out"), (2, "errors"):
        file = os.open(folder / name, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, descriptor)
        os.close(file)
    sys.argv = ["-c", *arguments]
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
