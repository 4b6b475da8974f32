"""Differences between two sessions besides their results."""

import pytest
from builders import make_header

from dlprof.compare.comparison import differences, load_notice, refusal
from dlprof.worker.inspect import fingerprint

GPU = {
    "name": "H200",
    "sm_clock_max_mhz": 1980,
    "memory_clock_max_mhz": 3201,
    "driver_version": "570",
}


def found(base, head):
    sides = (make_header(environment=base), make_header(environment=head))
    return [(str(one), one.kind) for one in differences(*sides)]


@pytest.mark.parametrize(
    ("head", "what", "kind"),
    [
        ([{**GPU, "name": "H100"}], "GPUs", "machine"),
        ([{**GPU, "sm_clock_max_mhz": 1200}], "GPUs", "machine"),
        ([], "GPUs", "machine"),
        ([{**GPU, "driver_version": "580"}], "driver", "version"),
    ],
    ids=["another", "other clocks", "missing", "driver"],
)
def test_another_gpu_or_other_clocks_are_another_machine(head, what, kind):
    ((text, found_kind),) = found({"gpus": [GPU]}, {"gpus": head})
    assert (text.split()[0], found_kind) == (what, kind)


def test_an_added_or_removed_framework_is_a_version():
    assert found({"packages": {"torch": "2"}}, {"packages": {"jax": "1"}}) == [
        ("torch 2 → missing", "version"),
        ("jax missing → 1", "version"),
    ]


def test_times_are_not_compared_under_a_variable_that_changes_them():
    changed = {"variables": {"PYTHONTRACEMALLOC": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}}
    assert found({"variables": {}}, changed) == [
        ("PYTHONTRACEMALLOC unset → 1", "condition"),
        ("TF_CPP_MIN_LOG_LEVEL unset → 2", "setting"),
    ]
    ids = {"machine_id": "a", "boot_id": "b"}
    sides = [make_header(environment={**ids, **extra}) for extra in ({}, changed)]
    assert "PYTHONTRACEMALLOC unset → 1" in refusal(*sides)


def header_of(machine, boot):
    return make_header(environment={"machine_id": machine, "boot_id": boot})


@pytest.mark.parametrize(
    ("base", "head", "reason"),
    [
        (("a", "1"), ("a", "1"), None),
        (("a", "1"), ("b", "1"), None),
        ((None, "1"), (None, "1"), None),
        (("a", "1"), ("a", "2"), None),
        (("a", "1"), ("b", "2"), "different machines: machine id a → b"),
        (("a", "1"), (None, "2"), "not known"),
        ((None, None), (None, None), "not known"),
        (("", ""), ("", ""), "not known"),
    ],
    ids=[
        *("one session", "two containers", "no machine id", "a restart", "two machines"),
        *("one does not say", "older sessions", "empty"),
    ],
)
def test_times_are_compared_on_one_machine_but_not_if_it_is_unknown(base, head, reason):
    found = refusal(header_of(*base), header_of(*head))
    assert (not found) if reason is None else (reason in found)


def test_a_machine_is_told_apart_without_its_number(tmp_path):
    numbers = [f"{n:032x}" for n in (1, 2, 0)]
    files = [tmp_path / str(place) for place in range(5)]
    for file, text in zip(files, [*numbers, "uninitialized\n"], strict=False):
        file.write_text(text, encoding="ascii")
    first, second, *unknown = map(fingerprint, files)  # the last one does not exist
    assert None not in (first, second)
    assert first != second
    assert first not in numbers[0]
    assert first == fingerprint(files[0])
    assert unknown == [None, None, None]


@pytest.mark.parametrize(
    ("foreign", "cores", "trusted"),
    [(None, 2, True), (1.0, 2, True), (1.1, 2, False), (0.2, 1, True), (0.3, 1, False), (9, None, True)],
)  # fmt: skip
def test_a_session_is_trusted_if_other_programs_left_it_a_core(foreign, cores, trusted):
    header = make_header(foreign_cores=foreign, environment={"cores": cores} if cores else {})
    assert (not load_notice("HEAD", header)) is trusted


@pytest.mark.parametrize(
    ("base", "head", "texts"),
    [
        ({"setup": "a = 1"}, {"setup": "a = 2"}, ["setup a = 1 → a = 2"]),
        ({}, {"setup": "a = 1"}, ["setup none → a = 1"]),
        ({}, {"setup": ""}, []),
        ({"sample_ns": 20_000_000}, {"sample_ns": 60_000_000}, ["samples of 20 ms → 60 ms"]),
    ],
)
def test_other_settings_are_mentioned(base, head, texts):
    sides = (make_header(request={"settings": settings}) for settings in (base, head))
    assert [str(one) for one in differences(*sides)] == texts
