"""The command: `reprise` or `python -m reprise`.

  run [--budget 2GiB] train.py [ARGUMENT ...]   runs a script that does not know of Reprise within a budget
  doctor                                        says what is installed, and whether replays are exact here
  plan, simulate, curve, report, inspect ...    plan and study recorded steps; `reprise --help` lists all of them
"""
from __future__ import annotations

import argparse
import atexit
import os
import runpy
import sys
from collections.abc import Sequence


def run(words: Sequence[str]) -> None:
    """Runs a script within a budget, and prints a summary on stderr in the end. Steps are found: one begins with the first
    operator whose result autograd saves, and ends with backward."""
    parser = argparse.ArgumentParser(prog="python -m reprise run", description=run.__doc__)
    parser.add_argument("--budget", help="bytes, like 2GiB; default: nothing is limited, and the summary says what it needs")
    parser.add_argument("--device", default="", help="whose bytes the budget limits: cpu, npu:0; default: the parameters'")
    parser.add_argument(
        "--budgets", metavar="DEVICE=AMOUNT,...", help="of several devices, as npu:0=8GiB,cpu=2GiB, instead of --budget and --device"
    )
    parser.add_argument("--disk", default="", metavar="FOLDER", help="for values that memory has no room for; default: no disk")
    parser.add_argument("--disk-bytes", metavar="AMOUNT", help="the most bytes of files there; default: no limit")
    parser.add_argument(
        "--host", metavar="AMOUNT", help="bytes of the host, pinned, for values of the accelerator in --device or --budgets; default: none"
    )
    parser.add_argument(
        "--planning-share", type=float, default=0.05, metavar="SHARE", help="of the CPU time of all steps; default: 0.05"
    )
    parser.add_argument("--planning-time", type=float, default=5.0, metavar="SECONDS", help="for each plan; default: 5")
    parser.add_argument("--plans", default="", metavar="FOLDER", help="keeps plans for the next run; default: not kept")
    parser.add_argument("--trace", metavar="FILE", help="writes the trace of the last step")
    parser.add_argument("--summary", choices=["text", "json", "none"], default="text", help="default: text")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in python -m")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    options = parser.parse_args(words)

    from . import _core, planning

    try:
        budget = None if options.budget is None else planning.bytes_of(options.budget, what="--budget")
        disk_bytes = None if options.disk_bytes is None else planning.bytes_of(options.disk_bytes, what="--disk-bytes")
        if disk_bytes is not None and not options.disk:
            raise ValueError("--disk-bytes is about a disk, and there is none: name its folder with --disk")
        host = 0 if options.host is None else planning.bytes_of(options.host, what="--host")
        _core.find_steps(
            budget,
            options.device,
            _device_budgets(options.budgets),
            options.disk,
            disk_bytes,
            host,
            options.planning_share,
            options.planning_time,
            options.plans,
        )
    except (ValueError, OSError) as error:
        parser.error(str(error))
    atexit.register(_tell, options.summary, options.trace)
    sys.argv = [options.script, *options.arguments]
    if options.module:
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        return
    if not os.path.exists(options.script):
        parser.error(f"there is no script {options.script!r}")
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    runpy.run_path(options.script, run_name="__main__")


def _device_budgets(text: str | None) -> list[tuple[str, int | None]]:
    from . import planning

    budgets: list[tuple[str, int | None]] = []
    for one in [] if text is None else text.split(","):
        device, equals, amount = one.partition("=")
        if not device or not equals:
            raise ValueError(f"--budgets: {one!r} is not DEVICE=AMOUNT, as in npu:0=8GiB,cpu=2GiB")
        budgets.append((device, planning.bytes_of(amount, what="--budgets")))
    return budgets


def _tell(summary: str, trace_file: str | None) -> None:
    from . import _core

    found = _core.found()
    if found is None:
        if summary == "text":
            print("reprise: autograd saved nothing in this program: no budget was in force", file=sys.stderr)
        return
    text, json, trace = found
    if summary != "none":
        print("\n" + text if summary == "text" else json, end="", file=sys.stderr, flush=True)
    if trace_file is None:
        return
    if trace is None:
        print("reprise: no step was seen from its first operator to the end of backward: there is no trace", file=sys.stderr)
    else:
        _core.write_trace(trace_file, trace)


def doctor() -> int:
    """Prints what is installed, and whether what was evicted is recomputed with the same bits, on each device that is here."""
    import platform

    import torch

    import reprise

    print(f"reprise {reprise.__version__}, torch {torch.__version__}, Python {platform.python_version()}")
    devices = ["cpu"]
    if (accelerator := torch.accelerator.current_accelerator()) is not None:
        devices += [f"{accelerator.type}:{i}" for i in range(torch.accelerator.device_count())]
    works = [_is_exact(device) for device in devices]
    print(f"{_amount(reprise.live_bytes())} are live, {_amount(reprise.fraction_of_memory(1.0))} may be used")
    return 0 if all(works) else 1


def _is_exact(device: str) -> bool:
    """Whether a session on this device gives the gradients of plain training; also if there can be no session there."""
    import torch

    import reprise

    def gradients(session: reprise.Session | None) -> list[torch.Tensor]:
        torch.manual_seed(0)
        layers = [torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.LayerNorm(64)]
        model = torch.nn.Sequential(*layers).to(device)
        x = torch.randn(128, 64).to(device)
        if session is None:
            model(x).pow(2).mean().backward()
        else:
            with session.step():
                model(x).pow(2).mean().backward()
        return [parameter.grad.cpu() for parameter in model.parameters() if parameter.grad is not None]

    try:
        session = reprise.Session(device=device, evict_everything=True, verify="always")
    except ValueError as error:
        print(f"{device}: a session cannot limit its bytes: {error}")
        return True
    try:
        plain = gradients(None)
    except Exception as error:  # noqa: BLE001  whatever a device throws: the others get their verdict
        print(f"{device}: torch itself cannot train a small model there: {_first_line(error)}")
        return True
    try:
        exact = all(torch.equal(a, b) for a, b in zip(plain, gradients(session), strict=True))
    except Exception as error:  # noqa: BLE001
        print(f"{device}: A STEP FAILS where plain training works: {_first_line(error)}")
        return False
    replays = session.summary()["replays"]
    print(f"{device}: {replays} operators were replayed: {'the same bits' if exact else 'OTHER BITS'}")
    return exact and replays > 0


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _amount(count: int) -> str:
    from . import _core

    return _core.format_bytes(count)


def main() -> None:
    """The command."""
    words = sys.argv[1:]
    if words[:1] == ["run"]:
        run(words[1:])
        return
    if words[:1] == ["doctor"]:
        sys.exit(doctor())
    if not words:
        print((__doc__ or "").strip())
        return
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "reprise")
    os.execv(command, [command, *words])


if __name__ == "__main__":
    main()
