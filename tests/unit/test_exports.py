"""Exports, read as their readers read them: by schema, by name, by line."""

import json

import jsonschema
import pytest
from builders import make_measure, make_result, make_session
from test_tracer import ROW

from dlprof.errors import UsageError
from dlprof.report.exports import bmf, github_benchmark, sarif
from dlprof.runner.trace import Trace

BENCHER = {  # https://bencher.dev/bmf.json
    "type": "object",
    "patternProperties": {
        ".+": {
            "type": "object",
            "patternProperties": {
                ".+": {
                    "type": "object",
                    "properties": {
                        key: {"type": "number"} for key in ("value", "lower_value", "upper_value")
                    },
                    "required": ["value"],
                }
            },
        }
    },
}
ACTION = {  # BenchmarkResults in src/extract.ts of github-action-benchmark
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            **{key: {"type": "string"} for key in ("name", "unit", "range", "extra")},
            "value": {"type": "number"},
        },
        "required": ["name", "value", "unit"],
    },
}
NAME = "torch->numpy dlpack->from_dlpack float32 4x4 C cpu"
SYNCHRONOUS = make_measure(1000.0, same_as="host_time")


def valid(text, schema):
    content = json.loads(text)
    jsonschema.validate(content, schema)
    return content


def test_bencher_reads_medians_with_their_intervals():
    found = valid(bmf(make_session(make_result(ready_time=SYNCHRONOUS))), BENCHER)
    assert found == {NAME: {"latency": {"value": 1000, "lower_value": 900, "upper_value": 1100}}}


def test_a_call_that_returns_early_has_the_time_of_the_host_apart():
    session = make_session(make_result(host_time=make_measure(20.0, None)))
    assert valid(bmf(session), BENCHER)[NAME]["host-time"] == {"value": 20}
    ready, host = valid(github_benchmark(session), ACTION)
    assert (ready["name"], ready["range"], ready["extra"]) == (
        *(NAME, "± 100.0"),
        "torch 2.9.0, numpy 2.4.0",
    )
    assert (host["name"], host["value"]) == (f"{NAME} (host time)", 20)


def test_statements_are_named_by_their_code_and_not_by_their_number():
    record = {"import": "statement 2", "export": "x"}
    (name,) = json.loads(bmf(make_session(make_result("x.numpy()", case=record))))
    assert name == "torch->numpy x.numpy() float32 4x4 C cpu"


def test_statements_that_differ_at_their_ends_alone_keep_two_names():
    record = {"import": "statement", "export": "x"}
    codes = [f"torch.cat([{'x, ' * 500}x], {axis})" for axis in (0, 1)]
    session = make_session(*(make_result(code, case=record) for code in codes))
    assert len(json.loads(bmf(session))) == 2


@pytest.mark.parametrize("status", ["invalid", "crashed"])
def test_a_time_that_is_not_trusted_is_not_exported(status):
    session = make_session(make_result(status=status))
    assert (json.loads(bmf(session)), json.loads(github_benchmark(session))) == ({}, [])


def test_a_simulated_device_has_no_time_to_export():
    with pytest.raises(UsageError, match="simulated device"):
        bmf(make_session(make_result(), simulated=1))


def run_of(*rows, **changes):
    fields = {"program": ["a.py"], "exit_code": 0, "wall_ns": 1, "processes": [{"pid": 1}]}
    rows = [{**ROW, **row} for row in rows]
    (run,) = json.loads(sarif(Trace.model_validate({**fields, "rows": rows, **changes})))["runs"]
    return run


def test_code_scanning_gets_each_fault_on_the_lines_of_its_expression(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = str(tmp_path / "my code" / "a.py")
    (tmp_path / "my code").mkdir()
    (tmp_path / "my code" / "a.py").write_text("\né = f(\n  x)\n", encoding="utf-8")
    crossing = {"crossings": [["cuda:0", "cpu", 2]], "span": [2, 3, 5, 4], "line": 2}
    run = run_of({"file": file, **crossing})
    assert [result["ruleId"] for result in run["results"]] == ["copy", "device-crossing"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20code/a.py"
    keys = "startLine", "startColumn", "endLine", "endColumn"
    assert [place["region"][key] for key in keys] == [2, 5, 3, 5]
    assert all(rule["fullDescription"] and rule["help"] for rule in run["tool"]["driver"]["rules"])
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} >= {"copy", "device-crossing"}


def test_an_allowed_copy_and_a_view_are_no_results():
    view = {"copies": 0, "views": 1, "result": "view"}
    run = run_of({"allowed": ["copy"]}, {**view, "line": 2})
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"]


def test_a_gap_of_the_trace_is_no_success():
    run = run_of({"copies": 0, "unknown": 1, "result": "unknown"}, troubles=["a.so: no"])
    (invocation,) = run["invocations"]
    notes = [note["message"]["text"] for note in invocation["toolExecutionNotifications"]]
    assert not invocation["executionSuccessful"]
    assert notes[0] == "not all is traced of a.so: no"
