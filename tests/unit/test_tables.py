"""The tables: they hold all data of a session, typed, for any session."""

import csv
import io
import sys
from pathlib import Path

import pandas as pd
import pytest
from builders import make_measure, make_result, make_session
from hostile import texts
from html_builders import case
from hypothesis import given
from rule_builders import ordered, verdict
from step_builders import make_step

from dlprof.errors import UsageError
from dlprof.report import data_table as table
from dlprof.report.data_table import COLUMNS, LONGEST, to_frame
from dlprof.text.clean import clean

CRASHED = {"status": "crashed", "ownership": None, "values": None}
PROCESS = {"round": 0, "loops": 10, "samples_ns": [1000.0], "page_faults_per_call": 3.0}


def whole_result(**changes):
    """A result with every measure."""
    fields = {
        "host_time": make_measure(
            1000.0, (900.0, 1100.0), processes=[PROCESS, {**PROCESS, "round": 1}]
        ),
        "ready_time": make_measure(2000.0, (1900.0, 2100.0), processes=[PROCESS]),
        "device_time": {"warm": make_measure(7.0), "cold": make_measure(8.0)},
        "ordering": ordered("host-sync"),
        "fresh_source": verdict("not kept", first_ns=5.0, second_ns=4.0),
        "alignment": verdict("independent"),
        "early_write": verdict("unknown", reason="the source cannot be written"),
        "peak_memory": verdict("ok", arrays=1.5),
        "trace": verdict("no trace", reason="no CUDA"),
        "step": make_step(),
        "placement": {
            "use": "torch.add(x, 1)",
            "in_loop": make_measure(300.0, (290.0, 310.0)),
            "hoisted": make_measure(100.0, (90.0, 110.0)),
            "implicit": make_measure(200.0, (190.0, 210.0)),
            "share": {"median": 0.67, "ci95": (0.6, 0.7)},
            "break_even_iterations": 2,
        },
    }
    return case("numpy.array(x)", 12.8, "copy", **(fields | changes))


def row(result):
    return to_frame(make_session(result)).iloc[0]


def csv_rows(session):
    return list(csv.DictReader(io.StringIO(table.csv_text(session))))


def test_every_column_of_a_whole_result_is_found():
    found = row(whole_result(reason="odd", case={"promise": "copy"}, values=verdict("ok")))
    missing = {name for name in COLUMNS if pd.isna(found[name])}
    assert missing == {"findings", "gpu", "cpu"}


def test_the_frame_has_a_row_for_each_case_and_units_in_its_names():
    frame = to_frame(make_session(whole_result(), make_result()))
    assert frame.index.tolist() == [0, 1]
    assert frame["ready_time_median_ns"].tolist() == [2000.0, 1000.0]
    assert frame["host_time_ci95_low_ns"][0] == 900.0
    assert frame["bandwidth_gb_per_s"][0] == 5.0
    assert frame["ownership"].tolist() == ["copy", "view"]
    assert frame["size_bytes"].tolist() == [64, 64]


def test_csv_matches_the_frame():
    session = make_session(whole_result(), make_result(None, None, status="timeout"))
    frame = to_frame(session).reset_index()
    read = pd.read_csv(io.StringIO(table.csv_text(session)), dtype=COLUMNS)
    pd.testing.assert_frame_equal(read, frame, rtol=1e-14)


@pytest.mark.parametrize("begin", ["=", "@", "\uff1d", "\uff20"])
def test_no_cell_is_a_formula(begin):
    session = make_session(make_result(status="timeout", reason=f"{begin}1+1"))
    assert f"'{begin}1+1" in table.csv_text(session)


def test_the_columns_do_not_depend_on_the_session():
    empty, crash = make_session(), make_session(make_result(None, None, **CRASHED))
    for session in (empty, crash, make_session(whole_result())):
        kinds = {name: str(kind) for name, kind in to_frame(session).dtypes.items()}
        assert kinds == COLUMNS
    assert table.csv_text(empty) == ",".join(("case", *COLUMNS)) + "\n"


def test_a_frame_without_pandas_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert table.csv_text(make_session(make_result())).count("\n") == 2
    with pytest.raises(UsageError, match=r"to_frame needs pandas: pip install 'dlprof\[data\]'"):
        to_frame(make_session())


@given(texts)
def test_no_text_breaks_the_tables(text):
    session = make_session(make_result(case={"code": text}, ownership=verdict(text)))
    shown = clean(text, LONGEST)
    assert to_frame(session)["code"].tolist() == [shown]
    assert to_frame(session)["ownership"].tolist() == [shown]
    cell = csv_rows(session)[0]["code"]
    assert cell.removeprefix("'") == shown.removeprefix("'")
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_every_column_is_documented():
    document = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
    for name in COLUMNS:
        assert f"`{name}`" in document, name
