"""Rules on time: slow paths, slow directions, loops."""

from __future__ import annotations

import pytest
from builders import make_measure
from rule_builders import US, found, once, path, rules, spread, verdict

from dlprof.analysis import thresholds
from dlprof.analysis.slower import clearly_longer, is_known, longer_by_itself, surely_saved_ns
from dlprof.session.model import ProcessSamples

pytestmark = pytest.mark.unit

FAST = path("fast(x)", 10 * US)


def test_a_path_that_takes_much_longer_is_slow():
    (finding,) = found("DLP012", path("slow(x)", 200 * US), FAST)
    assert (finding.severity, finding.results) == ("warning", (0,))
    assert "slow(x), a view, takes 200 us: 20 times as long as the fastest" in finding.summary
    assert finding.advice == "fast(x) is a view too: 10 us instead of 200 us, 20 times as fast."


def test_of_several_slow_paths_the_time_is_told_of_the_first():
    """It wastes most for certain, which need not be the slowest."""
    results = path("slow(x)", 200 * US), path("slower(x)", 300 * US), FAST
    (finding,) = found("DLP012", *results)
    told = "slower(x), slow(x), a view each, take longer; for instance the first: 300 us, 30 times"
    assert finding.summary == f"{told} as long as the fastest"


def test_of_several_slow_paths_code_keeps_its_colons():
    slow = path("slow(x)", 200 * US), path("slower(x)", 300 * US)
    keeps = path("f(x)", 1 * US, fresh_source=verdict("kept"))  # faster, and advised to nobody
    (finding,) = found("DLP012", *slow, path("x[:]", 10 * US), keeps)
    assert finding.summary.endswith("300 us, 30 times as long as x[:]")


@pytest.mark.parametrize(("times", "expected"), [(0.99, 0), (1.01, 1)])
def test_slow_is_by_ratio(times, expected):
    slow = path("slow(x)", 10 * US * thresholds.SLOW_RATIO * times)
    assert len(found("DLP012", slow, FAST)) == expected


@pytest.mark.parametrize(("times", "expected"), [(0.99, 0), (1.01, 1)])
def test_slow_is_by_gap(times, expected):
    fast = path("fast(x)", 0.1 * US)
    slow = path("slow(x)", 0.1 * US + thresholds.SLOW_GAP_NS * times)
    assert len(found("DLP012", slow, fast)) == expected


@pytest.mark.parametrize(("times", "severity"), [(0.99, "info"), (1.03, "warning")])
def test_a_slow_path_is_worth_a_warning_from_some_cost_on(times, severity):
    slow = path("slow(x)", 5 * US + thresholds.COSTLY_GAP_NS * times)
    (finding,) = found("DLP012", slow, path("fast(x)", 5 * US))
    assert finding.severity == severity


def test_intervals_that_touch_are_noise():
    wide = make_measure(200 * US, (9 * US, 4000 * US), min_ns=150 * US)
    assert found("DLP012", path("slow(x)", wide), FAST) == []


def by_process(*medians_ns, **changes):
    """A time of several processes whose interval is as wide as the machine was busy."""
    processes = [
        {"round": round_, "loops": 1, "samples_ns": [median]}
        for round_, median in enumerate(medians_ns)
    ]
    middle = sorted(medians_ns)[len(medians_ns) // 2]
    fields = {"min_ns": min(medians_ns), "processes": processes} | changes
    return make_measure(middle, (middle / 100, middle * 100), **fields)


BUSY = (10 * US, 35 * US, 12 * US)


def test_what_is_slow_in_every_process_is_slow_whatever_the_intervals():
    slow = path("slow(x)", by_process(200 * US, 900 * US, 240 * US))
    assert len(found("DLP012", slow, path("fast(x)", by_process(*BUSY)))) == 1


def test_a_time_that_is_also_the_host_time_has_the_processes_of_that():
    host = by_process(200 * US, 900 * US, 240 * US)
    ready = host.model_copy(update={"processes": [], "same_as": "host_time"})
    slow = path("slow(x)", ready, host=host)
    assert len(found("DLP012", slow, path("fast(x)", by_process(*BUSY)))) == 1


@pytest.mark.parametrize(
    "medians_ns",
    [
        (200 * US, 69 * US, 240 * US),  # under twice as long in one process
        (200 * US, 900 * US),  # in two processes only
    ],
)
def test_what_is_not_slow_in_each_of_three_processes_is_noise(medians_ns):
    slow = path("slow(x)", by_process(*medians_ns))
    assert found("DLP012", slow, path("fast(x)", by_process(*BUSY))) == []


def test_what_was_fast_once_is_not_slow_by_itself():
    hindered = make_measure(200 * US, (190 * US, 210 * US), min_ns=11 * US)
    assert found("DLP012", path("slow(x)", hindered), FAST) == []


def test_what_other_programs_took_is_no_cost_of_a_path():
    def stalled(*disturbed):
        processes = [
            ProcessSamples(round=at, loops=1, samples_ns=[8_000 * US] * 5, disturbed=share)
            for at, share in enumerate(disturbed)
        ]
        return spread(8_000 * US).model_copy(update={"processes": processes})

    fast = spread(50 * US)
    assert longer_by_itself(stalled(0.0, 0.4, 0.4), fast, 2.0, US)
    assert longer_by_itself(stalled(0.9, 0.0, 0.0), fast, 2.0, US)
    assert not longer_by_itself(stalled(0.5, 0.8, 0.0), fast, 2.0, US)


def test_modes_are_compared_by_the_nearest():
    modes = [{"median_ns": median, "rounds": [0]} for median in (15 * US, 900 * US)]
    slow = make_measure(900 * US, None, min_ns=15 * US, modes=modes)
    assert found("DLP012", path("slow(x)", slow), path("fast(x)", spread(10 * US, 0.6))) == []


def in_modes(*medians_us):
    """A time of one process in each mode."""
    modes = [{"median_ns": median * US, "rounds": [at]} for at, median in enumerate(medians_us)]
    typical = medians_us[len(medians_us) // 2] * US
    return make_measure(typical, None, min_ns=min(medians_us) * US, modes=modes)


@pytest.mark.parametrize(
    ("slow", "fast", "expected"),
    [
        (in_modes(60, 200, 600), in_modes(5, 6, 20), 1),
        (in_modes(60, 200, 600), in_modes(5, 6, 40), 0),
        (in_modes(60, 200, 600), spread(29 * US), 1),
        (in_modes(60, 200, 600), spread(31 * US), 0),
        (spread(60 * US), in_modes(5, 6, 29), 1),
        (spread(60 * US), in_modes(5, 6, 31), 0),
    ],
)
def test_no_claim_rests_on_one_of_several_modes(slow, fast, expected):
    assert len(found("DLP012", path("slow(x)", slow), path("fast(x)", fast))) == expected


def test_modes_are_told_as_modes_and_their_ratio_as_the_least():
    slow, fast = path("slow(x)", in_modes(60, 200, 600)), path("fast(x)", in_modes(5, 6, 20))
    (finding,) = found("DLP012", slow, fast)
    assert "takes 60 | 200 | 600 us: at least 3.0 times as long as the fastest" in finding.summary
    assert finding.advice == (
        "fast(x) is a view too: 5.0 | 6.0 | 20 us instead of 60 | 200 | 600 us,"
        " at least 3.0 times as fast."
    )
    ends = (finding.evidence[f"{name}_mode_ns"] for name in ("slow_fastest", "fast_slowest"))
    assert tuple(ends) == (60 * US, 20 * US)
    assert finding.evidence["cost_ns"] == 40 * US


@pytest.mark.parametrize(("times", "expected"), [(0.99, False), (1.01, True)])
def test_without_intervals_the_ratio_is_larger(times, expected):
    longer = once(10 * US * thresholds.UNREPEATED_RATIO * times)
    assert clearly_longer(longer, once(10 * US), 2.0, US) is expected


def alone(*samples_us, disturbed=0.0):
    """The time of one process, from its samples."""
    samples = [sample * US for sample in samples_us]
    process = ProcessSamples(round=0, loops=1, samples_ns=samples, disturbed=disturbed)
    median = sorted(samples)[len(samples) // 2]
    return make_measure(median, None, min_ns=min(samples), processes=[process])


STALLED = alone(19_700, 19_900, 19_900, 260, 120)
"""Most of a process in which threads waited for a processor, and the kernel counted too few."""


def test_a_process_whose_own_samples_disagree_accuses_no_path():
    fast = path("fast(x)", alone(56, 56, 57), "copy")
    assert found("DLP012", path("slow(x)", STALLED, "copy"), fast) == []
    assert found("DLP004", path("slow(x)", STALLED, "copy"), path("view(x)", alone(1, 1, 1))) == []


def test_a_process_whose_own_samples_agree_accuses_a_slow_path():
    slow = path("slow(x)", alone(19_700, 19_900, 20_100), "copy")
    (finding,) = found("DLP012", slow, path("fast(x)", alone(56, 56, 57), "copy"))
    assert finding.severity == "warning"
    assert "takes ~20 ms: about 360 times as long as the fastest" in finding.summary


@pytest.mark.parametrize(("times", "expected"), [(0.99, False), (1.01, True)])
def test_the_fastest_sample_of_one_process_must_bear_the_ratio_out(times, expected):
    fastest = 10 * thresholds.UNREPEATED_RATIO * times
    longer = alone(fastest, 2 * fastest, 2 * fastest)
    assert longer_by_itself(longer, once(10 * US), 2.0, US) is expected


@pytest.mark.parametrize(("times", "expected"), [(0.99, True), (1.01, False)])
def test_the_time_of_one_process_is_known_as_far_as_its_samples_agree(times, expected):
    assert is_known(alone(10, 10 * thresholds.SCATTER_RATIO * times, 100)) is expected


def test_of_several_processes_the_medians_say_how_far_they_agree():
    assert is_known(spread(100 * US).model_copy(update={"min_ns": US}))


def test_of_one_process_its_fastest_sample_says_what_is_saved_surely():
    assert surely_saved_ns(alone(40, 60, 60), once(10 * US)) == 30 * US
    assert surely_saved_ns(STALLED, once(10 * US)) == 0.0


def disturbed(median_ns, **changes):
    """A time of which other programs had most."""
    processes = [
        ProcessSamples(round=at, loops=1, samples_ns=[median_ns], disturbed=1.0) for at in range(3)
    ]
    return spread(median_ns).model_copy(update={"processes": processes} | changes)


def test_a_path_is_compared_with_the_fastest_whose_time_is_known():
    slow, known = path("slow(x)", 200 * US), path("known(x)", 10 * US)
    (finding,) = found("DLP012", slow, known, path("stalled(x)", disturbed(8 * US)))
    assert "takes 200 us: 20 times as long as known(x)" in finding.summary
    assert finding.advice.startswith("known(x) is a view too: 10 us instead of 200 us")
    (finding,) = found("DLP012", slow, known, path("stalled(x)", disturbed(300 * US)))
    assert "20 times as long as the fastest" in finding.summary


@pytest.mark.parametrize("missing", [(None, FAST.ready_time), (FAST.ready_time, None)])
def test_a_time_that_is_missing_is_not_longer(missing):
    assert clearly_longer(*missing, 2.0, US) is False


@pytest.mark.parametrize(
    "fast",
    [
        path("fast(x)", owner="copy"),
        path("fast(x)", owner="unknown"),
        path("fast(x)", case={"shape": [7]}),
        path("fast(x)", case={"promise": "copy"}),
        path("fast(x)", fresh_source=verdict("kept")),
        path("fast(x)", lifetime=verdict("retained")),
        path("fast(x)", status="invalid"),
    ],
    ids=["a copy", "not known", "another shape", "breaks its promise", "kept", "leaks", "invalid"],
)
def test_a_path_is_not_slow_because_of(fast):
    assert found("DLP012", path("slow(x)", 200 * US), fast) == []


@pytest.mark.parametrize("values", [verdict("wrong", changed={"shape": [[4], [1]]}), None])
def test_a_result_that_is_not_right_is_not_compared(values):
    assert found("DLP012", path("slow(x)", 200 * US, values=values), FAST) == []


def test_a_path_that_asks_for_no_copy_is_no_faster_copy():
    slow = path("slow(x)", 200 * US, "copy", case={"promise": "copy"})
    fast = path("fast(x, copy=False)", owner="copy", case={"promise": "copy"})
    assert found("DLP012", slow, fast) == []


def test_a_hazard_found_at_one_shape_holds_for_every_shape():
    hazard = path("fast(x)", lifetime=verdict("dangling", changed_after_drop=True))
    other = {"shape": [7]}
    results = hazard, path("fast(x)", case=other), path("slow(x)", 200 * US, case=other)
    assert found("DLP012", *results) == []


def test_a_promised_copy_is_compared_with_promised_copies():
    promised = {"promise": "copy"}
    slow = path("slow(x)", 200 * US, "copy", case=promised)
    assert found("DLP012", slow, path("fast(x)", owner="copy")) == []
    (finding,) = found("DLP012", slow, path("fast(x)", owner="copy", case=promised))
    assert "fast(x) is a copy too" in finding.advice


def test_slow_views_and_slow_copies_are_two_findings_and_each_holds_all_paths():
    views = [path(f"v{number}(x)", 200 * US) for number in range(4)]
    copies = [path(f"c{number}(x)", 200 * US, "copy") for number in range(4)]
    results = [*views, *copies, FAST, path("fast copy(x)", 10 * US, "copy")]
    assert sorted(len(finding.results) for finding in found("DLP012", *results)) == [4, 4]


THERE = {"producer": "a", "consumer": "b"}
BACK = {"producer": "b", "consumer": "a"}


def test_a_direction_that_costs_many_times_the_other_is_told():
    (finding,) = found(
        "DLP013", path("there(x)", 500 * US, "copy", case=THERE), path("back(x)", case=BACK)
    )
    assert finding.severity == "info"
    assert (finding.results, finding.against) == ((0,), 1)
    assert (
        "from a to b costs 500 us at best (a copy), back 5.0 us (a view): 100 times"
        in finding.summary
    )


@pytest.mark.parametrize(("times", "expected"), [(0.99, 0), (1.01, 1)])
def test_asymmetric_is_by_ratio(times, expected):
    there = path("there(x)", 5 * US * thresholds.ASYMMETRIC_RATIO * times, case=THERE)
    assert len(found("DLP013", there, path("back(x)", 5 * US, case=BACK))) == expected


def test_a_cheap_path_there_is_enough_even_if_it_is_not_always_a_view():
    slow = path("slow(x)", 500 * US, "copy", case=THERE)
    cheap = path("cheap(x)", owner=verdict("varies", processes=[]), case=THERE)
    assert found("DLP013", slow, cheap, path("back(x)", case=BACK)) == []


def test_one_direction_alone_is_not_asymmetric():
    assert rules(path("there(x)", 500 * US, case=THERE)) == []


def looped(in_loop, hoisted, /, reach=0.02, **changes):
    part = 1 - hoisted / in_loop
    share = {"median": part, "ci95": (part - reach, part + reach)}
    times = {"in_loop": spread(in_loop), "hoisted": spread(hoisted)}
    placement = {"use": "add(x, 1)", "share": share} | times | changes
    return path("f(x)", placement=placement)


def test_a_conversion_that_fills_a_loop_is_told():
    (finding,) = found("DLP014", looped(350 * US, 110 * US))
    assert finding.severity == "warning"
    assert "takes 69% of a loop: 350 ±4 us per turn" in finding.summary


@pytest.mark.parametrize(
    ("in_loop", "hoisted", "expected"),
    [(100 * US, 81 * US, 0), (100 * US, 79 * US, 1), (1000.0, 100.0, 0), (1.0, 1.0, 0)],
)
def test_a_loop_is_worth_it_by_share_and_by_gap(in_loop, hoisted, expected):
    assert len(found("DLP014", looped(in_loop, hoisted))) == expected


@pytest.mark.parametrize(
    "unsure",
    [
        {"reach": 0.9},
        {"reach": 0.3},  # above zero, and yet no number
        {"share": None},
        {"share": {"median": 0.7}},
        {"hoisted": None},
        {"in_loop": None},
    ],
)
def test_loops_that_cannot_be_told_apart_are_not_blamed(unsure):
    assert found("DLP014", looped(350 * US, 110 * US, **unsure)) == []


def test_a_loop_that_was_once_as_fast_as_the_other_is_not_blamed():
    fast_once = make_measure(350 * US, (340 * US, 360 * US), min_ns=100 * US)
    assert found("DLP014", looped(350 * US, 110 * US, in_loop=fast_once)) == []


def test_a_view_may_be_hoisted_whatever_is_written_later():
    (finding,) = found("DLP014", looped(350 * US, 110 * US))
    assert "shows later writes" in finding.advice


def test_a_copy_may_be_hoisted_if_the_source_does_not_change():
    result = looped(350 * US, 110 * US).model_dump(by_alias=True)
    copied = path("f(x)", owner="copy", placement=result["placement"])
    (finding,) = found("DLP014", copied)
    assert "if the source does not change" in finding.advice
    (finding,) = found("DLP014", looped(350 * US, 110 * US), copied)
    assert "if the source does not change" in finding.advice


def test_without_a_placement_nothing_is_said_of_loops():
    assert rules(path("f(x)", placement=None)) == []


def samples(*medians_ns):
    """A time of so many processes, of one sample each."""
    processes = [
        {"round": number, "loops": 1, "samples_ns": [median]}
        for number, median in enumerate(medians_ns)
    ]
    middle = sorted(medians_ns)[len(medians_ns) // 2]
    interval = (min(medians_ns), max(medians_ns))
    return make_measure(middle, interval, min_ns=interval[0], processes=processes)


@pytest.mark.parametrize(
    ("longer", "shorter", "surely"),
    [
        (once(30 * US), once(10 * US), 20 * US),
        (spread(30 * US, 0.1), spread(10 * US, 0.1), 16 * US),
        (samples(20 * US, 30 * US, 90 * US), samples(5 * US, 10 * US, 60 * US), 15 * US),
        (spread(10 * US), spread(30 * US), 0.0),
        (None, spread(30 * US), 0.0),
    ],
    ids=["one process", "from interval to interval", "in every process", "shorter", "no time"],
)
def test_what_is_saved_surely_is_no_more_than_noise_leaves(longer, shorter, surely):
    assert surely_saved_ns(longer, shorter) == pytest.approx(surely)


def test_a_slow_path_whose_cost_may_be_noise_is_an_info():
    noisy = spread(15 * US, 0.4)
    (finding,) = found("DLP012", path("f(x)", noisy), path("g(x)", 1 * US))
    assert finding.severity == "info"
    (finding,) = found("DLP012", path("f(x)", 15 * US), path("g(x)", 1 * US))
    assert finding.severity == "warning"
