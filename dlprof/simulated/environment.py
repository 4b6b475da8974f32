"""The environment of a process on the simulated driver; the user sets nothing.

The machine's C compiler builds the driver, once for each version of its sources.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dlprof.errors import Unmeasured

DEVICES = "DLPROF_SIMULATED_DEVICES"
"""The variable with the number of devices. A worker that has it runs on the driver."""
PATH = "LD_LIBRARY_PATH"
LIST_LIBRARIES = """
import pathlib, sys
for place in filter(None, sys.path):
    for folder in sorted(pathlib.Path(place).glob("nvidia/*/lib")):
        print(folder)
"""

XLA_FLAGS = "--xla_gpu_enable_command_buffer= --xla_gpu_autotune_level=0"
"""The driver has no graphs, and its kernels are all equally fast."""
DEFAULTS = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
"""Frameworks take most of a device's memory otherwise."""

SOURCES = Path(__file__).parent
LIBRARY, NVML = "libcuda.so.1", "libnvidia-ml.so.1"
UNFINISHED = "build-"
OTHERS_WRITE = 0o022
COMPILER = ("cc", "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
DEFINED = re.compile(r"^(?:API |SAME\(|TELLS\()(cu\w+)[(,]", re.MULTILINE)
IN_MACROS = re.compile(r"^(COPIES|FILLS)\((\w+)", re.MULTILINE)
PER_THREAD = re.compile(r"^PER_THREAD\((\w+), (\w+)", re.MULTILINE)
BOTH_PER_THREAD = re.compile(r"^(?:COPY|FILL)\((\w+)", re.MULTILINE)
SUFFIXES = ("_ptsz", "_ptds")


def variables(devices: int) -> dict[str, str]:
    """Return the variables for a driver with this number of devices; none for a real one."""
    return {DEVICES: str(devices)} if devices else {}


def on_simulated_device(environment: Mapping[str, str], python: str) -> dict[str, str]:
    """Put the driver first on the library path of ``environment``, then NVIDIA's own libraries.

    A framework's wheel does not always find the libraries of other wheels, such as NVRTC. Raises
    :class:`~dlprof.errors.Unmeasured` if the driver is not built and cannot be.
    """
    folders = [str(driver_folder()), *_libraries(python), environment.get(PATH, "")]
    flags = f"{XLA_FLAGS} {environment.get('XLA_FLAGS', '')}".strip()
    joined = ":".join(filter(None, folders))
    return {**DEFAULTS, **environment, PATH: joined, "XLA_FLAGS": flags}


@functools.cache
def _libraries(python: str) -> list[str]:
    """Return the folders of libraries in NVIDIA's wheels that an interpreter has."""
    command = [python, "-c", LIST_LIBRARIES]
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the interpreter that is measured
    except OSError:
        return []  # the worker says what is wrong with it
    return process.stdout.splitlines()


def driver_folder() -> Path:
    """Return the folder in the user's cache with the driver and its NVML; build them if needed.

    Raises :class:`Unmeasured`.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "dlprof")
    folder = cache / f"simulated-{_digest()}"
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.geteuid() or found.st_mode & OTHERS_WRITE:
            raise PermissionError(errno.EPERM, "another user may have written to it")
        if not (folder / LIBRARY).exists():
            build(SOURCES, folder)
    except OSError as error:
        why = error.strerror or error
        raise Unmeasured(
            f"the simulated device cannot be built in {folder}: {why}; set XDG_CACHE_HOME"
        ) from None
    return folder


def _digest() -> str:
    digest = hashlib.sha256(" ".join(COMPILER).encode())
    for path in (*sorted(SOURCES.glob("*.[ch]")), SOURCES / "symbols.txt", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def build(sources: Path, folder: Path) -> None:
    """Build both libraries from the C files of a folder. Raises :class:`Unmeasured`."""
    if shutil.which("cc") is None:
        raise Unmeasured("the simulated device needs a C compiler: install gcc or clang")
    with tempfile.TemporaryDirectory(dir=folder, prefix=UNFINISHED) as temporary:
        stubs = Path(temporary, "stubs.c")
        defined = _defined(sources)
        names = (SOURCES / "symbols.txt").read_text(encoding="utf-8").split()
        missing = [name for name in names if name not in defined]
        stubs.write_text(_stubs(missing), encoding="utf-8")
        nvml = sources / "nvml.c"
        driver = [path for path in sorted(sources.glob("*.c")) if path != nvml]
        _compile(Path(temporary, NVML), [nvml]).replace(folder / NVML)
        # Last: once it is there, all is built.
        _compile(
            Path(temporary, LIBRARY), [*driver, stubs], *_aliases([*defined, *missing])
        ).replace(folder / LIBRARY)


def _compile(target: Path, sources: Sequence[Path], *options: str) -> Path:
    target_options = (f"-Wl,-soname,{target.name}", f"-I{sources[0].parent}", "-o", str(target))
    command = [*COMPILER, *options, *target_options, *map(str, sources), "-lpthread", "-ldl"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if process.returncode:
        lines = process.stderr.strip().splitlines()
        error = next((line for line in lines if "error" in line), "the compiler fails")
        raise Unmeasured(f"the simulated device cannot be built: {error}")
    return target


def _defined(sources: Path) -> list[str]:
    """Return the functions that the sources define, including those from macros."""
    text = "".join(path.read_text(encoding="utf-8") for path in sources.glob("*.c"))
    macro_names = [
        name if kind == "COPIES" else f"cuMemsetD{name}" for kind, name in IN_MACROS.findall(text)
    ]
    found = {*DEFINED.findall(text), *macro_names, *(f"{name}Async" for name in macro_names)}
    found |= {f"{name}_{suffix}" for suffix, name in PER_THREAD.findall(text)}
    for name in BOTH_PER_THREAD.findall(text):
        found |= {f"{name}_ptds", f"{name}Async_ptsz"}
    return sorted(found)


def _aliases(names: list[str]) -> Iterator[str]:
    """Yield linker options that also define each function as its second version (``_v2``)."""
    for name in names:
        plain, suffix = (name[:-5], name[-5:]) if name.endswith(SUFFIXES) else (name, "")
        second = f"{plain}_v2{suffix}"
        if plain[-3:-1] != "_v" and second not in names:
            yield f"-Wl,--defsym,{second}={name}"


def _stubs(names: list[str]) -> str:
    """Return the source of functions that a framework finds, and that refuse."""
    lines = ["int dlprof_not_supported(const char *name);"]
    for name in names:
        lines += [
            '__attribute__((visibility("default")))',
            f'int {name}(void) {{ return dlprof_not_supported("{name}"); }}',
        ]
    return "\n".join(lines) + "\n"
