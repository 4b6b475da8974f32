"""A file that is no session costs little memory."""

import re
import sys

import pytest
from command_line import process

MOST_BYTES = 384 << 20
"""dlprof itself takes 72 MiB. Files of four times the size may take 512 MiB."""
ENTRIES = 175_000
SCHEMA = '{"schema": "dlprof.session/1", '


def many(value):
    return ",".join([value] * ENTRIES)


FOREIGN = {
    "a long value": '{"a": [' + ",".join([many("{}")] * 10) + "]}",
    "many names": "{" + ",".join(f'"{at}": {{}}' for at in range(250_000)) + "}",
    "findings without a schema": '{"findings": ['
    + ",".join(['{"rule": "", "name": "", "severity": "", "results": [], "summary": ""}'] * 60_000),
    "one name again and again": SCHEMA + '"results": [],' * 25_000 + '"results": []}',
    "results that are none": SCHEMA + f'"results": [{many("1")}]}}',
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
"""A dlprof that prints its peak memory as its last line."""


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_refused_in_little_memory(tmp_path, name):
    path = tmp_path / "foreign.json"
    path.write_text(FOREIGN[name])
    done = process("report", path, command=MEASURED)
    assert done.code == 2, done.err[-2000:]
    assert "session" in done.sentence()
    peak_kib = int(re.search(r"VmHWM:\s*(\d+) kB", done.out)[1])
    assert peak_kib << 10 < MOST_BYTES
