"""A file that is no session costs little, whatever is in it."""

import json
import re
import subprocess
import sys

import pytest
from command_line import environment
from comparison_builders import suite

MOST_BYTES = 512 << 20
ENTRIES = 700_000
SCHEMA = '{"schema": "dlprof.session/1", '


def many(value):
    return ",".join([value] * ENTRIES)


def spoiled(text):
    """A session with very much of what does not belong there."""
    session = json.loads(text)
    first = session["results"][0]
    numbers = [1] * ENTRIES
    return {
        "results": {**session, "results": numbers},
        "findings": {**session, "findings": numbers},
        "handshake": {**session, "results": [{**first, "handshake": numbers}]},
        "notes": {**session, "results": [{**first, "notes": numbers}]},
    }


FOREIGN = {
    "integers": f"[{many('1')}]",
    "a long value": '{"a": [' + many("{}") * 10 + "]}",
    "many names": "{" + ",".join(f'"{at}": {{}}' for at in range(1_000_000)) + "}",
    "findings without a schema": '{"findings": ['
    + ",".join(
        ['{"rule": "", "name": "", "severity": "", "results": [], "summary": ""}'] * 300_000
    ),
    "one name again and again": SCHEMA + '"results": [],' * 100_000 + '"results": []}',
}


MEASURED = (
    sys.executable,
    "-c",
    (
        "import atexit, pathlib, sys; atexit.register(lambda: print("
        "pathlib.Path('/proc/self/status').read_text(), flush=True));"
        " from dlprof.cli import main; main()"
    ),
)
"""A dlprof that prints its peak memory last."""


def refused(verb, path):
    words = [path] if verb == "report" else [path, path]
    done = subprocess.run(
        [*MEASURED, verb, *words],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 2, done.stderr[-2000:]
    peak_kib = int(re.search(r"VmHWM:\s*(\d+) kB", done.stdout)[1])
    assert peak_kib << 10 < MOST_BYTES
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_refused_within_512_mib(tmp_path, name):
    path = tmp_path / "foreign.json"
    path.write_text(FOREIGN[name])
    assert "session" in refused("report", path)


@pytest.mark.parametrize(
    ("verb", "name"),
    [("report", "results"), ("compare", "findings"), ("report", "handshake"), ("report", "notes")],
)
def test_a_spoiled_session_is_refused_at_its_first_error(keep, verb, name):
    path = keep("s", suite())
    path.write_text(json.dumps(spoiled(path.read_text())[name]))
    # The whole list is one value in a result.
    many = name in ("handshake", "notes")
    told = "more than 250,000 parts" if many else f"is not a valid session: {name}.0"
    assert told in refused(verb, path)
