"""The survey: which arrays it makes, how it is judged, and how it is told."""

import numpy
import pytest
from builders import make_result, make_session
from rule_builders import verdict

from dlprof.compare.comparison import compare
from dlprof.compare.times import Settings
from dlprof.errors import Unmeasured
from dlprof.judge import find
from dlprof.probes.base import DTYPES, FLOATS, corners
from dlprof.report import survey
from dlprof.report.checks import SURVEY, check_measured, checks
from dlprof.report.document import Tiles
from dlprof.report.session_document import session_document
from dlprof.runner.plan import not_run
from dlprof.runner.request import Settings as RunSettings
from dlprof.runner.survey import arrays


def surveyed(dtype="float32", layout="aligned", shape=(6, 10), code="f(x)", changed=None, **fields):
    """A result of a survey; ``changed`` is what did not survive."""
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

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_the_first_one_is_not_zero_so_that_a_scalar_shows_a_lost_value(self, dtype):
        assert corners(dtype).bits[0]

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_floats_have_zeros_infinities_a_nan_and_denormals(self, dtype):
        found = words(corners(dtype).bits, 8 * DTYPES[dtype], dtype)
        tiny = numpy.finfo(dtype).tiny
        assert {numpy.signbit(value).item() for value in found if value == 0} == {True, False}
        assert {value for value in found if numpy.isinf(value)} == {numpy.inf, -numpy.inf}
        assert numpy.isnan(found).sum() == 1
        assert sum(0 < abs(value) < tiny for value in found) >= 2
        assert numpy.finfo(dtype).max in found

    @pytest.mark.parametrize("dtype", ["int64", "uint64", "int8", "uint8"])
    def test_integers_have_their_extremes(self, dtype):
        found = words(corners(dtype).bits, 8 * DTYPES[dtype], dtype)
        info = numpy.iinfo(dtype)
        assert {info.min, info.max} <= set(found.tolist())

    def test_integers_of_64_bits_have_one_that_no_float_holds(self):
        found = words(corners("int64").bits, 64, "int64").tolist()
        assert any(int(float(value)) != value for value in found if abs(value) < 2**60)

    @pytest.mark.parametrize("dtype", sorted(FLOATS))
    def test_a_nan_has_a_payload(self, dtype):
        exponent, mantissa = FLOATS[dtype]
        quiet, mask = 1 << (mantissa - 1), (1 << mantissa) - 1
        full = ((1 << exponent) - 1) << mantissa
        nans = [bits for bits in corners(dtype).bits if bits & full == full and bits & mask]
        assert any(bits & mask not in (quiet, 0) for bits in nans)


class TestArrays:
    def test_every_dtype_and_layout_is_tried_once(self):
        found = list(arrays((), "cpu"))
        assert len(set(found)) == len(found)
        assert {spec.dtype for spec in found} == set(DTYPES)
        assert {spec.layout for spec in found} >= {"aligned", "sliced", "F", "reversed"}

    @pytest.mark.parametrize("layout", ["F", "reversed"])
    def test_items_of_8_bytes_are_tried_with_the_layout(self, layout):
        assert 8 in {DTYPES[one.dtype] for one in arrays((), "cpu") if one.layout == layout}

    def test_items_of_8_bytes_are_tried_without_axes_and_without_elements(self):
        found = [one for one in arrays((), "cpu") if DTYPES[one.dtype] == 8]
        assert any(one.shape == () for one in found)
        assert any(one.elements == 0 and len(one.shape) > 1 for one in found)

    def test_three_axes_are_tried_in_column_major_order(self):
        assert any(one.layout == "F" and len(one.shape) > 2 for one in arrays((), "cpu"))

    def test_a_flag_is_tried_for_a_producer_that_knows_it(self):
        found = [spec.layout for spec in arrays(("masked",), "cpu")]
        assert found.count("masked") == 1
        assert "masked" not in [spec.layout for spec in arrays((), "cpu")]

    def test_the_address_of_every_plain_array_is_chosen_on_the_host(self):
        assert "C" not in {spec.layout for spec in arrays((), "cpu")}
        assert "C" in {spec.layout for spec in arrays((), "cuda")}


class TestRules:
    def test_dtypes_that_become_the_same_are_one_finding(self):
        results = [
            surveyed(dtype, changed={"dtype": [dtype, "float32"]})
            for dtype in ("bool", "int8", "int16", "int32")
        ]
        (found,) = find(results)
        assert found.results == [0, 1, 2, 3]

    def test_a_finding_names_only_the_arrays_of_which_it_is(self):
        values = {"values": {"different": 1, "of": 1}}
        arrays = {"layout": "F", "shape": (2, 3, 4)}, {"shape": ()}, {"shape": (0, 3)}
        (found,) = find([surveyed(**one, changed=values) for one in arrays] + [surveyed()])
        assert "(shape 2x3x4 F, scalar, shape 0x3)" in found.headline

    def test_the_plain_dtype_of_a_shape_stands_for_the_others(self):
        values = {"values": {"different": 1, "of": 1}}
        both = [surveyed(dtype, shape=(), changed=values) for dtype in ("float32", "int64")]
        (found,) = find(both)
        assert "(scalar)" in found.headline

    @pytest.mark.parametrize(
        ("layout", "dtypes", "named"),
        [
            ("strided", ["int8"], "(layout strided int8)"),
            ("strided", ["float32", "int8"], "(layout strided)"),
            ("strided", ["int8", "complex64"], "(layout strided int8, layout strided complex64)"),
            ("sliced", ["int8"], "(layout sliced int8)"),
        ],
    )
    def test_a_finding_names_the_dtype_of_a_layout_unless_the_plain_one_is_in_it(
        self, layout, dtypes, named
    ):
        values = {"values": {"different": 1, "of": 1}}
        (found,) = find([surveyed(dtype, layout, changed=values) for dtype in dtypes])
        assert named in found.headline

    @pytest.mark.parametrize(
        ("wrong", "named"),
        [
            (("int64", "uint64", "float64", "complex64"), "(all 8-byte dtypes)"),
            (("int64", "uint64", "float64"), "(int64, uint64, float64)"),
            (("complex64", "complex128"), "(all complex dtypes)"),
            (("int16", "uint16", "float16"), "(all 2-byte dtypes)"),
        ],
    )
    def test_a_finding_names_what_its_dtypes_have_in_common(self, wrong, named):
        values = {"values": {"different": 1, "of": 1}}
        unmade = {"status": "unsupported", "refused_at": "create"}
        results = [
            surveyed(dtype, changed=values if dtype in wrong else None)
            for dtype in DTYPES
            if dtype != "bfloat16"
        ]
        (found,) = find([*results, surveyed("bfloat16", **unmade)])
        assert named in found.headline

    def test_dtypes_of_one_kind_tell_of_their_layouts_and_shapes(self):
        values = {"values": {"different": 1, "of": 1}}
        both = [surveyed(dtype, changed=values) for dtype in ("complex64", "complex128")]
        others = surveyed("complex64", "F", changed=values), surveyed(layout="F", changed=values)
        (found,) = find([surveyed(), *both, *others])
        assert "(all complex dtypes, F)" in found.headline

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

    def test_a_surveyed_array_speaks_for_itself_alone(self):
        wrong = surveyed(shape=(0,), changed={"shape": [[0], [1]]})
        timed = make_result("f(x)", case={"layout": "aligned", "export": "f(x)", "import": "f(x)"})
        assert [one.results for one in find([timed, wrong])] == [[1]]


class TestTable:
    def test_paths_that_do_the_same_share_their_rows(self):
        results = [surveyed(dtype, code=code) for code in "ab" for dtype in ("int8", "float32")]
        (table,) = survey.tables(make_session(*results))
        ((path, result, _, _),) = table.rows
        assert (result.text, path.text) == ("view", "a")
        assert "alike" in path.note

    def test_what_the_producer_cannot_make_is_told_once(self):
        refused = {"status": "unsupported", "refused_at": "create"}
        results = [
            one
            for code in "ab"
            for one in (surveyed(code=code), surveyed("bfloat16", code=code, **refused))
        ]
        session = make_session(*results)
        (table,) = survey.tables(session)
        assert [row[1].text for row in table.rows] == ["view"]
        assert " ".join(survey.marks(session, survey.tables(session))).count("bfloat16") == 1

    def test_the_first_screen_names_the_unusual_arrays_of_each_path_that_it_shows(self):
        session = make_session(
            *(
                surveyed(
                    dtype, code=f"f{at}(x)", ownership=verdict("copy" if one == dtype else "view")
                )
                for at, one in enumerate(DTYPES)
                for dtype in DTYPES
            )
        )
        (table,) = survey.tables(session)
        shown = [row[2].text for row in table.rows if row[1].text == "copy"]
        assert shown == [*DTYPES][: len(shown)]
        assert [row[1].text for row in table.rows] == ["view", "copy"] * len(shown)
        assert f"{len(DTYPES) - len(shown)} more paths" in table.more

    def test_where_a_framework_cannot_be_imported_the_paths_are_unknown_and_not_refused(self):
        session = make_session(surveyed(status="unsupported", refused_at="import"))
        (table,) = survey.tables(session)
        assert table.rows[0][1].text == "?"
        assert "left out" in survey.summary(session)

    def test_a_run_without_a_survey_says_nothing_of_it(self):
        session = make_session(make_result())
        assert not survey.surveyed(session)
        assert not survey.summary(session)
        assert not list(survey.section(session))


class TestPicture:
    def drawn(self, *results):
        session = make_session(*results, findings=[one.model_dump() for one in find(results)])
        (tiles,) = survey.pictures(session)
        return tiles

    def test_a_row_has_a_letter_for_each_dtype_and_each_other_array(self):
        refused = {"status": "unsupported"}
        wrong = surveyed("bool", changed={"dtype": ["bool", "int8"]})
        copied = surveyed(layout="F", ownership=verdict("copy"))
        tiles = self.drawn(surveyed(), wrong, surveyed("int8", **refused), copied)
        dtypes, others = tiles.bands
        ((_, by_dtype),) = dtypes.rows
        told = zip(dtypes.columns, by_dtype, strict=True)
        assert {name: tile.letter for name, tile in told} == {
            "float32": "V",
            "bool": "W",
            "int8": "R",
        }
        assert [tile.title for tile in by_dtype if tile.is_framed] == ["bool: wrong, DLP007"]
        ((_, (tile,)),) = others.rows
        assert (others.columns, tile.letter) == (("F",), "C")
        assert all(f"{letter} " in tiles.caption for letter in "VWRC")
        assert "N narrowed" not in tiles.caption

    def test_the_page_of_a_survey_alone_begins_with_it_and_a_run_has_it_with_the_table(self):
        alone = session_document(make_session(surveyed()), width=None)
        assert isinstance(alone.chart, Tiles)
        both = session_document(make_session(make_result("g(x)"), surveyed()), width=None)
        assert not isinstance(both.chart, Tiles)
        (section,) = (one for one in both.sections if one.heading == "Survey")
        assert isinstance(section.blocks[0], Tiles)
        assert not any(isinstance(one.blocks[0], Tiles) for one in alone.sections)


class TestComparison:
    def test_a_survey_on_one_side_alone_changes_nothing(self):
        timed = make_result("g(x)")
        base = make_session(timed)
        head = make_session(timed, surveyed(), created="2026-02-02T00:00:00+00:00")
        found = compare(base, head, Settings(in_turns=True))
        assert [case.case.survey for case in found.cases] == [False]


def test_arrays_are_named_by_what_sets_them_apart_and_many_of_them_by_the_others():
    views = [surveyed(dtype) for dtype in ("float32", "int8", "int16", "int32")]
    others = [surveyed(layout="F"), surveyed(shape=(0,))]
    (table,) = survey.tables(
        make_session(*views, surveyed("bool", ownership=verdict("copy")), *others), is_brief=False
    )
    assert {row[1].text: row[2].text for row in table.rows} == {
        "view": "all dtypes but bool; F; 0",
        "copy": "bool",
    }


@pytest.mark.parametrize(
    ("is_brief", "arrays"),
    [(True, "complex64"), (False, "complex64; strided complex64")],
    ids=["first screen", "whole"],
)
def test_an_array_of_which_its_dtype_tells_has_a_name_in_the_whole_table_alone(is_brief, arrays):
    refused = {"status": "unsupported", "reason": "TypeError: no", "values": None}
    kinds = [("complex64", "aligned"), ("complex64", "strided")]
    views = [surveyed(dtype) for dtype in ("float32", "int8", "int16", "bool")]
    views += [surveyed(layout="F")]
    session = make_session(*views, *(surveyed(*one, **refused) for one in kinds))
    (table,) = survey.tables(session, is_brief)
    assert [row[2].text for row in table.rows if row[1].text == "refused"] == [arrays]


def test_an_array_that_a_row_seems_to_name_and_does_not_is_named_in_its_own():
    refused = {"status": "unsupported", "reason": "TypeError: no", "values": None}
    views = [surveyed(dtype) for dtype in ("float32", "int8", "int16", "bool")]
    views += [surveyed(layout="strided"), surveyed("complex64", "strided")]
    session = make_session(*views, surveyed("complex64", **refused))
    (table,) = survey.tables(session)
    arrays = {row[1].text: row[2].text for row in table.rows}
    assert arrays["refused"] == "complex64"
    assert arrays["view"].endswith("all but those below; strided complex64")


@pytest.mark.parametrize(
    ("plain", "word"),
    [
        ({"ownership": verdict("copy")}, "copy"),
        ({"changed": {"values": {"different": 1, "of": 1}}}, "?"),
    ],
)
def test_an_empty_array_that_is_right_is_what_the_plain_one_is_if_that_is_known(plain, word):
    empty = surveyed(shape=(0,), ownership=verdict("unknown", reason="no elements"))
    (table,) = survey.tables(make_session(surveyed(**plain), empty), is_brief=False)
    assert [row[1].text for row in table.rows if "0" in row[2].text.split("; ")] == [word]


def test_a_result_that_breaks_a_rule_has_a_row_of_its_own():
    results = [surveyed(), surveyed("int8"), surveyed("bool", changed={"dtype": ["bool", "int8"]})]
    session = make_session(*results, findings=[one.model_dump() for one in find(results)])
    (table,) = survey.tables(session)
    assert [(row[1].text, row[3].text) for row in table.rows] == [
        ("view", ""),
        ("wrong", "DLP007"),
    ]


SKIPPED = {"status": "skipped", "reason": "the run was stopped before it"}


def test_the_rows_of_one_word_stand_together_and_differ_in_their_problem():
    busy = {"status": "invalid", "reason": "GPU 0 was also used by 2 other processes"}
    refused = {"status": "unsupported", "reason": "TypeError: no", "values": None}
    masked = {"layout": "masked", "values": {"verdict": "ok", "evidence": {"dropped": ["mask"]}}}
    results = [surveyed(**busy), surveyed("int8", **busy)]
    results += [surveyed("bool", **refused), surveyed(**busy, **masked)]
    session = make_session(*results, findings=[one.model_dump() for one in find(results)])
    (table,) = survey.tables(session)
    assert [(row[1].text, row[3].text) for row in table.rows] == [
        ("invalid", ""),
        ("invalid", "DLP021"),
        ("refused", ""),
    ]


def test_every_word_that_is_less_known_has_a_meaning():
    narrowed = {"dtype": ["int64", "int32"]}
    session = make_session(
        surveyed(),
        surveyed(layout="sliced", ownership=verdict("copy")),
        surveyed("int64", changed=narrowed, case={"narrows_to": "int32"}),
    )
    (table,) = survey.tables(session)
    shown = {row[1].text for row in table.rows}
    assert shown == {"view", "copy", "narrowed"}
    assert "narrowed: " in " ".join(survey.marks(session, survey.tables(session)))


def test_the_legend_has_the_words_that_are_shown_and_no_others():
    refused = {"status": "unsupported"}
    session = make_session(
        surveyed(), surveyed("int8"), surveyed(layout="F", **refused), surveyed(layout="strided")
    )
    legend = " ".join(survey.marks(session, survey.tables(session)))
    assert "F: " in legend
    assert "strided: " not in legend


def test_the_path_that_takes_most_arrays_is_named_and_none_that_crashes_for_another():
    lost = {"status": "crashed", "reason": "killed by SIGSEGV during first call"}
    session = make_session(
        *(surveyed(dtype, code="some(x)") for dtype in ("float32", "int8")),
        surveyed("bool", code="some(x)", status="unsupported"),
        *(surveyed(dtype, code="crashes(x)") for dtype in ("float32", "int8", "bool")),
        surveyed("int16", code="crashes(x)", **lost),
    )
    found = {answer.label: answer for answer in survey.answers(session)}
    assert [*found] == ["most arrays as a view"]
    assert found["most arrays as a view"].code == "some(x)"


@pytest.mark.parametrize(
    ("taken", "warned", "told"),
    [
        (9, 10, ("clean(x)", "9 of 10")),
        (9, 1, ("clean(x)", "9 of 10")),
        (8, 10, ("warned(x)", "10 of 10; see DLP006")),
        (8, 1, ("warned(x)", "10 of 10; see DLP006")),
    ],
)
def test_a_path_without_a_warning_is_named_if_it_takes_nearly_as_many_arrays(taken, warned, told):
    dtypes = [*DTYPES][:10]
    refused = {"status": "unsupported", "reason": "no"}
    results = [
        *(surveyed(dtype, code="warned(x)") for dtype in dtypes),
        *(surveyed(dtype, code="clean(x)") for dtype in dtypes[:taken]),
        *(surveyed(dtype, code="clean(x)", **refused) for dtype in dtypes[taken:]),
    ]
    warning = {"rule": "DLP006", "name": "bounce", "severity": "warning", "summary": "it goes"}
    session = make_session(*results, findings=[{**warning, "results": list(range(warned))}])
    (found,) = survey.answers(session)
    assert (found.code, found.note) == told


@pytest.mark.parametrize(
    ("off", "told"),
    [
        ({"ownership": verdict("view")}, "2 of 2"),
        ({"ownership": verdict("copy")}, "1 of 2; copies if x is 4 bytes off a 64-byte boundary"),
        ({"status": "unsupported"}, "1 of 2; refuses if x is 4 bytes off a 64-byte boundary"),
    ],
)
def test_a_path_that_is_a_view_of_aligned_arrays_only_is_named_with_that(off, told):
    session = make_session(surveyed(), surveyed(layout="sliced", **off))
    found = {answer.label: answer.note for answer in survey.answers(session)}
    assert found["most arrays as a view"] == told


def test_nothing_is_said_of_alignment_if_the_path_copies_aligned_arrays_too():
    copied = {"ownership": verdict("copy")}
    session = make_session(
        surveyed(**copied), surveyed(layout="sliced", **copied), surveyed("int8"), surveyed("int16")
    )
    found = {answer.label: answer.note for answer in survey.answers(session)}
    assert found["most arrays as a view"] == "2 of 4"


def test_a_producer_that_makes_no_aligned_arrays_is_not_said_to_lack_all_dtypes():
    lost = {"status": "unsupported", "reason": "no layout", "refused_at": "create", "values": None}
    results = [surveyed(dtype, **lost) for dtype in ("float32", "int8")]
    session = make_session(*results, surveyed(layout="F"))
    (mark, *_) = survey.marks(session, survey.tables(session))
    assert ("aligned" in mark, "float32" in mark) == (True, False)


def test_a_producer_that_makes_no_array_at_all_is_told_with_the_reason():
    lost = {"status": "unsupported", "reason": "no backend", "refused_at": "create", "values": None}
    results = [
        surveyed(layout=layout, code=code, **lost)
        for layout in ("C", "F")
        for code in ("f(x)", "g(x)")
    ]
    session = make_session(*results)
    assert "no backend" in survey.summary(session)
    assert [one.outcome for one in checks(session) if one.name == SURVEY] == ["error"]
    (mark,) = survey.marks(session, survey.tables(session))
    assert ("no backend" in mark, "column-major" in mark) == (True, False)
    texts = [one for section in survey.section(session) for one in section.blocks]
    assert "The same as" not in str(texts)


def test_the_header_counts_the_arrays_that_were_tried_and_made():
    lost = {"status": "unsupported", "reason": "no", "refused_at": "create", "values": None}
    results = [surveyed(), surveyed("int8"), surveyed("bool", **lost)]
    session = make_session(*results, surveyed("int16", **SKIPPED))
    assert survey.title(session)[1] == "4 small arrays, 2 made"


def test_the_whole_report_names_the_arrays_that_all_stands_for():
    lost = {"status": "unsupported", "reason": "no", "refused_at": "create", "values": None}
    session = make_session(surveyed(), surveyed("int8"), surveyed("bool", **lost))
    (section,) = survey.section(session)
    lines = [line for block in section.blocks for line in getattr(block, "lines", ())]
    assert [line.rpartition(": ")[2] for line in lines if "All" in line] == ["float32, int8"]


def test_a_survey_that_was_left_out_is_no_pass():
    session = make_session(make_result(), surveyed(**SKIPPED), surveyed("int8", **SKIPPED))
    assert "problem" not in survey.summary(session)
    (check,) = (one for one in checks(session) if one.name == SURVEY)
    assert check.outcome == "error"


def test_a_survey_whose_values_nothing_could_read_says_so():
    unread = {"values": verdict("unknown", reason="NumPy is not installed")}
    session = make_session(make_result(), surveyed(), surveyed("int8", **unread))
    assert "1 of 2 conversions gave values that could not be read." in survey.summary(session)


def test_a_survey_that_was_cut_short_says_how_much_is_missing():
    session = make_session(make_result(), surveyed(), surveyed("int8", **SKIPPED))
    assert "1 of 2" in survey.summary(session)


def test_what_is_surveyed_is_no_measurement_of_a_runs_own_array():
    refused = make_result("g(x)", None, status="unsupported", reason="TypeError: no bfloat16")
    with pytest.raises(Unmeasured, match="no bfloat16"):
        check_measured([refused, surveyed()])
    check_measured([surveyed()])


def test_a_budget_that_is_over_leaves_the_survey_out_in_words():
    settings = RunSettings(survey=True, budget_s=1.0)
    assert any("survey" in text for text in not_run(settings, settings.rounds, out_of_time=True))
    assert not any("survey" in text for text in not_run(settings, settings.rounds))


def test_a_crash_that_both_surveys_saw_keeps_no_comparison_from_an_answer():
    crash = surveyed(status="crashed", reason="killed by SIGABRT")
    base = make_session(surveyed("int8"), crash)
    head = make_session(surveyed("int8"), crash, created="2026-02-02T00:00:00+00:00")
    words = {
        case.case.dtype: case.word for case in compare(base, head, Settings(in_turns=True)).cases
    }
    assert words == {"int8": "SAME", "float32": "UNMEASURED"}


def test_an_empty_array_has_the_result_of_the_plain_one_and_not_its_problem():
    results = [surveyed(changed={"values": {"different": 1, "of": 60}}), surveyed(shape=(0, 3))]
    session = make_session(*results)
    session = session.model_copy(update={"findings": find(session.results)})
    (table,) = survey.tables(session)
    texts = [[cell.text for cell in row] for row in table.rows]
    assert [row[-1] for row in texts] == ["DLP008", ""]


def test_a_survey_tells_how_many_conversions_failed_only_after_others():
    company = {"status": "crashed", "reason": "killed", "rounds": [0]}
    session = make_session(surveyed(), surveyed("int8", in_company=company))
    told = "1 of 2 conversions failed or differed only after others."
    assert told in survey.summary(session)
    assert told in survey.marks(session, ())
    assert "after others" not in survey.summary(make_session(surveyed()))
