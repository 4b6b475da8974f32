"""A plan: the paths, devices, cases, omissions and schedule of a request."""

import pytest
from builders import make_catalog, make_probe_info, make_way

from dlprof.errors import MissingFramework, Unmeasured
from dlprof.runner.measurement import plan
from dlprof.runner.pairing import Path, choose_device, matches, paths
from dlprof.runner.request import Axes, Request, Settings

CPU, CUDA, BOTH = ("cpu",), ("cuda",), ("cpu", "cuda")
CATALOG = make_catalog(
    make_probe_info("numpy", variables={"N": "1"}),
    make_probe_info("torch", devices=BOTH),
    make_probe_info("cupy", devices=CUDA, variables={"C": "1"}),
    make_probe_info("jax", found=False),
)


def pair(exports, imports):
    return make_probe_info("torch", exports=exports), make_probe_info("numpy", imports=imports)


def names(exports, imports, device="cpu"):
    return [path.name for path in paths(*pair(exports, imports), device)]


def planned(*wanted, axes=None, globs=(), catalog=CATALOG):
    return plan(Request(wanted, axes or Axes(), globs), catalog)


def cases(exports, imports, axes=None, globs=()):
    """Return the paths of one pair with these exports and imports."""
    catalog = make_catalog(*pair(exports, imports))
    return planned(("torch", "numpy"), axes=axes, globs=globs, catalog=catalog).cases


# Paths


def test_every_export_meets_every_import_that_speaks_its_protocol():
    exports = [
        make_way("a", code="a({x})"),
        make_way("b", ["numpy"], "b({x})"),
        make_way("c", ["dlpack-capsule"], "c({x})"),
    ]
    imports = [
        make_way("in", ["dlpack"], "in({x})"),
        make_way("any", ["dlpack", "numpy"], "any({x})"),
    ]
    assert names(exports, imports) == ["a->in", "a->any", "b->any"]
    assert paths(*pair(exports, imports), "cpu")[0].code == "in(a(x))"


@pytest.mark.parametrize("device", BOTH)
def test_an_export_or_import_for_another_device_is_no_path(device):
    host, gpu = make_way("host", code="h({x})", devices=CPU), make_way("gpu", devices=CUDA)
    expected = "host" if device == "cpu" else "gpu"
    assert names([host, gpu], [make_way("in", code="i({x})")], device) == [f"{expected}->in"]
    assert names([make_way("out", code="o({x})")], [host, gpu], device) == [f"out->{expected}"]


def test_a_native_import_takes_only_the_producers_it_names():
    consumer = make_probe_info(
        "torch", imports=[make_way("from_numpy", ["native"], "f({x})", producers=("numpy",))]
    )
    export = make_way("tensor", ["native"])
    assert paths(make_probe_info("numpy", exports=[export]), consumer, "cpu")
    assert not paths(make_probe_info("jax", exports=[export]), consumer, "cpu")


@pytest.mark.parametrize(
    ("glob", "fits"),
    [
        ("dlpack->frombuffer", True),
        ("*frombuffer*", True),
        ("f(x, {dtype}).reshape({shape})", True),
        ("f(x, float32).reshape((4, 8))", True),
        ("frombuffer", False),
        ("DLPACK->*", False),
        ("f(x)", False),
    ],
)
def test_a_path_is_found_by_its_whole_name_its_code_or_its_code_for_an_array(glob, fits):
    path = Path(make_way(), make_way("frombuffer"), "dlpack", "f(x, {dtype}).reshape({shape})")
    assert matches(path, glob) == fits


@pytest.mark.parametrize(
    ("export", "import_", "promise"),
    [
        (("o({x})", "copy"), ("i({x})", "view"), "copy"),
        (("o({x})", None), ("i({x})", "copy"), "copy"),
        (("o({x})", "view"), ("i({x})", "view"), "view"),
        (("o({x})", None), ("i({x})", "view"), None),
        (("{x}", None), ("i({x})", "view"), "view"),
    ],
)
def test_one_half_that_copies_makes_a_copy_and_a_view_needs_two(export, import_, promise):
    (case,) = cases(
        [make_way("out", code=export[0], promise=export[1])],
        [make_way("in", code=import_[0], promise=import_[1])],
    )
    assert case.record()["promise"] == promise


# Devices


@pytest.mark.parametrize(
    ("producer", "consumer", "no_cuda", "asked", "device", "reason"),
    [
        (BOTH, BOTH, None, "auto", "cuda", "both frameworks"),
        (BOTH, BOTH, "no driver", "auto", "cpu", "no driver"),
        (CPU, BOTH, None, "auto", "cpu", "torch cannot"),
        (CPU, CPU, None, "auto", "cpu", "torch and numpy"),
        (CUDA, CPU, None, "auto", "cuda", "nowhere else"),
        (BOTH, CPU, None, "cuda", "cuda", "asked for"),
    ],
)
def test_the_device_and_its_reason(producer, consumer, no_cuda, asked, device, reason):
    probes = make_probe_info("torch", devices=producer), make_probe_info("numpy", devices=consumer)
    found, why = choose_device(*probes, make_catalog(*probes, no_cuda=no_cuda), asked)
    assert (found, reason in why) == (device, True)


@pytest.mark.parametrize(
    ("producer", "consumer", "no_cuda", "asked", "message"),
    [
        (BOTH, CPU, "no driver", "cuda", "no driver.*--device simulated .*pip install torch"),
        (CPU, CPU, None, "cuda", "torch .*cuda"),
        (CUDA, CPU, "no driver", "auto", "torch .*no driver"),
        (CPU, CUDA, "no driver", "cpu", "numpy .*no driver"),
    ],
)
def test_an_unavailable_device_is_refused(producer, consumer, no_cuda, asked, message):
    probes = make_probe_info("torch", devices=producer), make_probe_info("numpy", devices=consumer)
    with pytest.raises(Unmeasured, match=message):
        choose_device(*probes, make_catalog(no_cuda=no_cuda), asked)


def test_a_pair_is_measured_on_each_of_its_devices():
    catalog = make_catalog(*CATALOG.probes, no_cuda=None)
    wanted = ("torch", "torch"), ("numpy", "torch")
    found = planned(*wanted, axes=Axes(devices=BOTH), catalog=catalog)
    places = {(case.pair, case.device) for case in found.cases}
    assert places == {(wanted[0], "cpu"), (wanted[0], "cuda"), (wanted[1], "cpu")}
    assert found.device_choice.count("asked for") == 2


# Cases


def test_page_locked_memory_belongs_to_the_host_of_a_producer_that_makes_it():
    out, into = make_way("ndarray", ["numpy"]), make_way("in", ["numpy"], "f({x})", devices=BOTH)
    maker = make_probe_info("cupy", devices=CUDA, flags=("pinned",), exports=[out], imports=[into])
    catalog = make_catalog(maker, make_probe_info("numpy", exports=[out]), no_cuda=None)
    pinned = Axes(layouts=("pinned",), devices=("cpu",))
    (case,) = planned(("cupy", "cupy"), axes=pinned, catalog=catalog).cases
    assert case.device == "cpu"
    with pytest.raises(Unmeasured, match=r"numpy has no page-locked arrays\. These have: cupy"):
        planned(("numpy", "cupy"), axes=pinned, catalog=catalog)


def test_every_path_is_spread_over_every_axis_in_the_same_order_every_time():
    axes = Axes(
        shapes=((4,), (8, 8)), dtypes=("float32", "int8"), layouts=("C", "F"), devices=("cpu",)
    )
    ways = [make_way()], [make_way("a", code="a({x})"), make_way("b", code="b({x})")]
    spread = cases(*ways, axes)
    whole = {(case.path.code, case.shape, case.dtype, case.layout) for case in spread}
    assert len(spread) == len(whole) == 2 * 2 * 2 * 2
    assert cases(*ways, axes) == spread


# Omissions


def test_the_only_pair_must_be_there():
    with pytest.raises(MissingFramework, match="jax"):
        planned(("jax", "numpy"))
    with pytest.raises(Unmeasured, match="no driver"):
        planned(("torch", "torch"), axes=Axes(devices=CUDA))


@pytest.mark.parametrize(
    ("pairs", "globs", "reason"),
    [
        ([("jax", "numpy")], (), "pip install jax"),
        ([("cupy", "torch")], (), "cupy → torch: "),
        ([("lone", "numpy")], (), "lone → numpy"),
        ([], ("*from_dlpack*", "*nothing*"), "'*nothing*'"),
    ],
    ids=["framework", "device", "path", "glob"],
)
def test_paths_that_cannot_share_a_process_are_left_out_with_a_note(pairs, globs, reason):
    lone = make_probe_info("lone", exports=[make_way(protocols=["numpy"])])
    catalog = make_catalog(*CATALOG.probes, lone)
    found = planned(*pairs, ("torch", "numpy"), globs=globs, catalog=catalog)
    assert {case.pair for case in found.cases} == {("torch", "numpy")}
    (said,) = found.left_out
    assert reason in said


# The schedule


@pytest.mark.parametrize("in_turns", [False, True])
def test_only_both_sides_of_a_gate_have_a_steady_allocator(monkeypatch, in_turns):
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    request = Request((("numpy", "torch"),), settings=Settings(in_turns=in_turns))
    assert ("GLIBC_TUNABLES" in plan(request, CATALOG).variables) == in_turns
