"""Trends: machines kept apart, steps in time and in verdicts, and what changed at them."""

import pytest
from comparison_builders import timed
from history_builders import created, entry, machine, month, result, stepped, trend, trends

from dlprof.compare.verdicts import RACE_LOOKS
from dlprof.history.series import series_of
from dlprof.history.trend import chosen
from dlprof.report.history_document import changes_of

VIEW, COPY = ({"verdict": word, "evidence": {}} for word in ("view", "copy"))


def on(**facts):
    """The header of a session on a machine that differs in these facts."""
    return {"environment": machine(**facts)}


def answering(**answers):
    """The trend of a case whose sessions answered this, one after the other."""
    count = len(next(iter(answers.values())))
    sessions = [{name: found[number] for name, found in answers.items()} for number in range(count)]
    return trend(month([1000.0] * count, sessions.__getitem__))


def words(found):
    return [(step.change.what, step.change.before, step.change.after) for step in found]


def test_a_step_is_found_with_its_size_and_the_version_that_brought_it():
    def header(number):
        return on(packages={"numpy": "2.5.0" if number >= 10 else "2.4.0"})

    found = trend(month(stepped(), header=header))
    (step,) = found.steps
    assert step.slower
    assert step.step.interval[0] < 1.2 < step.step.interval[1]
    assert step.cause.behind.entry.session.created == created(10)
    assert [str(one) for one in step.cause.differences] == ["numpy 2.4.0 → 2.5.0"]
    assert found.verdicts == ()


@pytest.mark.parametrize(
    "change",
    [{"cpu": "Other"}, {"cores": 4}, {"gpus": [{"name": "A"}]}, {"machine": "aarch64"}],
    ids=lambda change: next(iter(change)),
)
def test_another_machine_is_another_series_and_never_a_step(change):
    found = trends(month(stepped(), header=lambda number: on(**(change if number >= 10 else {}))))
    assert [len(one.series.points) for one in found] == [10, 10]
    assert [one.steps for one in found] == [(), ()]


def test_another_kernel_is_the_same_machine():
    found = month([1000.0] * 5, header=lambda number: on(platform=f"Linux-6.{number}"))
    assert len(trend(found).series.points) == 5


def test_a_race_is_a_step_only_after_so_many_sessions_without_it_that_it_is_no_chance():
    safe, unsafe = ({"verdict": word, "evidence": {}} for word in ("safe", "unsafe"))
    seldom = [safe, unsafe, safe, safe, unsafe]
    assert words(answering(early_write=seldom).verdicts) == []
    found = answering(early_write=[unsafe, *[safe] * RACE_LOOKS, unsafe])
    assert words(found.verdicts) == [("early_write", "safe", "unsafe")]


def test_view_to_copy_is_a_step_whatever_the_time_says():
    found = answering(ownership=[VIEW, VIEW, VIEW, COPY, COPY])
    (step,) = found.verdicts
    assert words([step]) == [("ownership", "view", "copy")]
    assert step.change.direction == "worse"
    assert step.cause.behind.entry.session.created == created(3)
    assert found.steps == ()


def test_a_crash_is_a_step():
    crash = {"status": "crashed", "reason": "SIGSEGV"}
    found = trend(month([1000.0] * 5, lambda number: crash if number >= 3 else {}))
    assert words(found.verdicts) == [("status", "ok", "crashed")]
    assert len(found.series.timed) == 3
    assert found.series.points[-1].doubt == "crashed: SIGSEGV"


def test_a_session_that_did_not_look_is_no_step():
    free, waits = ({"verdict": word, "evidence": {}} for word in ("synchronous", "host-sync"))
    found = answering(ordering=[free, None, free, None, waits]).verdicts
    assert words(found) == [("ordering", "synchronous", "host-sync")]


@pytest.mark.parametrize("status", ["crashed", "timeout", "unsupported"])
def test_a_change_of_verdict_is_told_across_a_session_without_an_answer(status):
    found = answering(
        status=["ok", "ok", "ok", status, "ok", "ok"],
        ownership=[VIEW, VIEW, VIEW, VIEW, COPY, COPY],
    ).verdicts
    assert words(found) == [
        ("status", "ok", status), ("status", status, "ok"), ("ownership", "view", "copy")
    ]  # fmt: skip
    before, behind = (getattr(found[2].cause, name).entry for name in ("before", "behind"))
    assert (before.session.created, behind.session.created) == (created(2), created(4))


def test_a_crash_of_an_instrument_is_a_step_once_and_so_is_its_end():
    safe = {"verdict": "safe", "evidence": {}}
    crash = {"verdict": "unknown", "evidence": {"worker": "crashed", "reason": "SIGSEGV"}}
    found = answering(lifetime=[safe, crash, None, crash, safe, crash]).verdicts
    assert words(found) == [
        ("lifetime", "safe", "crashed"),
        ("lifetime", "crashed", "safe"),
        ("lifetime", "safe", "crashed"),
    ]
    assert [step.change.direction for step in found] == ["worse", "better", "worse"]


def test_what_depends_on_the_address_is_no_step_at_any_shape():
    """The instrument looks at the first shape only."""
    seen = {
        "aligned": {"verdict": "view", "evidence": {}},
        "sliced": {"verdict": "copy", "evidence": {}},
    }
    looked = {"verdict": "dependent", "evidence": seen}

    def session(number):
        first = result("a", seed=number, alignment=looked)
        word = COPY if number % 2 else VIEW
        return entry(number, first, result("a", ownership=word, case={"shape": (64, 64)}))

    found = trends([session(number) for number in range(6)])
    assert [words(one.verdicts) for one in found] == [[], []]


def test_copies_of_a_busy_machine_are_left_out_of_the_trend():
    large = {"ownership": COPY, "case": {"shape": (1024, 1024)}}
    busy = [{"foreign_cores": cores} for cores in (0.0, 0.0, 7.9, 0.0, 0.0)]
    found = trend(month([1e6] * 5, lambda _: large, busy.__getitem__))
    assert len(found.series.timed) == 4
    assert "busy" in found.series.points[2].doubt


def test_a_session_counts_in_the_mode_that_most_processes_are_in():
    mixed = timed("a", [4000.0] * 3 + [1000.0] * 5, faults=[300.0] * 3 + [0.0] * 5, loops=1000)
    (point,) = trend([entry(0, mixed)]).series.points
    assert point.time_ns == pytest.approx(1000.0)
    assert len(point.side) == 5


def test_a_step_because_something_else_was_timed_says_so():
    def change(number):
        return {"fresh_source": {"verdict": "not kept" if number >= 10 else "kept"}}

    (step,) = trend(month(stepped(ratio=3.0), change)).steps
    (told,) = map(str, step.cause.differences)
    assert told.startswith("what was timed ")


def test_a_case_that_later_sessions_of_its_machine_do_not_have_is_missing():
    with_b = [entry(n, result("a", seed=n), result("b", seed=50 + n)) for n in range(3)]
    without = [entry(n, result("a", seed=n)) for n in (3, 4)]
    a, b = trends([*with_b, *without])
    assert (a.series.missing, b.series.missing) == (0, 2)


def test_a_shift_of_all_cases_at_once_is_told():
    def session(number, ns):
        cases = enumerate("abcde")
        return entry(number, *(result(name, ns, seed=100 * number + at) for at, name in cases))

    found = trends([session(number, ns) for number, ns in enumerate(stepped(ratio=1.3))])
    assert [[step.shared for step in one.steps] for one in found] == [[(5, 5)]] * 5
    assert all("all 5 cases" in change.what for change in changes_of(found))


@pytest.mark.parametrize("measure", ["ready", "host", "first_call", "device"])
def test_every_measure_has_a_trend(measure):
    times = {"first_call_ns": 5000.0, "device_time": {"warm": {"median_ns": 70.0}}}
    found = trend(month([1000.0] * 3, lambda _: times), measure)
    wanted = {"first_call": 5000.0, "device": 70.0}.get(measure, 1000.0)
    assert found.series.points[0].time_ns == pytest.approx(wanted, rel=0.02)


def test_a_case_that_a_session_has_twice_is_left_out():
    assert trends([entry(0, result("a", seed=1), result("a", seed=2))]) == ()


@pytest.mark.parametrize(
    ("glob", "codes"),
    [
        ("*", ["numpy.a(x)", "numpy.b(x)"]),
        ("numpy.a*", ["numpy.a(x)"]),
        ("torch->numpy", ["numpy.a(x)", "numpy.b(x)"]),
        ("torch", ["numpy.a(x)", "numpy.b(x)"]),
        ("jax*", []),
    ],
)
def test_cases_are_chosen_by_code_or_pair(glob, codes):
    found = series_of([entry(0, result("a"), result("b"))], "ready")
    assert [one.case.code for one in chosen(found, [glob])] == codes
