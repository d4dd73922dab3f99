"""Another thread of Python, which shows that somebody lets go of the interpreter (the GIL)."""
from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    """Does this work on another thread as soon as the block lets go of the interpreter, of its own accord."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # nobody is made to let go of it
    gate = threading.Lock()

    def wait_and_work() -> None:
        with gate:
            work()

    with gate:
        thread = threading.Thread(target=wait_and_work)
        thread.start()
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        thread.join()
