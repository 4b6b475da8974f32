"""Two runners that measure in turns, with real processes."""

import os
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path as File

import pytest
from builders import make_case, make_probe_info, make_way

from dlprof.compare.gate import Player, alternate
from dlprof.runner.pairing import Path
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Settings
from dlprof.runner.rounds import Runner
from dlprof.runner.session_file import SessionFile
from dlprof.runner.worker_client import Workers

STAMPED = f"file:{File(__file__).parent.parent / 'probe_files' / 'stamped.py'}"
CPU = max(os.sched_getaffinity(0))
SAMPLES = 5
BOTH = {0: 0, 1: 1}


def cases():
    probe = make_probe_info("stamped", source=STAMPED)
    paths = [
        Path(make_way("array"), make_way(name), "native", f"{name}(x)") for name in ("view", "copy")
    ]
    made = make_case(shape=(16,))
    return [replace(made, producer=probe, consumer=probe, path=path) for path in paths]


class Side:
    """A runner whose workers log the times of conversions."""

    def __init__(self, folder, setup="", limit_s=60.0):
        self.stamps = folder
        self.file = SessionFile(folder.with_suffix(".json"), {})
        setup = f"stamps = open({str(folder)!r}, 'ab'); {setup}"
        settings = Settings(
            diagnose=False, alignment=False, together=True, in_turns=True, sample_ns=1,
            limit_s=limit_s, setup=setup,
        )  # fmt: skip
        self.runner = Runner(Workers(sys.executable, {}), cases(), settings, self.file, Watcher())

    def player(self, order=(0, 1)):
        return Player(self.runner.turns(1, order, CPU), BOTH)

    def spans(self):
        """Yield begin and end of each conversion, and whether it was pinned."""
        for line in self.stamps.read_text(encoding="ascii").splitlines():
            begin, end, where = line.split(" ", 2)
            yield int(begin), int(end), where == f"[{CPU}]"

    def answers(self, case):
        return [answer for _, answer in self.file.answers(case)]

    def statuses(self):
        return [[answer["status"] for answer in self.answers(case)] for case in (0, 1)]


@pytest.fixture
def side(tmp_path):
    made = []

    def side(**asked):
        made.append(Side(tmp_path / f"stamps{len(made)}", **asked))
        return made[-1]

    yield side
    for one in made:
        one.runner.close()
        one.file.close()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="pinned or not is the same")
def test_samples_of_both_sides_alternate_and_no_two_are_at_once(side):
    base, head = side(), side()
    alternate(base.player(), head.player())
    assert base.statuses() == head.statuses() == [["ok"], ["ok"]]
    spans = sorted(
        (*span, name) for name, one in (("A", base), ("B", head)) for span in one.spans()
    )
    assert all(end <= begin for (_, end, *_), (begin, *_) in pairwise(spans))
    pinned = [name for *_, pinned, name in spans if pinned]
    runs = [name for place, name in enumerate(pinned) if not place or pinned[place - 1] != name]
    assert "".join(runs) == "AB" * (2 * SAMPLES)


def test_a_side_whose_worker_dies_in_its_turns_lets_the_other_go_on(side):
    base, head = side(setup="breaks = 40"), side()
    alternate(base.player(), head.player())
    assert head.statuses() == [["ok"], ["ok"]]
    assert base.statuses() == [["crashed"], ["crashed"]]
    assert "SIGABRT" in base.answers(0)[0]["reason"]
