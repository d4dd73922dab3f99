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
    from . import _core

    parser = argparse.ArgumentParser(prog="python -m reprise run", description=run.__doc__)
    for option in _core.options_of_run():
        if not option["flag"]:
            continue
        text = f"{option['help']} Default: {option['default']}.".replace("%", "%%")
        if option["placeholder"]:
            parser.add_argument(option["flag"], dest=option["flag"], metavar=option["placeholder"], help=text)
        else:
            parser.add_argument(option["flag"], dest=option["flag"], action="store_const", const=option["flag_means"], help=text)
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in python -m")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    options = parser.parse_args(words)
    flags = {flag: text for flag, text in vars(options).items() if flag.startswith("--") and text is not None}
    try:
        settings = _core.find_steps(flags)
        atexit.register(_tell, settings["summary"], settings["report"], settings["trace"])
    except (ValueError, OSError) as error:
        if "--if-possible" not in flags and os.environ.get("REPRISE_IF_POSSIBLE", "") in ("", "off"):
            parser.error(str(error))
        print(f"reprise: {error}; the script runs untouched", file=sys.stderr)
    sys.argv = [options.script, *options.arguments]
    if options.module:
        runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        return
    if not os.path.exists(options.script):
        parser.error(f"there is no script {options.script!r}")
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    runpy.run_path(options.script, run_name="__main__")


def _tell(summary: str, report_file: str, trace_file: str) -> None:
    from . import _core

    found = _core.found()
    if found is None:
        if summary == "text":
            print("reprise: autograd saved nothing in this program: no budget was in force", file=sys.stderr)
        return
    text, json, trace = found
    if summary != "none":
        print("\n" + text if summary == "text" else json, end="", file=sys.stderr, flush=True)
    if not trace_file and not report_file:
        return
    if trace is None:
        print("reprise: no step was seen from its first operator to the end of backward: there is no trace", file=sys.stderr)
        return
    if trace_file:
        _core.write_trace(trace_file, trace)
    if report_file:
        _core.write_report_of_found(report_file)


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
