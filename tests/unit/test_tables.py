"""The tables: what stands in a session stands in them, typed, whatever the session holds."""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import make_header, make_measure, make_result, make_session
from hostile_text import texts
from hypothesis import given
from rule_builders import ordered, verdict
from step_builders import make_step

from dlprof.api import Session
from dlprof.reports import delimited, parquet
from dlprof.reports.frame import kinds, to_frame
from dlprof.reports.measures import MEASURES
from dlprof.reports.tidy import COLUMNS, LONGEST, records
from dlprof.text.clean import clean

pytestmark = pytest.mark.unit

DOCUMENT = Path(__file__).parents[2] / "docs" / "tables.md"
NUMBERS = {column.name for column in COLUMNS if column.kind == "number"}
INTEGERS = {column.name for column in COLUMNS if column.kind == "integer"}


def whole_result(**changes):
    """A result with every measure there is."""
    process = {"round": 0, "loops": 10, "samples_ns": [1000.0], "page_faults_per_call": 3.0}
    time = make_measure(1000.0, (900.0, 1100.0), processes=[process, {**process, "round": 1}])
    fields = {
        "host_time": time,
        "ready_time": make_measure(2000.0, (1900.0, 2100.0), processes=[process]),
        "first_call_ns": 12345.0,
        "phases": {"export_ns": 1.0, "import_ns": 2.0, "release_ns": 3.0},
        "device_time": {"warm": {"median_ns": 7.0}, "cold": {"median_ns": 8.0}},
        "copy_cost": {
            "size_bytes": 64,
            "gb_per_s": 5.0,
            "memcpy_gb_per_s": 10.0,
            "share_of_memcpy": 0.5,
        },
        "ownership": verdict("copy"),
        "ordering": ordered("host-sync"),
        "fresh_source": verdict("not kept", first_ns=5.0, second_ns=4.0),
        "lifetime": verdict("safe"),
        "alignment": verdict("independent"),
        "early_write": verdict("unknown", reason="the source cannot be written"),
        "peak_memory": verdict("ok", arrays=1.5),
        "trace": verdict("no trace", reason="no CUDA"),
        "step": make_step(),
        "placement": {
            "use": "torch.add(x, 1)",
            "in_loop": make_measure(300.0, (290.0, 310.0), processes=[process]),
            "hoisted": make_measure(100.0, (90.0, 110.0), processes=[process]),
            "implicit": make_measure(200.0, (190.0, 210.0), processes=[process]),
            "share": {"median": 0.67, "ci95": (0.6, 0.7)},
            "break_even_iterations": 2,
        },
    }
    return make_result(**(fields | changes))


def csv_rows(session):
    text = "".join(delimited.render(session, session.results))
    return list(csv.DictReader(io.StringIO(text)))


def parquet_table(session):
    file = io.BytesIO()
    parquet.write(file, session, session.results)
    return pq.read_table(io.BytesIO(file.getvalue()))


def as_record(row):
    """A row of the CSV with the types of the session."""

    def value(name, text):
        if text == "":
            return None
        if name in NUMBERS:
            return float(text)
        if name in INTEGERS:
            return int(text)
        return text == "true" if name == "complete" else text

    return {name: value(name, text) for name, text in row.items()}


def found(session, measure):
    (record,) = [
        record
        for record in records(session, session.results)
        if record["measure"] == measure and record["case"] == 0
    ]
    return record


def test_there_is_one_row_for_each_case_and_measure():
    session = make_session(make_result(), make_result(None, None, status="crashed"))
    rows = [(row["case"], row["measure"]) for row in records(session, session.results)]
    assert rows == [(case, measure.name) for case in (0, 1) for measure in MEASURES]


def test_every_row_has_every_column():
    session = make_session(whole_result())
    for record in records(session, session.results):
        assert set(record) == {column.name for column in COLUMNS}


def test_every_measure_of_a_whole_result_is_found():
    session = make_session(whole_result())
    missing = [
        row["measure"]
        for row in records(session, session.results)
        if row["value"] is None and row["verdict"] is None
    ]
    assert missing == []


def test_a_time_has_its_interval_and_its_processes():
    row = found(make_session(whole_result()), "host_time")
    assert (row["value"], row["ci95_low"], row["ci95_high"]) == (1000.0, 900.0, 1100.0)
    assert (row["unit"], row["processes"]) == ("ns", 2)


def test_a_ready_time_that_repeats_the_host_time_has_its_processes():
    ready = make_measure(same_as="host_time")
    assert found(make_session(whole_result(ready_time=ready)), "ready_time")["processes"] == 2


def test_a_measure_that_is_missing_says_why():
    result = make_result(None, None, status="unsupported", reason="TypeError: no")
    assert found(make_session(result), "host_time")["detail"] == "TypeError: no"


def test_a_measure_that_failed_says_its_own_reason():
    result = make_result(notes=["phases: cannot be told apart"])
    assert found(make_session(result), "export")["detail"] == "cannot be told apart"


def test_a_verdict_that_is_not_known_says_why():
    row = found(make_session(whole_result()), "early_write")
    assert (row["verdict"], row["detail"]) == ("unknown", "the source cannot be written")


@pytest.mark.parametrize(
    "arrays", [math.nan, math.inf, 10**400, "many", True, None, [1]], ids=lambda it: str(it)[:8]
)
def test_evidence_that_is_no_number_is_missing(arrays):
    result = make_result(peak_memory=verdict("ok", arrays=arrays))
    assert found(make_session(result), "peak_memory")["value"] is None


def test_a_rule_that_found_something_is_named_in_its_case():
    finding = {"rule": "DLP012", "name": "slow-path", "severity": "warning", "summary": "slow"}
    findings = [finding | {"results": [1]}, finding | {"rule": "DLP004", "results": [1, 7]}]
    session = make_session(make_result(), make_result(), findings=findings)
    assert to_frame(session)["findings"].tolist() == [pd.NA, "DLP012 DLP004"]


def test_csv_says_what_the_session_says():
    session = make_session(whole_result(), make_result(None, None, status="timeout"))
    assert [as_record(row) for row in csv_rows(session)] == list(records(session, session.results))


def test_parquet_says_what_the_session_says():
    session = make_session(whole_result(), make_result(None, None, status="timeout"))
    assert parquet_table(session).to_pylist() == list(records(session, session.results))


@pytest.mark.parametrize(
    "session",
    [make_session(), make_session(make_result(None, None, status="crashed"))],
    ids=["empty", "only a crash"],
)
def test_the_columns_of_parquet_do_not_depend_on_the_session(session):
    assert parquet_table(session).schema == parquet.schema()
    assert parquet_table(session).schema.metadata == {b"dlprof.table": b"dlprof.table/1"}


def test_an_empty_session_is_a_header_line_of_csv():
    session = make_session()
    assert "".join(delimited.render(session, [])) == ",".join(delimited.NAMES) + "\n"


@given(texts, texts, texts)
def test_no_text_breaks_the_tables(producer, code, reason):
    case = {"producer": producer, "code": code}
    session = make_session(make_result(case=case, status="invalid", reason=reason))
    for row in (csv_rows(session)[0], parquet_table(session).to_pylist()[0]):
        for name, text in (("producer", producer), ("code", code), ("reason", reason)):
            assert (row[name] or "").removeprefix("'") == clean(text, LONGEST).removeprefix("'")


@given(texts)
def test_no_cell_of_the_csv_is_a_formula(text):
    session = make_session(make_result(case={"producer": text}))
    for row in csv_rows(session):
        assert not row["producer"].startswith(("=", "+", "-", "@", "\t", "\r"))


@given(texts)
def test_no_text_breaks_the_frame(text):
    session = make_session(make_result(case={"code": text}))
    assert to_frame(session)["code"].tolist() == [clean(text, LONGEST)]


def test_a_size_that_no_integer_holds_is_missing():
    session = make_session(make_result(case={"shape": (2**40, 2**40)}))
    assert pd.isna(to_frame(session)["size_bytes"][0])
    assert found(session, "host_time")["size_bytes"] is None


def test_a_verdict_of_half_a_character_is_shown_in_a_frame():
    found = verdict("\ud800")
    assert to_frame(make_session(make_result(ownership=found)))["ownership"][0] == "\\ud800"


def test_the_frame_has_a_row_for_each_case_and_units_in_its_names():
    frame = to_frame(make_session(whole_result(), make_result()))
    assert frame.index.tolist() == [0, 1]
    assert frame["ready_time_median_ns"].tolist() == [2000.0, 1000.0]
    assert frame["bandwidth_gb_per_s"][0] == 5.0
    assert frame["ownership"].tolist() == ["copy", "view"]
    assert frame["size_bytes"].tolist() == [64, 64]


@pytest.mark.parametrize(
    ("owner", "reason"),
    [
        ("view", "a view copies nothing"),
        ("varies", "it is not a copy in every process"),
        ("unknown", "it is not known whether it is a copy"),
    ],
)
def test_what_is_no_copy_in_every_process_has_no_speed_of_copying(owner, reason):
    result = whole_result(ownership=verdict(owner))
    frame = to_frame(make_session(result))
    assert frame[["bandwidth_gb_per_s", "share_of_memcpy"]].isna().all(axis=None)
    assert frame["memcpy_bandwidth_gb_per_s"][0] == 10.0
    for name in ("bandwidth", "share_of_memcpy"):
        found = next(one for one in MEASURES if one.name == name).of(result)
        assert (found.value, found.reason) == (None, reason)


def test_the_types_of_the_frame_do_not_depend_on_the_session():
    sessions = (
        make_session(),
        make_session(whole_result()),
        make_session(make_result(None, None, status="crashed", ownership=None, values=None)),
    )
    for session in sessions:
        frame = to_frame(session)
        assert {name: str(kind) for name, kind in frame.dtypes.items()} == kinds()


def test_what_is_not_known_is_missing_in_the_frame():
    frame = to_frame(make_session(make_result(None, None, status="crashed")))
    assert math.isnan(frame["ready_time_median_ns"][0])
    assert frame["ordering"][0] is pd.NA


def test_a_session_gives_its_frame():
    session = Session(**dict(make_session(make_result())))
    pd.testing.assert_frame_equal(session.to_frame(), to_frame(session))


def test_every_column_and_measure_is_documented():
    text = DOCUMENT.read_text(encoding="utf-8")
    for name in (*(column.name for column in COLUMNS), *(measure.name for measure in MEASURES)):
        assert f"| `{name}` |" in text, name


def test_every_column_of_the_frame_is_documented():
    text = DOCUMENT.read_text(encoding="utf-8").partition("## DataFrame")[2]
    for name in kinds():
        assert re.search(rf"`{name}`", text), name


def test_rows_come_one_result_at_a_time():
    taken = []

    def results():
        for index in range(3):
            taken.append(index)
            yield make_result()

    next(iter(records(make_header(), results())))
    assert taken == [0]


def test_parquet_keeps_its_types_over_row_groups(monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 7)
    session = make_session(whole_result(), make_result())
    table = parquet_table(session)
    assert isinstance(table, pa.Table)
    assert table.to_pylist() == list(records(session, session.results))


def test_a_verdict_that_is_a_lone_surrogate_is_shown_in_a_frame():
    odd = make_result(ownership=verdict("\ud800"), peak_memory=verdict("\ud801", arrays=1.0))
    frame = to_frame(make_session(odd))
    assert frame["ownership"].tolist() == ["\\ud800"]
    assert frame["peak_memory"].tolist() == ["\\ud801"]


def test_each_row_of_several_environments_names_its_own():
    entries = [
        {"name": name, "python": python, "packages": {"numpy": version}}
        for name, python, version in (("old", "3.10.1", "1.26"), ("new", "3.12.1", "2.1"))
    ]
    results = [make_result(environment=name) for name in ("old", "new")]
    session = make_session(*results, environments=entries)
    rows = [row for row in csv_rows(session) if row["measure"] == "ready_time"]
    told = [(row["environment"], row["python"], row["packages"]) for row in rows]
    assert told == [("old", "3.10.1", "numpy 1.26"), ("new", "3.12.1", "numpy 2.1")]
    assert list(to_frame(session)["environment"]) == ["old", "new"]
    assert list(kinds())[-1] == COLUMNS[-1].name == "environment"
