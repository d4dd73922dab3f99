"""./run [OPTION ...]: trains a small GPT plainly and inside a third of the memory, and compares. Options are those of
`reprise train`.

    ./run COMMAND ...          the `reprise` command, whatever it can do; ./run --help lists that
    ./run python [OPTION ...]  builds the Python package, installs it into build/python, and trains a GPT from Python

What is missing is installed and built first, which is reported on stderr; stdout has the command's output and nothing else.
REPRISE_INSTALL=no in the environment: nothing is installed.
"""

import os
import sys

import build
import needs
from needs import BUILD, ROOT, Failure

# What is built for these commands, so that the first training begins soon. All others need no LibTorch.
TARGETS = {"train": "reprise_torch_command", "doctor": "reprise_tools", "run": "reprise_tools"}


def main(arguments: list[str]) -> None:
    needs.install_debian(needs.BUILDING)
    if arguments[:1] == ["python"]:
        python = build.make_python_ready()
        os.execv(python, [python, ROOT / "python/examples/train_gpt.py", *arguments[1:]])

    # Without a command, the main job.
    is_main_job = not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version"))
    if is_main_job:
        arguments = ["train", "--compare", *arguments]
        if not any(argument.startswith("--report") for argument in arguments):
            arguments += ["--report", str(BUILD / "report.html")]
    torch = None
    if arguments[0] in TARGETS:
        with needs.one_at_a_time():
            torch = needs.torch()
        if is_main_job and not torch:
            needs.say("LibTorch cannot be had (see build/torch.log), so nothing is trained. What the planner does without it:")
            arguments = ["example"]
    target = TARGETS[arguments[0]] if torch else "reprise_command"
    build.make("release", [target], torch=torch)
    # The first hands `train` over to the second, which is all that is built for it.
    program = BUILD / "release/tools" / ("reprise-torch" if target == "reprise_torch_command" else "reprise")
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Failure as failure:
        needs.say(str(failure))
        sys.exit(2)
