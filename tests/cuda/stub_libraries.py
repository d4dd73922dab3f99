#!/usr/bin/env python3
"""Makes shared libraries in the place of CUDA's, so that LibTorch's CUDA side runs without a GPU and without CUDA.

stub_libraries.py TORCH_LIB FOLDER RUNTIME INCLUDE COMPILER: for every library that LibTorch's in TORCH_LIB need and
that is neither LibTorch's nor the system's, one of the same name and with the same versions of symbols is made in
FOLDER. Its functions are those that LibTorch leaves undefined; they do nothing and succeed, but for those in RUNTIME,
which is compiled with the headers in INCLUDE, and for a few below. FOLDER/libraries.txt has their paths, for the
linker: a program that links them has them loaded before any others of these names.
"""

import re
import subprocess
import sys
from pathlib import Path

STARTS = ["libtorch_cuda.so", "libtorch_cpu.so", "libtorch_python.so", "libcaffe2_nvrtc.so"]
SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp|gfortran)[.-]|ld-linux)")
# Whose functions these are, where the name of the version does not say it. The first that fits.
OWNERS = [("cusparseLt", "libcusparseLt"), ("nccl", "libnccl"), ("cuFile", "libcufile"), ("nvrtc", "libnvrtc"),
          ("cu", "libcuda.")]
# What is asked for a handle, or for what a test of LibTorch's own wants to see.
HANDLE = "int {name}(void** handle) {{ *handle = malloc(8); return 0; }}"
BODIES = {
    "cublasCreate_v2": HANDLE,
    "cublasLtCreate": HANDLE,
    "cudnnCreate": HANDLE,
    "cusparseCreate": HANDLE,
    "cuDevicePrimaryCtxGetState":
        "int {name}(int device, unsigned* flags, int* active) {{ *flags = 0; *active = 1; return 0; }}",
}
# Error 801: not supported.
REFUSED = re.compile(r"^cuda(DeviceCanAccessPeer|DeviceEnablePeerAccess|Ipc\w+|(Malloc|Free)Async|MemPool\w+|"
                     r"DeviceGetDefaultMemPool|GetDriverEntryPoint\w*|GraphNodeGetDependencies)$")
TEXT = re.compile(r"(GetErrorString|StatusString|GetLastErrorString|getStatusString)$")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", "-W", str(library)))


def files_of_versions(library):
    """Which file the name of a version belongs to."""
    file, files = None, {}
    for line in run("readelf", "-V", "-W", str(library)).splitlines():
        if match := re.search(r"File: (\S+)", line):
            file = match.group(1)
        elif (match := re.search(r"Name: (\S+)\s+Flags", line)) and file:
            files[match.group(1)] = file
    return files


def undefined(library):
    """(name, version or "") of every symbol that somebody else has to have."""
    for line in run("nm", "-D", "--undefined-only", str(library)).splitlines():
        kind, symbol = line.split()[-2:]
        if kind == "U":
            name, _, version = symbol.partition("@")
            yield name, version.lstrip("@")


def wanted_of(folder):
    """The libraries that are missing: for each its functions, with their versions."""
    ours, todo, wanted = set(), [name for name in STARTS if (folder / name).exists()], {}
    while todo:
        name = todo.pop()
        ours.add(name)
        for other in needed(folder / name):
            if other in ours or SYSTEM.match(other):
                continue
            if (folder / other).exists():
                todo.append(other)
            else:
                wanted.setdefault(other, {})
    for library in sorted(ours):
        files = files_of_versions(folder / library)
        for name, version in undefined(folder / library):
            file = files.get(version)
            if not version:
                owner = next((owner for prefix, owner in OWNERS if re.match(rf"{prefix}[A-Z]?", name)), None)
                file = next((file for file in wanted if owner and file.startswith(owner)), None)
            if file in wanted:
                wanted[file][name] = version
    return wanted


def body(name):
    if name in BODIES:
        return BODIES[name].format(name=name)
    if TEXT.search(name):
        return f'const char* {name}() {{ return "of the stub"; }}'
    return f"long {name}() {{ return {801 if REFUSED.match(name) else 0}; }}"


def build(file, symbols, folder, compiler, runtime):
    by_hand = []
    if file.startswith("libcudart."):
        by_hand = [str(runtime)]
        there = set(re.findall(r" T (\S+)", run("nm", "-g", "--defined-only", str(runtime))))
    else:
        there = set()
    source = folder / (file + ".c")
    lines = ["#include <stdlib.h>"] + [body(name) for name in sorted(symbols) if name not in there]
    source.write_text("\n".join(lines) + "\n")
    objects = [str(source) + ".o"]
    run(compiler, "-x", "c", "-w", "-fPIC", "-fno-builtin", "-c", str(source), "-o", objects[0])
    versions = sorted(set(symbols.values()) - {""})
    script = folder / (file + ".map")
    script.write_text("".join(f"{version} {{ global: *; }};\n" for version in versions[:1]))
    if len(versions) > 1:
        sys.exit(f"stub_libraries: {file} has several versions of symbols, {versions}, which is not known to happen")
    versioned = [f"-Wl,--version-script={script}"] if versions else []
    run(compiler, "-shared", *objects, *by_hand, *versioned, f"-Wl,-soname,{file}", "-o", str(folder / file))


def main(torch_lib, folder, runtime, include, compiler):
    torch_lib, folder = Path(torch_lib), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    compiled = folder / "stub_runtime.o"
    run(compiler, "-std=c++20", "-w", "-O1", "-fPIC", f"-I{include}", "-c", runtime, "-o", str(compiled))
    wanted = wanted_of(torch_lib)
    for file, symbols in sorted(wanted.items()):
        build(file, symbols, folder, compiler, compiled)
    (folder / "libraries.txt").write_text("".join(f"{folder / file}\n" for file in sorted(wanted)))
    functions = sum(len(symbols) for symbols in wanted.values())
    print(f"{len(wanted)} stub libraries with {functions} functions in {folder}")


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
