"""The packages of CUDA's that a torch built for it needs to be loaded where there is no CUDA, one on each line.

cuda_packages.py SITE LIBRARY...: SITE is the folder of packages that torch is in, and the libraries are those that the
loader does not find (libcudart.so.13). Of all that torch asks for only these are named: together they are a few megabytes,
where all of CUDA is several thousand.
"""

import re
import sys
from pathlib import Path

# The parts of names of packages, and extras of cuda-toolkit, that are not the library's own name.
NAMES = {"cudart": ("cuda-runtime", "cudart"), "nvToolsExt": ("nvtx",), "cusparseLt": ("cusparselt",)}


def needed(requirements, libraries):
    """Returns those of the requirements, as in torch's metadata, that have the libraries."""
    names = [re.sub(r"^lib|\.so.*$", "", library) for library in libraries]
    wanted = [NAMES.get(name, (name.lower(),)) for name in names]
    for requirement in requirements:
        match = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?\s*(==[\w.]+)?", requirement)
        package, extras, version = match.group(1), (match.group(2) or "").split(","), match.group(3) or ""
        if package == "cuda-toolkit":  # its extras are the packages
            chosen = [extra for extra in extras if any(extra in alternatives for alternatives in wanted)]
            if chosen:
                yield f"{package}[{','.join(chosen)}]{version}"
        elif any(re.search(rf"(^|-){re.escape(part)}(-|$)", package) for alternatives in wanted for part in alternatives):
            yield f"{package}{version}"


def main(site: Path, libraries) -> int:
    lines = next(site.glob("torch-*.dist-info/METADATA")).read_text().splitlines()
    found = list(needed([line.split(": ", 1)[1] for line in lines if line.startswith("Requires-Dist: ")], libraries))
    print("\n".join(found))
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
