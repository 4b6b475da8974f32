"""``--device simulated``: explicit, real to frameworks, and without a time in any output."""

import re
import sys
from pathlib import Path

import pytest
from builders import make_result, make_session
from rule_builders import verdict

from dlprof.compare.comparison import compare, exit_code
from dlprof.compare.verdicts import parse as criteria
from dlprof.errors import Unmeasured, UsageError
from dlprof.measuring.judged import judged
from dlprof.report import html, markdown, terminal
from dlprof.report.checks import checks, junit
from dlprof.report.comparison_document import comparison_checks, comparison_document
from dlprof.report.session_document import session_document
from dlprof.runner import options
from dlprof.runner.catalog import catalog_from
from dlprof.runner.request import make_request
from dlprof.runner.session import SIMULATED
from dlprof.runner.worker_client import child_environment
from dlprof.simulated import environment as simulated
from dlprof.simulated.environment import LIBRARY
from dlprof.ticket.ticket import ticket

NO_SCRIPT = "the session is made by hand"
TIME = re.compile(r"\b\d[\d.,]* ?(ns|µs|us|ms|s|GB/s)\b")


def request(**given):
    values = options.settle(options.read(given))
    return make_request(values, (("cupy", "numba"),), ("run",))


def test_page_locked_memory_is_the_hosts_also_next_to_a_simulated_device():
    found = request(devices="simulated", layouts="pinned")
    assert (found.axes.devices, found.simulated) == (("cpu",), 1)
    with pytest.raises(UsageError, match="pinned is memory of the host"):
        request(devices="cuda", layouts="pinned")


def untimed(code="numba.cuda.as_cuda_array(x)", order="host-sync", **changes):
    """A case on a simulated device: with a verdict on order, and without times."""
    case = {"producer": "cupy", "consumer": "numba", "device": "cuda"}
    return make_result(
        code,
        None,
        case=case,
        untimed=True,
        ordering=verdict(order, recorded=True, size_bytes=1 << 20),
        **{"ownership": {"verdict": "view", "evidence": {"result_device": "cuda"}}, **changes},
    )


def session(*results, **changes):
    found = results or (untimed(), untimed("numba.cuda.as_cuda_array(x, sync=False)", "unordered"))
    header = {"simulated": 1, "request": {"pairs": [["cupy", "numba"]]}, **changes}
    return judged(make_session(*found, **header))


def test_frameworks_see_a_cuda_device():
    asked = request(devices="simulated:2")
    assert (asked.axes.devices, asked.simulated) == (("cuda",), 2)


@pytest.mark.parametrize("devices", [["simulated", "cpu"], "simulated:0", "simulated:9"])
def test_it_stands_alone_and_has_few_devices(devices):
    with pytest.raises(UsageError):
        request(devices=devices)


def answer(**interpreter):
    return {"interpreter": {"no_cuda": None, **interpreter}, "probes": [], "faults": {}}


def test_the_simulated_driver_is_no_device_unless_requested():
    found = catalog_from(sys.executable, answer(simulated=True))
    assert "--device simulated" in found.interpreter["no_cuda"]


def test_a_real_driver_is_never_taken_for_the_simulated_one():
    with pytest.raises(Unmeasured):
        catalog_from(sys.executable, answer(simulated=False), simulated=1)


def test_a_worker_finds_the_driver_before_any_other(monkeypatch):
    monkeypatch.setenv(simulated.PATH, "/somewhere")
    found = child_environment(sys.executable, simulated.variables(2))
    first, *_, last = found[simulated.PATH].split(":")
    assert (Path(first) / LIBRARY).exists()
    assert (last, found[simulated.DEVICES]) == ("/somewhere", "2")


def test_a_missing_compiler_is_reported_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unmeasured, match="compiler") as raised:
        child_environment(sys.executable, simulated.variables(1))
    assert raised.value.exit_code == 4


def outputs():
    found = session()
    document = session_document(found, scripts=True)
    yield "terminal", terminal.render(document)
    yield "full", terminal.render(document, full=True)
    yield "markdown", markdown.render(document)
    yield "page", html.render(document, found)
    yield "junit", junit("title", checks(found))
    for finding in found.findings:
        yield finding.rule, ticket(found, finding, NO_SCRIPT, "not run")
    compared = compare(session(created="2026-01-02T00:00:00+00:00"), found, criteria([]))
    both = comparison_document(compared)
    yield "comparison", terminal.render(both)
    yield "comparison as Markdown", markdown.render(both)
    yield "comparison as JUnit", junit("title", comparison_checks(compared))


def test_every_output_states_that_the_device_is_simulated():
    for name, text in outputs():
        assert SIMULATED.lower() in " ".join(text.split()).lower(), name


def test_the_screen_names_the_size_of_the_arrays_that_stood_for_larger_ones():
    assert "Measured with arrays of 1 MiB." in dict(outputs())["terminal"]


def test_no_output_has_a_time_of_the_device():
    for name, text in outputs():
        if name != "page":  # it has style sheets; it renders the same document
            told = text.split("## Reproducer")[0].split("How it was measured")[0]
            assert not TIME.search(told), name
            assert "fast" not in told


def test_two_simulated_sessions_are_compared_by_their_verdicts():
    base = session(untimed(order="stream-ordered"), created="2026-01-01T00:00:00+00:00")
    head = session(untimed(order="unordered"), created="2026-01-02T00:00:00+00:00")
    assert exit_code(compare(base, base.model_copy(update={"created": "x"}), criteria([]))) == 0
    assert exit_code(compare(base, head, criteria([]))) == 1


def test_a_criterion_on_time_is_refused_for_them():
    head = session(created="2026-01-02T00:00:00+00:00")
    with pytest.raises(UsageError, match="times"):
        compare(session(), head, criteria(["ready:10%"]))
