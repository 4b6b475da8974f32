"""Run one hostile case (files, command line, variables) and check the invariants.

A case is JSON: a failing one stays in ``corpus/``. It runs in this process, where an audit hook
hears the start of another process.
"""

import base64
import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from unittest.mock import patch

from command_line import dlprof
from hypothesis import HealthCheck, Phase, given, seed, settings

from dlprof.errors import UsageError
from dlprof.runner import worker_client

SEED = int(os.environ.get("DLPROF_ATTACK_SEED", "0"))
CASES = int(os.environ.get("DLPROF_ATTACK_CASES", "200"))
CORPUS = Path(__file__).with_name("corpus")

CODES = {0, 1, 2, 3, 4, 130}
"""docs/exit-codes.md."""
MOST_S, MOST_BYTES = 30.0, 512 << 20
"""Processor time, and memory above that at the start."""
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
COMMAND = re.compile(r"(?m)^\s*::|##\[")
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty")
CANARY = "canary"
PAYLOAD = f"__import__('os').system('touch {CANARY}')"
PAYLOADS = (PAYLOAD, f"$(touch {CANARY})", f"`touch {CANARY}`", f"; touch {CANARY} #", f"| touch {CANARY}",
            f"x\nimport os; os.system('touch {CANARY}')", "!!python/object/apply:os.system", "../../etc/passwd",
            f"{{{{{PAYLOAD}}}}}", f"${{IFS}}touch {CANARY}")  # fmt: skip


@dataclass(frozen=True)
class Hostile:
    """``files`` are text, or bytes in base64 after ``base64:``; they lie in the current folder."""

    words: list[str]
    files: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    why: str = ""


def packed(data):
    return "base64:" + base64.b64encode(data).decode()


def unpacked(text):
    if text.startswith("base64:"):
        return base64.b64decode(text[7:])
    return text.encode("utf-8", "surrogatepass")


def attack(case):
    """Run a case. Keep it in the corpus if it breaks an invariant."""
    try:
        hold(case)
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt):
            keep(case, error)
        raise


def keep(case, error):
    """Write one file per verb and kind of error: the last case of a search is the smallest."""
    kind = hashlib.sha256(f"{case.words[:1]}{type(error).__name__}".encode()).hexdigest()[:8]
    why = f"{type(error).__name__}: {error}"[:300]
    with contextlib.suppress(OSError):
        CORPUS.mkdir(exist_ok=True)
        path = CORPUS / f"found-{kind}.json"
        path.write_text(json.dumps({**asdict(case), "why": why}, indent=1) + "\n")


def hold(case):
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        os.chdir(folder)
        try:
            for name, text in case.files.items():
                Path(name).write_bytes(unpacked(text))
            done = run_here(case)
            check(case, done)
            assert not Path(CANARY).exists(), "something of a foreign file was executed"
            for name, text in case.files.items():
                if not any(word in case.words for word in WRITERS):
                    assert Path(name).read_bytes() == unpacked(text), f"{name} was changed"
        finally:
            os.chdir(before)


WRITERS = (
    "-o",
    "--html",
    "--csv",
    "--json",
    "--junit",
    "--markdown",
    "--to",
)


STARTS_NOTHING = ("report", "compare", "ticket", "explain")
"""Verbs that only read."""


def run_here(case):
    heard, begun, before = [], time.process_time(), resident_peak(reset=True)

    def no_worker(python, _):
        if case.words[0] in STARTS_NOTHING:
            heard.append(("worker", python))
        raise UsageError(f"{python} is not started here")

    with listening(heard), patch.object(worker_client, "start", no_worker):
        done = dlprof(*case.words, **case.variables)
    assert heard == [], f"it started {heard}"
    assert time.process_time() - begun < MOST_S, "it took too long"
    assert resident_peak() - before < MOST_BYTES, "it took too much memory"
    return done


def check(case, done):
    assert done.code in CODES, done
    both = done.out + done.err
    assert "Traceback (most recent call last)" not in both, both[-2000:]
    assert not STEERING.search(both), repr(STEERING.search(both))
    if "--github" not in case.words:
        assert not COMMAND.search(both), repr(COMMAND.search(both))
    if done.code == 2:
        assert done.sentence().startswith("dlprof: "), done.err
        assert len(done.sentence()) < 2100


_listeners = []


def _hear(event, arguments):
    if _listeners and event in STARTS:
        words = arguments[1] if event == "subprocess.Popen" else arguments
        _listeners[-1].append((event, str(words)[:200]))


sys.addaudithook(_hear)


@contextlib.contextmanager
def listening(heard):
    _listeners.append(heard)
    try:
        yield
    finally:
        _listeners.pop()


def resident_peak(reset=False):
    """Return this process's peak memory since the last reset, or 0 if the system does not say."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) << 10
    except (OSError, TypeError):
        return 0


def search(strategy, share, part=0, parts=1):
    """Run ``share`` of all cases of this strategy. Keep the smallest failing case in the corpus.

    Fails on fewer cases: Hypothesis stops early if it finds no other case.
    """
    wanted, drawn = max(1, round(CASES * share / parts)), []

    @seed(SEED * 1000 + part)
    @settings(
        max_examples=wanted,
        derandomize=False,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def one(case):
        drawn.append(case.words)
        attack(case)

    one()
    assert len(drawn) >= wanted, f"{len(drawn)} cases were drawn of {wanted}"
