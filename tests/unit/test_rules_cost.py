"""Rules on time, and the meaning of slower: DLP012, DLP014."""

import pytest
from builders import make_measure
from rule_builders import (
    US,
    by_process,
    disturbed,
    found,
    once,
    path,
    rules,
    spread,
    verdict,
    wrong,
)

from dlprof.judge import thresholds

FAST = path("fast(x)", 10 * US)
SLOW = path("slow(x)", 200 * US)
PROMISED = {"promise": "copy"}


def is_slow(slow, fast=10 * US):
    """Whether a path of one time is found slow next to a path of another."""
    return len(found("DLP012", path("slow(x)", slow), path("fast(x)", fast))) == 1


def test_a_path_that_takes_much_longer_is_slow():
    (finding,) = found("DLP012", SLOW, path("slower(x)", 300 * US), FAST)
    assert (finding.severity, finding.results, finding.against) == ("warning", [1, 0], 2)
    assert finding.evidence == {"cost_ns": 290 * US}
    assert "fast(x) is a view too: 10 µs instead of 300 µs" in finding.advice


@pytest.mark.parametrize(("times", "expected"), [(0.99, False), (1.01, True)])
def test_slow_is_by_ratio_and_by_gap(times, expected):
    assert is_slow(10 * US * thresholds.SLOW_RATIO * times) is expected
    assert is_slow(0.1 * US + thresholds.SLOW_GAP_NS * times, 0.1 * US) is expected


@pytest.mark.parametrize(("times", "severity"), [(0.99, "info"), (1.03, "warning")])
def test_a_slow_path_is_a_warning_above_a_certain_cost(times, severity):
    slow = path("slow(x)", 5 * US + thresholds.COSTLY_GAP_NS * times)
    assert found("DLP012", slow, path("fast(x)", 5 * US))[0].severity == severity
    noisy = path("f(x)", spread(15 * US, 0.4))
    assert found("DLP012", noisy, path("g(x)", 1 * US))[0].severity == "info"


BUSY = by_process(10 * US, 35 * US, 12 * US)


@pytest.mark.parametrize(
    ("slow", "fast", "expected"),
    [
        (make_measure(200 * US, (9 * US, 4000 * US), min_ns=150 * US), 10 * US, False),
        (make_measure(200 * US, (190 * US, 210 * US), min_ns=11 * US), 10 * US, False),
        (by_process(200 * US, 900 * US, 240 * US), BUSY, True),
        (by_process(200 * US, 69 * US, 240 * US), BUSY, False),
        (by_process(200 * US, 900 * US), BUSY, False),
        (disturbed(90 * US), 10 * US, False),
        (90 * US, disturbed(10 * US), False),
        (disturbed(200 * US), disturbed(10 * US), True),
        (once(9000 * US), once(10 * US), False),
    ],
    ids=["intervals touch", "fast once", "slow in every process", "not in each of them",
         "in two processes only", "disturbed", "beside a disturbed time", "disturbed, but far apart",
         "one process"],
)  # fmt: skip
def test_noise_is_not_slow(slow, fast, expected):
    assert is_slow(slow, fast) is expected


def test_a_disturbed_path_that_takes_far_longer_is_a_warning_with_a_mark():
    (finding,) = found("DLP012", path("slow(x)", disturbed(200 * US)), FAST)
    assert finding.severity == "warning"
    assert "~200 µs instead of 10 µs" in finding.headline


@pytest.mark.parametrize(
    ("slow", "fast"),
    [
        (SLOW, path("fast(x)", owner="copy")),
        (SLOW, path("fast(x)", fresh_source=verdict("kept"))),
        (SLOW, path("fast(x)", lifetime=verdict("retained"))),
        (SLOW, path("fast(x)", lifetime=verdict("unknown", reason="no answer within 5 s"))),
        (path("slow(x)", 200 * US, values=wrong(shape=[[4], [1]])), FAST),
        (
            path("slow(x)", 200 * US, "copy", case=PROMISED),
            path("fast(x, copy=False)", owner="copy", case=PROMISED),
        ),
    ],
    ids=[
        "a copy", "kept", "leaks", "lifetime not known", "wrong itself", "asks for no copy",
    ],
)  # fmt: skip
def test_a_path_is_not_slow_because_of(slow, fast):
    assert found("DLP012", slow, fast) == []


def looped(in_loop=350 * US, hoisted=110 * US, /, reach=0.02, owner="view", **changes):
    part = 1 - hoisted / in_loop
    share = {"median": part, "ci95": (part - reach, part + reach)}
    times = {"in_loop": spread(in_loop), "hoisted": spread(hoisted)}
    return path(
        "f(x)", owner=owner, placement={"use": "add(x, 1)", "share": share} | times | changes
    )


@pytest.mark.parametrize(
    ("in_loop", "hoisted", "expected"),
    [(100 * US, 81 * US, 0), (100 * US, 79 * US, 1), (1000.0, 100.0, 0), (1.0, 1.0, 0)],
)
def test_a_conversion_is_worth_moving_out_of_a_loop_by_share_and_by_gap(in_loop, hoisted, expected):
    assert len(found("DLP014", looped(in_loop, hoisted))) == expected


@pytest.mark.parametrize(
    "unsure",
    [
        {"reach": 0.9},
        {"reach": 0.3},  # above zero, but not finite
        {"share": None},
        {"hoisted": None},
        {"in_loop": make_measure(350 * US, (340 * US, 360 * US), min_ns=100 * US)},
        {"in_loop": disturbed(350 * US)},
    ],
)
def test_loops_that_cannot_be_told_apart_are_not_blamed(unsure):
    assert found("DLP014", looped(**unsure)) == []
    assert rules(path("f(x)", placement=None)) == []
