"""``dlprof run --device simulated``: verdicts on CuPy and Numba, as their sources have them.

- ``numba.cuda.as_cuda_array(x)`` waits for the stream of the array (``numba_cuda/numba/cuda/api.py``,
  ``from_cuda_array_interface``), and with ``sync=False`` it does not.
- A kernel takes an array by ``__dlpack__`` in numba-cuda, so that CuPy orders the streams. In Numba
  without it, the kernel calls ``as_cuda_array``.
- ``x.get()`` waits for its copy (``cupy/_core/core.pyx``, ``_ndarray_base.get``).
"""

import re
import sys
from importlib.util import find_spec

import pytest
from command_line import dlprof

import dlprof as package
from dlprof.measuring.judged import load
from dlprof.runner.session import SIMULATED
from dlprof.ticket.reproducer import reproducer
from dlprof.ticket.ticket import run
from dlprof.worker.simulated import NOT_COMPUTED

pytestmark = pytest.mark.skipif(
    None in (find_spec("cupy"), find_spec("numba")), reason="needs cupy and numba"
)
IS_NUMBA_CUDA = find_spec("numba_cuda") is not None

ORDERS = {
    "kernel[128, 32](x)": "stream-ordered" if IS_NUMBA_CUDA else "host-sync",
    "numba.cuda.as_cuda_array(x)": "host-sync",
    "numba.cuda.as_cuda_array(x, sync=False)": "unordered",
    "numba.cuda.to_device(x.get())": "host-sync",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "session.json"
    return package.run("cupy", "numba", device="simulated", rounds=1, path=[*ORDERS], output=path)


@pytest.fixture(scope="module")
def results(session):
    return {result.case.code: result for result in session.results}


@pytest.mark.parametrize(("code", "order"), ORDERS.items())
def test_what_a_call_does_about_queued_work_is_seen(results, code, order):
    assert results[code].ordering.verdict == order


@pytest.mark.parametrize(
    ("code", "call", "later"),
    [
        ("numba.cuda.as_cuda_array(x)", None, True),
        ("numba.cuda.to_device(x.get())", "x.get()", True),
    ],
)
def test_the_record_names_the_call_that_waits_and_whether_it_waits_for_later_work(
    results, code, call, later
):
    evidence = results[code].ordering.evidence
    assert (evidence.waits_in, evidence.waits_for_later) == (call, later)


@pytest.mark.parametrize(
    ("code", "owner"),
    [("numba.cuda.as_cuda_array(x)", "view"), ("numba.cuda.to_device(x.get())", "copy")],
)
def test_views_and_copies_are_told_apart_and_have_their_values(results, code, owner):
    assert results[code].ownership.verdict == owner
    assert results[code].values.verdict == "ok"
    # Unknown is right if the conversion read memory before a kernel filled it.
    lifetime = results[code].lifetime
    assert lifetime.verdict == "safe" or lifetime.evidence.reason == NOT_COMPUTED


def test_the_session_is_marked_and_has_no_times(session, results):
    assert session.simulated == 1
    for result in results.values():
        assert (result.host_time, result.ready_time, result.device_time) == (None, None, None)
        assert (result.copy_cost, result.first_call_ns) == (None, None)


def test_a_race_is_an_error_and_a_wait_is_told(session):
    found = {finding.rule: finding.severity for finding in session.findings}
    assert found["DLP003"] == "error"
    assert "DLP001" in found


def test_another_interpreter_gets_all_that_is_needed(tmp_path):
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    one = "numba.cuda.as_cuda_array(x)"
    words = ("--device", "simulated", "--quick", "--shape", "64", f"--path={one}")
    found = dlprof("run", "cupy", "numba", *words, "--python", script, "-o", tmp_path / "s.json")
    assert found.code == 0, found.err
    assert SIMULATED in found.said
    assert not re.search(r"\d (ns|µs|ms)\b", found.said)


def test_a_smaller_array_stands_for_one_that_the_device_has_no_room_for(tmp_path):
    words = ("--device", "simulated", "--shape", "8192x8192", "--path=numba.cuda.as_cuda_array(x)")
    output, memory = tmp_path / "s.json", {"DLPROF_SIMULATED_MEMORY": 64 << 20}
    found = dlprof("run", "cupy", "numba", *words, "-o", output, **memory)
    assert "Measured with arrays of 1 MiB." in found.said
    (result,) = load(output).results
    assert (result.status, result.ownership.verdict) == ("ok", "view")
    assert "8192" in result.recipe.create["C"]


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_a_framework_without_a_cuda_build_is_named_in_one_sentence(tmp_path):
    words = ("--device", "simulated", "--path=cupy.from_dlpack(x)", "-o", tmp_path / "s.json")
    found = dlprof("run", "torch", "cupy", *words)
    assert (found.code, found.out) == (4, "")
    assert "torch cannot use CUDA here" in found.sentence()
    assert "CUDA builds: pip install torch" in found.sentence()


def test_a_reproducer_tells_nothing_if_its_load_is_on_another_device(session):
    (race,) = (one for one in session.findings if one.rule == "DLP003")
    text = reproducer(session, race).text
    assert run(text, sys.executable, 2).verdict == "there"
    for old, new in {
        "with cupy.cuda.Stream(non_blocking=True):": "if True:",
        " x = (cupy.": " cupy.cuda.Device(1).use(); x = (cupy.",
        "with x.device:": "with cupy.cuda.Device(0):",
        "y = x + 1": "cupy.cuda.Device(1).use(); y = x + 1",
        "return y": "cupy.cuda.Device(0).use(); return y",
    }.items():
        assert old in text
        text = text.replace(old, new)
    assert "does not hold up its own array" in run(text, sys.executable, 2).output


def test_work_is_queued_on_the_device_of_the_source(tmp_path):
    names = "import cupy, numba.cuda; cupy.cuda.Device(1).use(); x = cupy.ones(64, 'float32')"
    setup = f"{names}; cupy.cuda.Device(0).use(); host = lambda x: x.get()"
    result = looked_at(tmp_path, "host(x)", setup, "simulated:2")
    assert result.ordering.verdict == "host-sync"


def test_a_host_array_is_converted_to_the_device(tmp_path):
    options = {"device": "simulated", "rounds": 1, "shape": "64", "survey": False}
    found = package.run("numpy", "cupy", path=["*array(x)"], output=tmp_path / "s.json", **options)
    owned = [result.ownership.evidence.result_device for result in found.results]
    assert owned == ["cuda"] * len(owned) != []


@pytest.mark.parametrize(("code", "crosses"), [("turn(x)", True), ("cupy.copy(x)", False)])
def test_a_copy_to_the_host_and_back_is_counted(tmp_path, code, crosses):
    names = "import cupy; x = cupy.ones(64, 'float32'); turn = lambda x: cupy.asarray(x.get())"
    assert looked_at(tmp_path, code, names).ownership.evidence.crosses_twice is crosses


def test_a_copy_to_another_device_is_named(tmp_path):
    names = "import cupy; x = cupy.ones(64, 'float32'); cupy.cuda.Device(1).use()"
    result = looked_at(tmp_path, "cupy.asarray(cupy.array(x))", names, "simulated:2")
    assert result.ownership.evidence.devices == ("cuda:0", "cuda:1")


def looked_at(tmp_path, code, setup, device="simulated"):
    """Measure a user's own conversion."""
    words = ("-s", setup, "--source", "x", "--device", device, "--rounds", "1")
    found = dlprof("time", *words, code, "-o", tmp_path / "s.json")
    assert found.code == 0, found.err
    (result,) = package.load(tmp_path / "s.json").results
    return result


def test_what_a_kernel_should_have_written_is_neither_right_nor_wrong(tmp_path):
    setup = "import cupy, numpy; x = cupy.asarray(numpy.arange(64.0))"
    result = looked_at(tmp_path, "cupy.add(x, 1).get()", setup)
    assert result.values.verdict == "unknown"
    assert result.values.evidence.reason == NOT_COMPUTED
    assert result.ownership.verdict == "copy"


def test_a_conversion_that_misuses_the_driver_is_an_error(tmp_path):
    ends_twice = "(lambda s: cupy.cuda.runtime.streamDestroy(s.ptr))(cupy.cuda.Stream())"
    setup = f"import cupy; x = cupy.asarray([1.0]); f = lambda x: ({ends_twice}, x)[1]"
    found = looked_at(tmp_path, "f(x)", setup)
    report = "a stream that does not exist was destroyed"
    assert [*map(str, found.notes)] == [f"driver: {report}"]
    (finding,) = package.load(tmp_path / "s.json").findings
    assert (finding.rule, finding.severity) == ("DLP016", "error")
    assert report in finding.summary


def test_a_copy_of_memory_that_is_not_allocated_is_a_finding(tmp_path):
    names = "import cupy; x = cupy.ones(64, 'float32'); cuda = cupy.cuda.runtime"
    setup = f"{names}; freed = cuda.malloc(256); cuda.free(freed)"
    code = "(cuda.memcpyAsync(x.data.ptr, freed, 64, 3, 0), x)[1]"
    words = ("-s", setup, "--source", "x", "--device", "simulated", "--rounds", "1")
    found = dlprof("time", *words, code, "-o", tmp_path / "s.json")
    assert "DLP016" in found.out
    assert "a copy of memory that is not allocated" in found.out
    assert "refused" not in found.out


def test_a_view_that_lets_its_source_go_is_dangling(tmp_path):
    bare = "type('Bare', (), {'__cuda_array_interface__': x.__cuda_array_interface__})()"
    names = f"import cupy, numba.cuda, numpy; host = numpy.arange(64.0); bare = lambda x: {bare}"
    result = looked_at(
        tmp_path, "cupy.asarray(bare(x))", f"{names}; x = numba.cuda.to_device(host)"
    )
    assert (result.ownership.verdict, result.lifetime.verdict) == ("view", "dangling")
