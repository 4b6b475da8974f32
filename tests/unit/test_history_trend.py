"""Trends: machines kept apart, steps in time and in verdicts, and what changed at them."""

import pytest
from history_builders import created, entry, machine, month, result, stepped, trend, trends

from dlprof.history.series import series_of
from dlprof.history.trend import chosen
from dlprof.reports.history_document import changes_of

VIEW, COPY = ({"verdict": word, "evidence": {}} for word in ("view", "copy"))


def packages(**versions):
    return {"environment": machine(packages={"torch": "2.9.0", "numpy": "2.4.0", **versions})}


def test_a_step_is_found_with_its_size_and_the_version_that_brought_it():
    header = lambda number: packages(numpy="2.5.0" if number >= 10 else "2.4.0")  # noqa: E731
    found = trend(month(stepped(), header=header))
    (step,) = found.steps
    assert step.slower
    assert step.step.interval[0] < 1.2 < step.step.interval[1]
    assert step.cause.behind.entry.session.created == created(10)
    assert [str(one) for one in step.cause.differences] == ["numpy 2.4.0 → 2.5.0"]
    assert found.verdicts == ()


def test_seeds_and_rounds_are_not_told():
    header = lambda number: {"seed": number, "rounds": 3 + number % 2}  # noqa: E731
    assert trend(month(stepped(), header=header)).steps[0].cause.differences == ()


@pytest.mark.parametrize(
    "change",
    [{"cpu": "Other"}, {"cores": 4}, {"gpus": [{"name": "A"}]}, {"machine": "aarch64"}],
    ids=lambda change: next(iter(change)),
)
def test_another_machine_is_another_series_and_never_a_step(change):
    header = lambda number: {"environment": machine(**(change if number >= 10 else {}))}  # noqa: E731
    found = trends(month(stepped(), header=header))
    assert [len(one.series.points) for one in found] == [10, 10]
    assert [one.steps for one in found] == [(), ()]


def test_another_kernel_is_the_same_machine():
    header = lambda number: {"environment": machine(platform=f"Linux-6.{number}")}  # noqa: E731
    assert len(trend(month([1000.0] * 5, header=header)).series.points) == 5


def test_view_to_copy_is_a_step_whatever_the_time_says():
    change = lambda number: {"ownership": COPY if number >= 3 else VIEW}  # noqa: E731
    found = trend(month([1000.0] * 5, change))
    (step,) = found.verdicts
    assert (step.change.before, step.change.after, step.change.direction) == (
        "view",
        "copy",
        "worse",
    )
    assert step.cause.behind.entry.session.created == created(3)
    assert found.steps == ()


def test_a_crash_is_a_step():
    def change(number):
        return {"status": "crashed", "reason": "SIGSEGV"} if number >= 3 else {}

    found = trend(month([1000.0] * 5, change))
    assert words(found.verdicts) == [("status", "ok", "crashed")]
    assert len(found.series.timed) == 3
    assert found.series.points[-1].doubt == "crashed: SIGSEGV"


def test_a_session_that_did_not_look_is_no_step():
    ordering = {"verdict": "synchronous", "evidence": {}}
    waits = {"verdict": "host-sync", "evidence": {}}

    def change(number):
        return {"ordering": (ordering, None, ordering, None, waits)[number]}

    found = trend(month([1000.0] * 5, change)).verdicts
    assert words(found) == [("ordering", "synchronous", "host-sync")]


def words(found):
    return [(step.change.what, step.change.before, step.change.after) for step in found]


@pytest.mark.parametrize("status", ["crashed", "timeout", "unsupported"])
def test_a_change_of_verdict_is_told_across_a_session_without_an_answer(status):
    def change(number):
        lost = {"status": status, "reason": "no"} if number == 3 else {}
        return {"ownership": COPY if number > 3 else VIEW, **lost}

    found = trend(month([1000.0] * 6, change)).verdicts
    assert words(found) == [
        ("status", "ok", status), ("status", status, "ok"), ("ownership", "view", "copy")
    ]  # fmt: skip
    before, behind = (getattr(found[2].cause, name).entry for name in ("before", "behind"))
    assert (before.session.created, behind.session.created) == (created(2), created(4))


def test_a_crash_of_an_instrument_is_a_step_once_and_so_is_its_end():
    safe = {"verdict": "safe", "evidence": {}}
    crash = {"verdict": "unknown", "evidence": {"worker": "crashed", "reason": "SIGSEGV"}}
    known = (safe, crash, None, crash, safe, crash)
    found = trend(month([1000.0] * 6, lambda number: {"lifetime": known[number]})).verdicts
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
    def change(number):
        return {"ownership": COPY, "case": {"shape": (1024, 1024)}}

    header = lambda number: {"foreign_cores": 7.9 if number == 2 else 0.0}  # noqa: E731
    found = trend(month([1e6] * 5, change, header))
    assert len(found.series.timed) == 4
    assert "busy" in found.series.points[2].doubt


def test_a_session_counts_in_the_mode_that_most_processes_are_in():
    def change(number):
        return {"faults": [0.0] * 8}

    mixed = result("a", 1000.0, processes=8, faults=[300.0] * 3 + [0.0] * 5, spread=0.0)
    slow = [
        one.model_copy(update={"samples_ns": [v * (4 if place < 3 else 1) for v in one.samples_ns]})
        for place, one in enumerate(mixed.host_time.processes)
    ]
    mixed = mixed.model_copy(
        update={"host_time": mixed.host_time.model_copy(update={"processes": slow})}
    )
    found = trend([entry(0, mixed)])
    assert found.series.points[0].time_ns == pytest.approx(1000.0)
    assert len(found.series.points[0].side) == 5


def test_a_step_into_another_mode_tells_the_page_faults():
    def change(number):
        return {"faults": [250.0 if number >= 10 else 0.0] * 8}

    (step,) = trend(month(stepped(ratio=3.0), change)).steps
    assert step.page_faults == (0.0, 250.0)


def test_a_step_because_something_else_was_timed_says_so():
    def change(number):
        return {"fresh_source": {"verdict": "not kept" if number >= 10 else "kept"}}

    (step,) = trend(month(stepped(ratio=3.0), change)).steps
    told = "what was timed a result that the framework keeps → a new conversion"
    assert [str(one) for one in step.cause.differences] == [told]


def test_a_case_that_later_sessions_of_its_machine_do_not_have_is_missing():
    with_b = [entry(n, result("a", seed=n), result("b", seed=50 + n)) for n in range(3)]
    without = [entry(n, result("a", seed=n)) for n in (3, 4)]
    a, b = trends([*with_b, *without])
    assert (a.series.missing, b.series.missing) == (0, 2)


def test_a_shift_of_all_cases_at_once_is_told():
    entries = [
        entry(
            n,
            *(
                result(
                    name, (1.3 if n >= 10 else 1.0) * (1000.0 + 100 * place), seed=100 * n + place
                )
                for place, name in enumerate("abcde")
            ),
        )
        for n in range(20)
    ]
    found = trends(entries)
    assert [[step.shared for step in one.steps] for one in found] == [[(5, 5)]] * 5
    assert all("all 5 cases" in change.what for change in changes_of(found))


@pytest.mark.parametrize("measure", ["ready", "host", "first_call", "device"])
def test_every_measure_has_a_trend(measure):
    def change(number):
        return {"first_call_ns": 5000.0, "device_time": {"warm": {"median_ns": 70.0}}}

    found = trend(month([1000.0] * 3, change), measure)
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
