"""What pip calls to build the package: scikit-build-core, after a look at the torch that is there. Without it pip would
first fetch what the package depends on, gigabytes of torch, and CMake fail then."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    looked = subprocess.run([sys.executable, Path(__file__).with_name("installed_torch.py")], stdout=subprocess.DEVNULL, check=False)
    if looked.returncode != 0:
        sys.exit(1)
    return build.get_requires_for_build_wheel(config_settings)
