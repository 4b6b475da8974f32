"""How reports over many sessions grow: ``python benchmarks/jobs_scale.py [100 1000 10000]``.

The sessions are simulated: recorded ones of :data:`RECORDED`, with other versions and machines, and
with copies instead of views from one version on. For each number of sessions this prints the time
and the peak memory of listing the folder, of ``dlprof compare`` and of ``dlprof atlas build``, and
the largest page of the site, as a table in Markdown.
"""

from __future__ import annotations

import gzip
import itertools
import os
import re
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "tests" / "recorded" / "first_edition"
JAX = ("0.4.30", "0.4.38", "0.5.3", "0.6.0", "0.6.2", "0.7.2", "0.8.3", "0.9.2", "0.10.0", "0.10.2")
TORCH = ("2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.13.0")
CHANGED = 6
"""From this version of jax on the views of the first path of each pair are copies."""
MACHINES = 25
QUIET = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]


def write(folder: Path, count: int) -> None:
    """So many sessions: pairs, then versions of jax and torch, then machines."""
    texts = [gzip.decompress(file.read_bytes()).decode() for file in sorted(RECORDED.glob("*.gz"))]
    every = itertools.product(range(MACHINES), range(len(TORCH)), range(len(JAX)), texts)
    for number, (machine, torch, jax, text) in enumerate(itertools.islice(every, count)):
        session = simulated(text, machine, torch, jax)
        (folder / f"{number:05}.json").write_text(session, encoding="utf-8")


def simulated(session: str, machine: int, torch: int, jax: int) -> str:
    """A recorded session with other versions, on another machine."""
    session = re.sub(r'("jax(?:lib)?": )"[^"]*"', rf'\1"{JAX[jax]}"', session)
    session = re.sub(r'("torch": )"[^"]*"', rf'\1"{TORCH[torch]}"', session)
    session = re.sub(r'("cpu": )"AMD EPYC[^"]*"', rf'\1"CPU {machine}"', session)
    if jax < CHANGED:
        return session
    return session.replace('"ownership": {"verdict": "view"', '"ownership": {"verdict": "copy"', 1)


def listed(folder: Path) -> int:
    """What listing a store does: names and sizes of its sessions."""
    return sum(one.stat().st_size for one in os.scandir(folder))


def measured(*words: str) -> str:
    """Wall and processor time and peak memory of a command, as cells of the table."""
    begin = time.monotonic()
    process = os.posix_spawn(
        sys.executable, [sys.executable, *words], os.environ, file_actions=QUIET
    )
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{words} ended with {status}")
    wall_s, own_s = time.monotonic() - begin, usage.ru_utime + usage.ru_stime
    return f"{wall_s:.1f} s | {own_s:.1f} s | {usage.ru_maxrss / 1024:,.0f} MB"


def main() -> None:
    counts = [int(word) for word in sys.argv[1:]] or [100, 1000, 10000]
    titles = (
        "sessions",
        "size",
        "list",
        "compare",
        "memory",
        "atlas",
        "memory",
        "pages",
        "largest",
    )
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|")
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            folder, site, out = Path(name, "store"), Path(name, "site"), Path(name, "out.txt")
            folder.mkdir()
            write(folder, count)
            begin = time.monotonic()
            size = listed(folder)
            list_s = time.monotonic() - begin
            verb = ("-m", "dlprof")
            compare = measured(*verb, "compare", str(folder), "--html", str(out))
            atlas = measured(*verb, "atlas", "build", str(folder), "--out", str(site))
            pages = [page.stat().st_size for page in site.iterdir()]
            cells = (
                *(f"{count:,}", f"{size / 1e6:,.0f} MB", f"{list_s:.3f} s", compare, atlas),
                *(str(len(pages)), f"{max(pages) / 1e3:,.0f} kB"),
            )
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
