"""Build the simulated driver with the machine's C compiler, once for each version of it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from dlprof.errors import MissingDevice

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


def driver_folder() -> Path:
    """Return the folder in the user's cache with the driver and its NVML; build them if needed.

    Raises :class:`MissingDevice`.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "dlprof")
    folder = cache / f"simulated-{_digest()}"
    try:
        for made in (cache, folder):
            made.mkdir(mode=0o755, parents=True, exist_ok=True)
            check_private(made)
        if not (folder / LIBRARY).exists():
            with (folder / "lock").open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # the system gives it back, even after a kill
                if not (folder / LIBRARY).exists():
                    build(SOURCES, folder)
        for name in (LIBRARY, NVML):
            check_private(folder / name)
    except OSError as error:
        why = error.strerror or error
        raise MissingDevice(
            f"the simulated device cannot be built in {folder}: {why}; set XDG_CACHE_HOME"
        ) from None
    return folder


def check_private(path: Path) -> None:
    """Raise :class:`OSError` if another user may have written what is there."""
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user")
    if found.st_mode & OTHERS_WRITE:
        raise PermissionError(errno.EPERM, f"other users can write it (chmod go-w {path})")


def _digest() -> str:
    digest = hashlib.sha256(" ".join(COMPILER).encode())
    for path in (*sorted(SOURCES.glob("*.[ch]")), SOURCES / "symbols.txt", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def build(sources: Path, folder: Path) -> None:
    """Build both libraries from the C files of a folder. Raises :class:`MissingDevice`."""
    if shutil.which("cc") is None:
        raise MissingDevice("the simulated device needs a C compiler: install gcc or clang")
    with tempfile.TemporaryDirectory(dir=folder, prefix=UNFINISHED) as made:
        stubs = Path(made, "stubs.c")
        defined = _defined(sources)
        others = [name for name in _all_names() if name not in defined]
        stubs.write_text(_stubs(others), encoding="utf-8")
        nvml = sources / "nvml.c"
        driver = [path for path in sorted(sources.glob("*.c")) if path != nvml]
        _compile(Path(made, NVML), [nvml]).replace(folder / NVML)
        # Last: once it is there, all is built.
        _compile(Path(made, LIBRARY), [*driver, stubs], *_aliases([*defined, *others])).replace(
            folder / LIBRARY
        )


def _compile(target: Path, sources: Sequence[Path], *options: str) -> Path:
    named = (f"-Wl,-soname,{target.name}", f"-I{sources[0].parent}", "-o", str(target))
    command = [*COMPILER, *options, *named, *map(str, sources), "-lpthread", "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode:
        raise MissingDevice(f"the simulated device cannot be built: {_first_error(done.stderr)}")
    target.chmod(0o755)  # the compiler goes by the umask
    return target


def _first_error(text: str) -> str:
    lines = text.strip().splitlines() or ["the compiler says nothing"]
    return next((line for line in lines if "error" in line), lines[-1])


def _defined(sources: Path) -> list[str]:
    """The functions that the sources define, those of macros too."""
    text = "".join(path.read_text(encoding="utf-8") for path in sources.glob("*.c"))
    made = [
        name if kind == "COPIES" else f"cuMemsetD{name}" for kind, name in IN_MACROS.findall(text)
    ]
    found = {*DEFINED.findall(text), *made, *(f"{name}Async" for name in made)}
    found |= {f"{name}_{suffix}" for suffix, name in PER_THREAD.findall(text)}
    for name in BOTH_PER_THREAD.findall(text):
        found |= {f"{name}_ptds", f"{name}Async_ptsz"}
    return sorted(found)


def _aliases(names: list[str]) -> Iterator[str]:
    """A framework asks for a function by its name, or by the name of its second version."""
    for name in names:
        plain, suffix = (name[:-5], name[-5:]) if name.endswith(SUFFIXES) else (name, "")
        second = f"{plain}_v2{suffix}"
        if plain[-3:-1] != "_v" and second not in names:
            yield f"-Wl,--defsym,{second}={name}"


def _all_names() -> list[str]:
    return (SOURCES / "symbols.txt").read_text(encoding="utf-8").split()


def _stubs(names: list[str]) -> str:
    """Functions without a meaning here: a framework finds them, and they refuse."""
    lines = ["int dlprof_not_supported(const char *name);"]
    for name in names:
        lines += [
            '__attribute__((visibility("default")))',
            f'int {name}(void) {{ return dlprof_not_supported("{name}"); }}',
        ]
    return "\n".join(lines) + "\n"
