"""What instruments say of arrays that are not what most are: column-major, one view in another."""

from __future__ import annotations

import numpy
import pytest

from dlprof.probes.base import LAYOUTS, ArraySpec, shape_of
from dlprof.probes.numpy import NumPy
from dlprof.protocol.statement import OwnCode, Side
from dlprof.worker import memory
from dlprof.worker.instruments import early_write, fresh_source, lifetime
from dlprof.worker.loading import Path, own_probes
from dlprof.worker.memory import malloc_meter, resident_bytes
from dlprof.worker.subject import lies_within

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("elements", [1, 3, 4, 1000, 65537])
def test_a_smaller_array_is_in_memory_as_the_large_one_is(layout, elements):
    shape = shape_of(elements, layout)
    assert elements / 2 < numpy.prod(shape) <= elements
    if layout == "F" and elements > 3:
        namespace = {"numpy": numpy}
        exec(NumPy().create(ArraySpec(shape, "float32", "F")), namespace)
        assert namespace["x"].flags.f_contiguous
        assert not namespace["x"].flags.c_contiguous


SPEC = ArraySpec((100,), "uint8", "C")
BYTES = numpy.zeros(400, "uint8")


@pytest.mark.parametrize(
    ("source", "address", "inside"),
    [
        (BYTES[:100], 1000, True),
        (BYTES[:100], 1099, True),
        (BYTES[:100], 1100, False),
        (BYTES[:100], 999, False),
        (BYTES[:100][::-1], 901, True),
        (BYTES[:100][::-1], 1001, False),
        (BYTES[:200:2], 1198, True),
        (BYTES[:200:2], 1199, False),
        (numpy.broadcast_to(BYTES[:10], (10, 10)), 1009, True),
        (numpy.broadcast_to(BYTES[:10], (10, 10)), 1010, False),
        (b"no strides", 1099, True),
        (b"no strides", 1100, False),
    ],
)
def test_a_view_begins_anywhere_in_the_memory_of_its_source(source, address, inside):
    assert lies_within(address, 1000, source, SPEC) is inside


def own(setup, import_):
    """The subject of a user's own conversion of NumPy's ``x``."""
    side = Side("numpy", "numpy", ("builtin", "numpy"))
    code = OwnCode(f"import numpy\n{setup}", "x", "{x}", import_, "buffer", side, side)
    [probe] = own_probes(code)
    namespace = {}
    exec(code.setup, namespace)
    x = namespace["x"]
    path = Path(probe, probe, probe.exports[0], probe.imports[0], namespace)
    return path.subject(ArraySpec(x.shape, str(x.dtype), "C"))


BACKWARDS = ["{x}[..., ::-1]", "{x}[::-1]", "{x}[1:]", "numpy.flip({x})"]


@pytest.mark.parametrize("import_", BACKWARDS)
@pytest.mark.parametrize("values", ["zeros", "ones"])
def test_a_view_of_a_constant_array_that_begins_elsewhere_is_not_torn(import_, values):
    subject = own(f"x = numpy.{values}((48, 64, 3), 'uint8')", import_)
    found = early_write.measure(subject)
    assert found["verdict"] == "unknown"
    assert found["evidence"]["moot"]


@pytest.mark.parametrize("import_", BACKWARDS)
def test_a_view_that_begins_elsewhere_is_not_kept(import_):
    subject = own("x = numpy.arange(48.0)", import_)
    assert fresh_source.measure(subject, 0)["verdict"] == "not kept"


def test_a_scalar_has_no_address_that_lasts():
    assert NumPy().pointer(numpy.float32(1)) is None
    assert NumPy().pointer(numpy.ones(1)) is not None


@pytest.mark.parametrize("size", [64 << 10, 8 << 20, 64 << 20])
@pytest.mark.parametrize("own", [numpy.asarray, numpy.copy])
def test_of_large_arrays_nothing_stays_behind_either(size, own):
    source = numpy.zeros(size // 64, "uint8")  # the conversions do not depend on what is claimed
    meters = [malloc_meter(), resident_bytes]
    found = lifetime.measure_growth(lambda: own(source), source, meters, size)
    assert lifetime.judge_growth(found) == "nothing"
    assert found["conversions"] == lifetime.CONVERSIONS


def test_of_large_arrays_that_stay_behind_no_more_are_kept_than_needed():
    kept = []
    in_use = [0]

    def convert():
        kept.append(bytearray(8))
        in_use[0] += 64 << 20

    found = lifetime.measure_growth(convert, object(), [lambda: in_use[0]], 64 << 20)
    assert lifetime.judge_growth(found) == "retained"
    assert found["bytes_per_conversion"] == 64 << 20
    assert in_use[0] <= lifetime.most_kept(64 << 20) < 2 << 30


def group(folder, limit, used, names=("memory.max", "memory.current")):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(names, (limit, used), strict=True):
        (folder / name).write_text(f"{text}\n")
    (folder / "memory.stat").write_text("inactive_file 5\ntotal_inactive_file 7\n")


def test_the_tightest_of_nested_control_groups_counts(tmp_path):
    own_file = tmp_path / "cgroup"
    own_file.write_text("0::/slurm/job/step\n")
    group(tmp_path / "slurm" / "job", 1000, 400)
    group(tmp_path / "slurm" / "job" / "step", "max", 100)
    assert memory._cgroup(tmp_path, own_file) == 605


def test_a_control_group_of_the_first_version_counts_too(tmp_path):
    own_file = tmp_path / "cgroup"
    own_file.write_text("4:cpu,cpuacct:/a\n3:memory:/a/b\n")
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    group(tmp_path / "memory" / "a" / "b", 1000, 400, names)
    assert memory._cgroup(tmp_path, own_file) == 607


def test_without_a_control_group_nobody_limits(tmp_path):
    assert memory._cgroup(tmp_path, tmp_path / "none") is None
