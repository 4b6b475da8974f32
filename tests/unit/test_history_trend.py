"""Trends: machines kept apart, steps in time and in verdicts, and what changed at them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from history_builders import created, entry, machine, month, result, stepped, trend, trends

from dlprof.history.series import series_of
from dlprof.history.trend import chosen
from dlprof.reports.history_text import number, time_step_text

pytestmark = pytest.mark.unit

VIEW, COPY = ({"verdict": word, "evidence": {}} for word in ("view", "copy"))


def packages(**versions):
    return {"environment": machine(packages={"torch": "2.9.0", "numpy": "2.4.0", **versions})}


def test_a_step_is_found_with_its_size_and_the_version_that_brought_it():
    header = lambda number: packages(numpy="2.5.0" if number >= 10 else "2.4.0")  # noqa: E731
    found = trend(month(stepped(), header=header))
    (step,) = found.steps
    assert step.slower
    assert step.step.interval[0] < 1.2 < step.step.interval[1]
    assert step.brought.behind.entry.session.created == created(10)
    assert [str(one) for one in step.brought.differences] == ["numpy 2.4.0 → 2.5.0"]
    assert found.verdicts == ()


def test_python_dlprof_and_kernel_are_told_too():
    def header(number):
        late = number >= 10
        return {
            "environment": machine(
                python="3.12.0" if late else "3.11.7",
                dlprof="0.2.0" if late else "0.1.0",
                platform="Linux-6.2" if late else "Linux-6.1",
            )
        }

    (step,) = trend(month(stepped(), header=header)).steps
    told = {one.what: one.head for one in step.brought.differences}
    assert told == {"python": "3.12.0", "dlprof": "0.2.0", "platform": "Linux-6.2"}


def test_the_labels_of_both_sides_are_told():
    found = trend(month(stepped(), label=lambda number: "new" if number >= 10 else "old"))
    assert found.steps[0].brought.labels == ("old", "new")


def test_seeds_and_rounds_are_not_told():
    header = lambda number: {"seed": number, "rounds": 3 + number % 2}  # noqa: E731
    assert trend(month(stepped(), header=header)).steps[0].brought.differences == ()


def test_equal_sessions_have_no_step():
    found = trend(month([1000.0] * 30))
    assert (found.steps, found.verdicts, found.pending) == ((), (), None)


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


def test_environments_of_one_session_are_series_of_their_own():
    def one(number, late):
        versions = {"torch": "2.9.0"}, {"torch": "2.10.0" if late else "2.9.9"}
        places = [
            machine(name=n, packages=p) for n, p in zip(("old", "new"), versions, strict=True)
        ]
        results = [
            result(
                "a",
                1000.0 * (1.3 if late and name == "new" else 1.0),
                seed=10 * number + place,
            ).model_copy(update={"environment": name})
            for place, name in enumerate(("old", "new"))
        ]
        return entry(number, *results, environment=places[0], environments=places)

    old, new = trends([one(number, number >= 10) for number in range(20)])
    assert (old.series.environment, new.series.environment) == ("old", "new")
    assert old.steps == ()
    assert [str(d) for d in new.steps[0].brought.differences] == ["torch 2.9.9 → 2.10.0"]


def test_view_to_copy_is_a_step_whatever_the_time_says():
    change = lambda number: {"ownership": COPY if number >= 3 else VIEW}  # noqa: E731
    found = trend(month([1000.0] * 5, change))
    (step,) = found.verdicts
    assert (step.change.before, step.change.after, step.change.worse) == ("view", "copy", True)
    assert step.brought.behind.entry.session.created == created(3)
    assert found.steps == ()


def test_the_way_back_is_a_step_too():
    change = lambda number: {"ownership": COPY if number in (2, 3) else VIEW}  # noqa: E731
    found = trend(month([1000.0] * 6, change)).verdicts
    assert [step.change.direction for step in found] == ["worse", "better"]


def test_a_crash_is_a_step():
    def change(number):
        return {"status": "crashed", "reason": "SIGSEGV"} if number >= 3 else {}

    found = trend(month([1000.0] * 5, change))
    assert [str(step.change) for step in found.verdicts] == ["status: ok, now crashed"]
    assert len(found.series.timed) == 3
    assert found.series.points[-1].doubt == "crashed: SIGSEGV"


def test_a_session_that_did_not_look_is_no_step():
    ordering = {"verdict": "synchronous", "evidence": {}}
    waits = {"verdict": "host-sync", "evidence": {}}

    def change(number):
        return {"ordering": (ordering, None, ordering, None, waits)[number]}

    found = trend(month([1000.0] * 5, change)).verdicts
    assert [str(step.change) for step in found] == ["ordering: synchronous, now host-sync"]


def test_what_became_unknown_is_no_step():
    unknown = {"verdict": "unknown", "evidence": {"reason": "x"}}
    change = lambda number: {"ownership": unknown if number == 2 else VIEW}  # noqa: E731
    assert trend(month([1000.0] * 4, change)).verdicts == ()


def texts(found):
    return [str(step.change) for step in found]


@pytest.mark.parametrize("status", ["crashed", "timeout", "unsupported"])
def test_a_change_of_verdict_is_told_across_a_session_without_an_answer(status):
    def change(number):
        lost = {"status": status, "reason": "no"} if number == 3 else {}
        return {"ownership": COPY if number > 3 else VIEW, **lost}

    found = trend(month([1000.0] * 6, change)).verdicts
    assert texts(found) == [
        f"status: ok, now {status}", f"status: {status}, now ok", "ownership: view, now copy"
    ]  # fmt: skip
    before, behind = (getattr(found[2].brought, name).entry for name in ("before", "behind"))
    assert (before.session.created, behind.session.created) == (created(2), created(4))


def test_a_change_of_verdict_is_since_the_last_session_that_knew_it():
    words = ("synchronous", None, None, "host-sync")

    def change(number):
        word = words[number]
        return {"ordering": word and {"verdict": word, "evidence": {}}}

    header = lambda number: packages(numpy="2.5.0" if number else "2.4.0")  # noqa: E731
    (step,) = trend(month([1000.0] * 4, change, header)).verdicts
    assert step.brought.before.entry.session.created == created(0)
    assert [str(one) for one in step.brought.differences] == ["numpy 2.4.0 → 2.5.0"]


def test_a_crash_of_an_instrument_is_a_step_once_and_so_is_its_end():
    safe = {"verdict": "safe", "evidence": {}}
    crash = {"verdict": "unknown", "evidence": {"worker": "crashed", "reason": "SIGSEGV"}}
    known = (safe, crash, None, crash, safe, crash)
    found = trend(month([1000.0] * 6, lambda number: {"lifetime": known[number]})).verdicts
    assert texts(found) == [
        "lifetime: safe, now crashed",
        "lifetime: crashed, now safe",
        "lifetime: safe, now crashed",
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
    assert [texts(one.verdicts) for one in found] == [[], []]


def test_a_session_of_other_environments_lacks_nothing():
    request = {"pairs": [["torch", "numpy"]]}

    def named(number, *names):
        environments = [{**machine(), "name": name} for name in names]
        found = [result("a").model_copy(update={"environment": name}) for name in names]
        return entry(number, *found, environments=environments, request=request)

    both, one = named(0, "old", "new"), [named(number, "new") for number in (1, 2)]
    assert [each.series.missing for each in trends([both, *one])] == [0, 0]
    alone = entry(0, result("a"), request=request)
    assert [each.series.missing for each in trends([alone, *one])] == [0, 0]


def test_a_session_of_the_same_environment_without_a_case_lacks_it():
    request = {"pairs": [["torch", "numpy"]]}
    environments = [{**machine(), "name": name} for name in ("old", "new")]
    held = [result("a").model_copy(update={"environment": name}) for name in ("old", "new")]
    first = entry(0, *held, environments=environments, request=request)
    later = entry(1, held[1], environments=environments, request=request)
    missing = {each.series.environment: each.series.missing for each in trends([first, later])}
    assert missing == {"old": 1, "new": 0}


def test_a_session_that_holds_a_case_twice_does_not_lack_it():
    request = {"pairs": [["torch", "numpy"]]}
    twice = entry(1, result("a", seed=1), result("a", seed=2), request=request)
    assert trend([entry(0, result("a"), request=request), twice]).series.missing == 0


GPUS = [{"name": "Example 100", "sm_clock_max_mhz": 1980, "memory_clock_max_mhz": 3201}]
UNNAMED = {"cuda_devices": 1, "gpus": "nvidia-ml-py is not installed"}


def test_a_machine_whose_gpus_have_lost_their_names_is_the_same():
    named = machine(cuda_devices=1, gpus=GPUS)
    environments = [named, machine(**UNNAMED), named]
    entries = month([1000.0] * 3, header=lambda number: {"environment": environments[number]})
    assert len(trend(entries).series.points) == 3


def test_a_machine_without_names_that_could_be_either_of_two_is_one_of_its_own():
    first, second = (
        machine(cuda_devices=1, gpus=[{"name": name}]) for name in ("Example 100", "Example 200")
    )
    environments = [first, second, machine(**UNNAMED)]
    entries = month([1000.0] * 3, header=lambda number: {"environment": environments[number]})
    assert len(trends(entries)) == 3


@pytest.mark.parametrize("measure", ["ready", "device"])
def test_a_session_that_was_finished_later_counts_once_by_any_measure(measure):
    part = result("a", processes=3, device_time={"warm": {"median_ns": 70.0}})
    whole = result("a", processes=3, device_time={"warm": {"median_ns": 71.0}})
    entries = [entry(0, part, complete=False), entry(0, whole)]
    assert len(trend(entries, measure).series.points) == 1


@pytest.mark.parametrize("status", ["invalid", "skipped"])
def test_a_session_that_was_disturbed_is_left_out_of_the_trend(status):
    change = lambda number: {"status": status, "reason": "no"} if number == 2 else {}  # noqa: E731
    found = trend(month([1000.0, 1000.0, 9000.0, 1000.0], change))
    assert len(found.series.timed) == 3
    assert found.verdicts == ()


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
    assert [str(one) for one in step.brought.differences] == [told]


def test_a_session_that_was_resumed_counts_once_with_all_its_rounds():
    part, whole = result("a", processes=2), result("a", processes=8)
    found = trend([entry(0, part, complete=False), entry(0, whole)])
    assert [len(point.side) for point in found.series.points] == [8]


def test_the_newest_sessions_are_told_where_they_are_too_few():
    found = trend(month(stepped(20, 18, 1.3)))
    assert found.steps == ()
    assert found.pending.sessions == 2
    assert found.pending.ratio == pytest.approx(1.3, abs=0.02)


def test_a_case_that_later_sessions_do_not_have_is_missing():
    request = {"pairs": [["torch", "numpy"]]}
    with_b = [
        entry(n, result("a", seed=n), result("b", seed=50 + n), request=request) for n in range(3)
    ]
    without = [entry(n, result("a", seed=n), request=request) for n in (3, 4)]
    a, b = trends([*with_b, *without])
    assert (a.series.missing, b.series.missing) == (0, 2)


def test_a_case_that_later_sessions_were_not_asked_for_is_not_missing():
    first = entry(0, result("a"), request={"pairs": [["torch", "numpy"]]})
    other = result("b", case={"producer": "jax"})
    later = entry(1, other, request={"pairs": [["jax", "numpy"]]})
    assert [one.series.missing for one in trends([first, later])] == [0, 0]


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
    assert "; all 5 cases shift here" in time_step_text(found[0].steps[0])
    nearly = replace(found[0].steps[0], shared=(18, 20), times_ns=(2e7, 2e3))
    assert "; 18 of 20 cases shift here" in time_step_text(nearly)


@pytest.mark.parametrize(
    ("ratio", "text"), [(1234.5, "1,234"), (1.2, "1.20"), (0.1, "0.10"), (0.00012, "0.00012")]
)
def test_no_ratio_is_shown_as_nothing(ratio, text):
    assert number(ratio) == text


def test_a_step_of_one_case_is_not_shared():
    entries = [
        entry(
            n,
            *(
                result(name, 1300.0 if name == "a" and n >= 10 else 1000.0, seed=100 * n + place)
                for place, name in enumerate("abcde")
            ),
        )
        for n in range(20)
    ]
    found = {one.series.case.import_: one.steps for one in trends(entries)}
    assert [step.shared for step in found["a"]] == [None]
    assert not any(found[name] for name in "bcde")


@pytest.mark.parametrize("measure", ["ready", "host", "first_call", "device"])
def test_every_measure_has_a_trend(measure):
    def change(number):
        return {"first_call_ns": 5000.0, "device_time": {"warm": {"median_ns": 70.0}}}

    found = trend(month([1000.0] * 3, change), measure)
    wanted = {"first_call": 5000.0, "device": 70.0}.get(measure, 1000.0)
    assert found.series.points[0].time_ns == pytest.approx(wanted, rel=0.02)


def test_a_measure_that_was_not_taken_has_points_without_a_time():
    found = trend(month([1000.0] * 3), "device")
    assert (found.steps, [point.side for point in found.series.points]) == ((), [()] * 3)


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
