"""The survey: the arrays it makes, its judgment, and its report."""

import numpy
import pytest
from builders import make_result, make_session
from rule_builders import verdict

from dlprof.compare.comparison import compare
from dlprof.compare.verdicts import Criteria
from dlprof.errors import Unmeasured
from dlprof.judge import find
from dlprof.probes.base import DTYPES, corners
from dlprof.probes.numpy import NumPy
from dlprof.report import survey
from dlprof.report.checks import SURVEY, check_measured, checks
from dlprof.runner.survey import arrays


def surveyed(dtype="float32", layout="aligned", shape=(6, 10), code="f(x)", changed=None, **fields):
    """A result of a survey; ``changed`` names the properties that did not survive."""
    case = {"dtype": dtype, "layout": layout, "shape": shape, "survey": True}
    case |= {"export": code, "import": code, **fields.pop("case", {})}
    values = {"verdict": "wrong" if changed else "ok", "evidence": {"changed": changed or {}}}
    looks = {"lifetime": None, "early_write": None, "values": values}
    return make_result(code, None, case=case, **looks | fields)


def words(bits, word, kind):
    return numpy.array(bits, dtype=f"uint{word}").view(kind)


class TestCorners:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_there_is_an_odd_number_of_values_that_fit_the_dtype(self, dtype):
        found = corners(dtype)
        assert len(found.bits) % 2
        assert len(set(found.bits)) >= 2
        assert all(0 <= bits < 1 << found.word for bits in found.bits)
        assert found.word * found.words == 8 * DTYPES[dtype]

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_floats_have_zeros_infinities_a_nan_and_denormals(self, dtype):
        found = words(corners(dtype).bits, 8 * DTYPES[dtype], dtype)
        tiny = numpy.finfo(dtype).tiny
        assert {numpy.signbit(value).item() for value in found if value == 0} == {True, False}
        assert {value for value in found if numpy.isinf(value)} == {numpy.inf, -numpy.inf}
        assert numpy.isnan(found).sum() == 1
        assert sum(0 < abs(value) < tiny for value in found) >= 2
        assert numpy.finfo(dtype).max in found


class TestArrays:
    def test_every_dtype_and_layout_is_tried_once(self):
        found = list(arrays((), "cpu"))
        assert len(set(found)) == len(found)
        assert {spec.dtype for spec in found} == set(DTYPES)
        assert {spec.layout for spec in found} >= {"aligned", "sliced", "F", "reversed"}

    def test_a_flag_is_tried_for_a_producer_that_knows_it(self):
        found = [spec.layout for spec in arrays(("masked",), "cpu")]
        assert found.count("masked") == 1
        assert "masked" not in [spec.layout for spec in arrays((), "cpu")]

    def test_one_of_the_arrays_of_numpy_is_a_scalar_object(self):
        (spec,) = (spec for spec in arrays(NumPy.flags, "cpu") if spec.layout == "number")
        names = {"numpy": numpy}
        exec(NumPy().create(spec), names)
        assert type(names["x"]) is numpy.float32

    def test_the_address_of_every_plain_array_is_chosen_on_the_host(self):
        assert "C" not in {spec.layout for spec in arrays((), "cpu")}
        assert "C" in {spec.layout for spec in arrays((), "cuda")}


class TestRules:
    def test_dtypes_with_the_same_result_are_one_finding(self):
        results = [
            surveyed(dtype, changed={"dtype": [dtype, "float32"]})
            for dtype in ("bool", "int8", "int16", "int32")
        ]
        (found,) = find(results)
        assert found.results == [0, 1, 2, 3]

    def test_paths_that_differ_in_their_dtypes_have_no_dtypes_in_common(self):
        values = {"values": {"different": 1, "of": 1}}
        results = [
            surveyed(dtype, code=code, case={"import": "both"}, changed=changed)
            for code, dtype, changed in (
                ("f(x)", "float32", None),
                ("f(x)", "complex64", values),
                ("f(x)", "complex128", values),
                ("g(x)", "complex64", values),
                ("g(x)", "complex128", None),
            )
        ]
        (found,) = find(results)
        assert "(complex64, complex128)" in found.headline

    @pytest.mark.parametrize(
        ("documented", "rules"), [("int32", []), ("int16", ["DLP007"]), (None, ["DLP007"])]
    )
    def test_a_narrowing_is_a_finding_unless_it_is_documented(self, documented, rules):
        narrowed = surveyed("int64", changed={"dtype": ["int64", "int32"]})
        case = narrowed.case.model_copy(update={"narrows_to": documented})
        assert [one.rule for one in find([narrowed.model_copy(update={"case": case})])] == rules


def named(results, **changes):
    """Return the rows of the section on arrays: result, arrays and problem."""
    session = make_session(*results, findings=[one.model_dump() for one in find(results)])
    (section,) = survey.sections(session)
    return [[cell.text for cell in row[1:]] for row in section.blocks[0].rows]


class TestReport:
    def test_the_first_screen_counts_the_results_of_paths_that_do_the_same(self):
        refused = {"status": "unsupported", "reason": "TypeError: no", "values": None}
        results = [surveyed(dtype, code=code) for code in "ab" for dtype in ("int8", "float32")]
        results += [surveyed("bool", code=code, **refused) for code in "ab"]
        (table,) = survey.tables(make_session(*results))
        assert [column.title for column in table.columns] == ["view", "refused", "path", "problem"]
        ((views, refusals, path, _),) = table.rows
        assert (views.text, refusals.text, path.text, path.note) == (
            "2",
            "1",
            "a",
            "and 1 equivalent",
        )

    def test_one_line_summarizes_the_coverage(self):
        unmade = surveyed("bfloat16", status="unsupported", refused_at="create")
        refused = surveyed("bool", status="unsupported")
        told = survey.summary(make_session(surveyed(), unmade, refused))
        assert told == "3 small arrays: looked at 1 of 3 (1 not made, 1 refused)."

    def test_arrays_are_named_by_their_difference_and_large_groups_by_the_exceptions(self):
        views = [surveyed(dtype) for dtype in ("float32", "int8", "int16", "int32")]
        others = [surveyed(layout="F"), surveyed(shape=(0,))]
        rows = named([*views, surveyed("bool", ownership=verdict("copy")), *others])
        assert {row[0]: row[1] for row in rows} == {
            "view": "all dtypes but bool; F; 0",
            "copy": "bool",
        }

    def test_a_result_has_one_row_which_names_the_arrays_that_break_a_rule(self):
        flags = {"source": True, "result": False, "immutable": True}
        fixed = verdict("ok", changed={}, writable=flags)
        rows = named([surveyed(), surveyed("int8"), surveyed("bool", values=fixed)])
        assert [(row[0], row[2]) for row in rows] == [("view", "DLP029 (bool)")]

    def test_a_result_that_breaks_a_rule_has_a_row_of_its_own(self):
        bad = surveyed("bool", changed={"dtype": ["bool", "int8"]})
        rows = named([surveyed(), surveyed("int8"), bad])
        assert [(row[0], row[2]) for row in rows] == [("view", ""), ("wrong", "DLP007")]

    @pytest.mark.parametrize(
        ("plain", "word"),
        [
            ({"ownership": verdict("copy")}, "copy"),
            ({"changed": {"values": {"different": 1, "of": 1}}}, "?"),
        ],
    )
    def test_a_correct_empty_array_is_like_the_plain_one_if_that_is_known(self, plain, word):
        empty = surveyed(shape=(0,), ownership=verdict("unknown", reason="no elements"))
        rows = named([surveyed(**plain), empty])
        assert [row[0] for row in rows if "0" in row[1].split("; ")] == [word]


class TestComparison:
    def test_a_survey_on_one_side_alone_changes_nothing(self):
        timed = make_result("g(x)")
        base = make_session(timed)
        head = make_session(timed, surveyed(), created="2026-02-02T00:00:00+00:00")
        found = compare(base, head, Criteria(), in_turns=True)
        assert [case.case.survey for case in found.cases] == [False]


def test_an_omitted_survey_is_no_pass():
    skipped = {"status": "skipped", "reason": "the run was stopped before it"}
    session = make_session(make_result(), surveyed(**skipped), surveyed("int8", **skipped))
    (check,) = (one for one in checks(session) if one.name == SURVEY)
    assert check.outcome == "error"


def test_a_surveyed_array_is_no_measurement_of_a_runs_own_array():
    refused = make_result("g(x)", None, status="unsupported", reason="TypeError: no bfloat16")
    with pytest.raises(Unmeasured, match="no bfloat16"):
        check_measured([refused, surveyed()])
    check_measured([surveyed()])


def test_a_crash_in_both_surveys_blocks_no_comparison():
    crash = surveyed(status="crashed", reason="killed by SIGABRT")
    base = make_session(surveyed("int8"), crash)
    head = make_session(surveyed("int8"), crash, created="2026-02-02T00:00:00+00:00")
    words = {
        case.case.dtype: case.word for case in compare(base, head, Criteria(), in_turns=True).cases
    }
    assert words == {"int8": "SAME", "float32": "UNMEASURED"}

    def test_one_name_stands_for_all_float8_dtypes_with_one_result(self):
        kinds = ("float8_e4m3fn", "float8_e5m2")
        refused = [surveyed(dtype, status="unsupported") for dtype in kinds]
        rows = named([surveyed(), surveyed("int8"), surveyed("int16"), *refused])
        assert {row[0]: row[1] for row in rows} == {
            "view": "all dtypes but float8",
            "refused": "float8",
        }

    def test_refusals_that_differ_in_the_dtype_alone_are_one_line(self):
        refused = [
            surveyed(dtype, status="unsupported", reason=f"TypeError: no {dtype.capitalize()}")
            for dtype in ("bfloat16", "float8_e5m2")
        ]
        (section,) = survey.sections(make_session(surveyed(), *refused))
        assert section.blocks[1].lines == ("f(x): TypeError: no Bfloat16",)
