"""HiGHS, the solver behind the lower bounds of plans, if the package highsbox is there (`pip install torch-reprise[bounds]`)."""
from __future__ import annotations

import importlib.util
import os


def find() -> None:
    """Tells the library where it is. Without it planning works, and bounds are weaker."""
    spec = importlib.util.find_spec("highsbox")
    if spec is None or not spec.submodule_search_locations:
        return
    library = os.path.join(spec.submodule_search_locations[0], "highs_dist", "lib", "libhighs.so")
    if os.path.exists(library):
        os.environ.setdefault("REPRISE_HIGHS", library)
