"""Rules on right and wrong, lifetime, crashes, retries: DLP007 to DLP011, DLP015, DLP016."""

import pytest
from guilty import ANSWERED, REFUSED
from rule_builders import died, found, lost, path, rules, verdict, wrong

VALUES = {"different": 3, "of": 16}
NARROWED = wrong(dtype=["float64", "float32"], values=VALUES)
RIGHT = path("right(x)")
RULES = "DLP007", "DLP008"


def test_a_changed_dtype_is_an_error_that_names_the_loss():
    (finding,) = found("DLP007", path("f(x)", owner="copy", values=NARROWED), RIGHT)
    assert finding.severity == "error"
    assert "float64 to float32: 3 of 16 values changed" in finding.headline
    assert "right(x) keeps the dtype" in finding.advice


def test_numbers_in_a_list_have_no_dtype_that_changes():
    (finding,) = found("DLP007", path("f(x)", values=NARROWED, case={"layout": "nested"}), RIGHT)
    assert "makes float32 of numbers, not float64" in finding.headline


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"shape": [[4, 4], [16]]}, "shape 16 instead of 4x4"),
        ({"device": ["cuda:1", "cuda:0"]}, "cuda:0 for memory of cuda:1"),
        ({"values": VALUES}, "3 of 16 values changed"),
        ({"source": VALUES}, "changes its source: 3 of 16 values"),
        ({"earlier_result": VALUES}, "overwrites its earlier result: 3 of 16 values"),
        ({"freed": VALUES}, "frees the memory of its result: 3 of 16"),
        ({"after_write": VALUES}, "gives old values of a source that was written"),
    ],
)
def test_a_wrong_result_is_an_error_that_names_the_change(changed, words):
    (finding,) = found("DLP008", path("f(x)", values=wrong(**changed)), RIGHT)
    assert finding.severity == "error"
    assert words in finding.summary
    assert finding.advice.startswith("right(x)")


@pytest.mark.parametrize(
    ("changed", "severity"),
    [
        ({"dtype": ["float64", "float32"]}, "info"),
        ({"dtype": ["float64", "float32"], "values": VALUES}, "error"),
        ({"shape": [[4, 5], [5, 4]]}, "info"),
        ({"dtype": ["int8", "int16"], "shape": [[4], [2]]}, "info"),
        ({"values": VALUES}, "error"),
        ({"dtype": ["float64", "float32"], "source": VALUES}, "error"),
    ],
)
def test_a_statement_may_make_another_dtype_or_shape_and_no_other_values(changed, severity):
    case = path("x.T", owner="copy", case={"import": "statement"}, values=wrong(**changed))
    assert {finding.severity for rule in RULES for finding in found(rule, case)} == {severity}


def test_a_view_of_another_dtype_reads_the_bytes_wrongly_even_in_a_statement():
    values = wrong(dtype=["bfloat16", "float16"])
    (finding,) = found("DLP007", path("f(x)", case={"import": "statement"}, values=values))
    assert finding.severity == "error"
    assert "reads the bytes of bfloat16 as float16" in finding.headline


LOST_FLAG = {"source": False, "result": True}
KEPT_FLAG = verdict("ok", writable={"source": False, "result": False})


def writable(flags, code="f(x)", owner="view"):
    return path(code, owner=owner, values=verdict("ok", writable=flags))


def test_a_writable_view_of_a_read_only_array_is_an_error_if_another_view_keeps_the_flag():
    (finding,) = found("DLP009", writable(LOST_FLAG), path("g(x)", values=KEPT_FLAG))
    assert finding.severity == "error"
    assert "g(x) keeps the flag" in finding.advice


def test_writable_views_without_a_choice_are_one_warning():
    copy = path("h(x)", owner="copy", values=KEPT_FLAG)
    (finding,) = found("DLP009", writable(LOST_FLAG), writable(LOST_FLAG, "g(x)"), copy)
    assert (finding.severity, finding.results) == ("warning", [0, 1])


@pytest.mark.parametrize(
    ("flags", "owner"),
    [
        ({"source": None, "result": True}, "view"),
        ({"source": False, "result": None}, "view"),
        (LOST_FLAG, "copy"),
    ],
)
def test_no_lost_read_only_flag(flags, owner):
    assert found("DLP009", writable(flags, owner=owner)) == []


@pytest.mark.parametrize(
    ("immutable", "owner", "expected"),
    [
        (False, "view", ["DLP022"]),
        (True, "view", ["DLP029"]),
        (None, "view", []),
        (False, "copy", ["DLP022"]),
        (False, "unknown", []),
        (True, "copy", []),
    ],
)
def test_a_view_is_immutable_only_if_its_framework_declares_it(immutable, owner, expected):
    flags = {"source": True, "result": False, "immutable": immutable}
    assert rules(writable(flags, owner=owner)) == expected


def kept(**per_conversion):
    per_source = per_conversion.pop("per_source", None)
    size_bytes = per_conversion.pop("size_bytes", None)
    counts = {f"{name}_per_conversion": count for name, count in per_conversion.items()}
    evidence = {"conversions": 200, "per_source": per_source, "size_bytes": size_bytes, **counts}
    return path("f(x)", lifetime=verdict("retained", **evidence))


@pytest.mark.parametrize(
    ("counts", "severity", "words"),
    [
        ({"bytes": 65536.0}, "error", "behind: 64 KiB per conversion."),
        ({"objects": 2.0, "references": 1.0}, "error", "1 reference to x, 2 blocks"),
        ({"objects": 2.0}, "warning", "2 blocks of Python's memory"),
        (
            {"bytes": 16456.0, "size_bytes": 16384},
            "error",
            "16.07 KiB per conversion of an array of 16 KiB",
        ),
        ({"bytes": 21657.0, "objects": 0.36}, "error", "behind: 21.15 KiB per conversion"),
        ({"references": 0.07}, "error", ": 0.07 references to x per conversion."),
        ({"descriptors": 1.0, "bytes": 9.0}, "error", "behind: 1 file descriptor per conversion"),
        ({"bytes": 16384.0, "per_source": True}, "error", "behind: 16 KiB per new source."),
    ],
)
def test_a_leaked_source_or_memory_is_an_error_and_a_few_objects_a_warning(counts, severity, words):
    (finding,) = found("DLP010", kept(**counts))
    assert finding.severity == severity
    assert words in finding.headline


@pytest.mark.parametrize(
    ("orders", "words"),
    [(["C", "F"], "column-major order of row-major"), (["F", "C"], "row-major order of column")],
)
def test_a_copy_in_another_order_is_named_beside_a_view_that_keeps_it(orders, words):
    copy = path("f(x)", owner="copy", values=verdict("ok", orders=orders))
    view = path("g(x)", values=verdict("ok", orders=[orders[0], orders[0]]))
    (finding,) = found("DLP028", copy, view)
    assert words in finding.headline


@pytest.mark.parametrize(("owner", "count"), [("view", 1), ("copy", 0)])
def test_strides_that_differ_without_another_value_are_named_of_a_view(owner, count):
    values = verdict("ok", strides=[[7, 1], [1, 1]])
    findings = found("DLP028", path("f(x)", owner=owner, values=values))
    assert [one.severity for one in findings] == ["info"] * count
    assert all("(7, 1) becomes (1, 1)" in one.headline for one in findings)


@pytest.mark.parametrize(("owner", "count"), [("view", 1), ("copy", 0)])
def test_strides_of_an_empty_result_count_if_other_results_are_views(owner, count):
    own = {"import": "statement", "survey": True}
    values = verdict("ok", strides=[[3, 1], [0, 0]])
    empty = path("f(x)", owner="copy", values=values, case={**own, "shape": [0, 3]})
    other = path("f(x)", owner=owner, case={**own, "shape": [3, 3]})
    assert len(found("DLP028", empty, other)) == count


GONE = verdict("dangling", changed_after_drop=True)


def test_a_result_that_changed_with_its_source_dangles():
    (finding,) = found("DLP011", path("f(x)", lifetime=GONE))
    assert finding.severity == "error"
    assert finding.advice.startswith("Keep the source")


@pytest.mark.parametrize(
    ("lifetime", "rule"),
    [
        (died("dangling", "killed by SIGSEGV (x) during lifetime after drop"), "DLP011"),
        (died("dangling", "killed by SIGSEGV (x) during lifetime"), "DLP011"),
        (died("dangling", "killed by SIGKILL (Killed) during lifetime"), "DLP016"),
        (died("unknown", "killed by SIGABRT during lifetime repetition"), "DLP016"),
        (
            died("dangling", "killed by SIGABRT during lifetime", changed_after_drop=True),
            "DLP011",
        ),
    ],
)
def test_a_death_while_reading_is_dangling_and_any_other_a_crash(lifetime, rule):
    assert rules(path("f(x)", lifetime=lifetime)) == [rule]


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        ("crashed", "killed by SIGABRT (Aborted) during first call", "during first"),
        ("timeout", "no answer within 60 s during values", "no answer within 60 s during values"),
        ("crashed", "raised SystemExit: 3", "raised SystemExit: 3"),
    ],
)
def test_a_crash_is_reported_with_its_cause(status, reason, words):
    (finding,) = found("DLP016", lost(status, reason))
    assert "before" not in finding.headline
    assert finding.severity == "error"
    assert words in finding.headline


@pytest.mark.parametrize("name", ["ordering", "early_write", "peak_memory"])
@pytest.mark.parametrize(
    ("how", "severities"), [("killed by SIGSEGV (x)", ["error"]), ("no answer within 60 s", [])]
)
def test_a_process_lost_in_the_diagnosis_is_found_and_a_slow_instrument_is_no_hang(
    name, how, severities
):
    parts = {name: died("unknown", f"{how} during {name}")}
    assert [one.severity for one in found("DLP016", path("f(x)", **parts))] == severities


WORKED = {"call": "import", "outcome": "returned"}


def test_a_refused_call_that_is_followed_by_another_is_a_retry():
    (finding,) = found("DLP015", path("f(x)", handshake=[REFUSED, ANSWERED, WORKED]))
    assert finding.severity == "info"
    assert "The answer was TypeError: no max_version." in finding.summary


@pytest.mark.parametrize(
    ("handshake", "protocol"),
    [
        ([REFUSED, WORKED], "dlpack"),
        ([REFUSED, ANSWERED, {"call": "import", "outcome": "ValueError: no"}], "dlpack"),
        ([REFUSED, ANSWERED, WORKED], "array-interface"),
    ],
    ids=["given up", "failed", "buffer protocol"],
)
def test_no_retry(handshake, protocol):
    assert rules(path("f(x)", handshake=handshake, case={"protocol": protocol})) == []
