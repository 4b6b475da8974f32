"""Results go to files, pipes and devices, complete and in every form."""

import json
from xml.etree import ElementTree as ET

import jsonschema
from builders import make_result
from command_line import RUN_RECORDED, content, dlprof, process, replay
from comparison_builders import suite
from repro_builders import with_case

PAGE = "<!doctype html>"


def test_json_on_stdout_is_the_session_and_nothing_else(tmp_path):
    run = replay(*RUN_RECORDED, "--json", "-", "-o", tmp_path / "s.json")
    assert (run.code, run.sentences) == (0, [])
    assert json.loads(run.out) == content(tmp_path / "s.json")


def test_a_page_is_written_beside_the_report_or_printed_in_its_place(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("what was there before", encoding="utf-8")
    run = replay(*RUN_RECORDED, "--html", page)
    assert run.code == 0
    assert "numpy → torch" in run.out
    assert PAGE not in run.out
    assert page.read_text(encoding="utf-8").startswith(PAGE)
    assert "(the newest 20 are kept)" in run.err
    printed = replay(*RUN_RECORDED, "--html", "-", "-o", tmp_path / "s.json")
    assert "are kept" not in printed.err
    assert printed.out.startswith(PAGE)
    assert printed.out.endswith("</html>\n")


def test_json_keeps_to_the_schema_that_dlprof_prints(tmp_path):
    (tmp_path / "a.py").write_text("import numpy, torch\ntorch.tensor(numpy.ones(3))\n")
    session = replay(*RUN_RECORDED, "--json", "-").out
    assert process("trace", "--json", tmp_path / "trace.json", tmp_path / "a.py").code == 0
    trace = (tmp_path / "trace.json").read_text(encoding="utf-8")
    for name, text in (("session", session), ("trace", trace)):
        schema = json.loads(dlprof("list", "--schema", name).out)
        check = jsonschema.validators.validator_for(schema)(schema)
        check.check_schema(schema)
        assert [*check.iter_errors(json.loads(text))] == []
        assert [*check.iter_errors({})]


# For a pipeline


def junit(path):
    root = ET.parse(path).getroot()
    return root.get("failures"), root.get("errors")


def written_to(folder):
    """Return the options for reports of a pipeline."""
    return ("--junit", folder / "j.xml", "--markdown", folder / "m.md")


def test_a_run_writes_its_reports_with_a_test_for_each_case(tmp_path):
    done = replay(*RUN_RECORDED, *written_to(tmp_path), "-o", tmp_path / "s.json")
    assert done.code == 0
    assert (tmp_path / "m.md").read_text(encoding="utf-8").startswith("## dlprof: numpy → torch")
    names = [one.get("name") for one in ET.parse(tmp_path / "j.xml").iter("testcase")]
    for result in content(tmp_path / "s.json")["results"]:
        assert any(result["case"]["code"] in name for name in names)
    assert junit(tmp_path / "j.xml")[0] == "0"


def test_a_report_writes_them_again_and_fails_as_asked(tmp_path, keep):
    wrong = {"verdict": "wrong", "evidence": {"changed": {"values": {"different": 1, "of": 2}}}}
    path = keep("s", [make_result("f(x)", values=wrong)])
    assert dlprof("report", path, *written_to(tmp_path), "--fail-on", "error").code == 1
    assert junit(tmp_path / "j.xml")[0] == "1"


def test_github_gets_annotations_and_a_summary(tmp_path, sides):
    summary = tmp_path / "summary.md"
    summary.write_text("# before\n", encoding="utf-8")
    done = dlprof("gate", *sides, "--github", GITHUB_STEP_SUMMARY=summary)
    assert done.code == 1
    assert "\n::error title=dlprof%3A SLOWER::numpy.c(x)" in done.out
    assert summary.read_text(encoding="utf-8").startswith("# before\n## dlprof: BASE and HEAD")


def test_github_obeys_nothing_that_the_report_prints(keep):
    evil = "::error::no"
    sides = [
        keep(name, [with_case(one, code=evil) for one in suite(ratio, seed=seed, names="c")])
        for name, ratio, seed in (("base", None, 0), ("head", {"c": 2.5}, 50))
    ]
    done = dlprof("gate", *sides, "--github", COLUMNS="80")
    assert evil in done.out
    obeyed = obeyed_by_github(done.out)
    assert len(obeyed) == 1
    assert obeyed[0].startswith("::error title=dlprof%3A SLOWER::")


def obeyed_by_github(text):
    """Return the commands in a step's output."""
    return [line for line in text.splitlines() if line.lstrip().startswith("::")]


def test_a_summary_that_cannot_be_written_is_an_error(tmp_path, sides):
    done = dlprof("gate", *sides, "--github", GITHUB_STEP_SUMMARY=tmp_path / "no" / "s.md")
    assert done.code == 2
    assert "cannot write the summary" in done.sentence()


def test_times_of_head_are_exported_by_a_run_and_by_a_comparison(tmp_path, sides):
    file = tmp_path / "bmf.json"
    assert replay(*RUN_RECORDED, "--export", "bmf", file).code == 0
    (times,) = {tuple(metrics) for metrics in json.loads(file.read_text()).values()}
    assert times == ("latency",)
    for verb, code in (("compare", 0), ("gate", 1)):
        done = dlprof(verb, *sides, "--export", "github-benchmark", "-")
        assert done.code == code
        head = {entry["name"].split()[1]: entry["value"] for entry in json.loads(done.out)}
        medians = {r["case"]["import"]: r["ready_time"] for r in content(sides[1])["results"]}
        assert head["dlpack->c"] == round(medians["c"]["median_ns"], 1)


def test_an_export_that_could_not_be_right_is_refused_before_anything_is_measured(tmp_path, sides):
    for words, sentence in (
        (("--export", "sarif", "f"), "--export sarif: expected bmf or github-benchmark"),
        (("--export", "bmf", "f", "--export", "bmf", "g"), "name one --export"),
        (("--export", "bmf", tmp_path), "Is a directory"),
    ):
        for verb in (RUN_RECORDED, ("compare", *sides)):
            done = replay(*verb, *words)
            assert done.code == 2
            assert sentence in done.sentence()
