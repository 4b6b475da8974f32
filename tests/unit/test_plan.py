"""The plan: which exports meet which imports, on which device, over which axes."""

from __future__ import annotations

import pytest
from builders import make_catalog, make_probe_info, make_way

from dlprof.errors import Unmeasured, UsageError
from dlprof.plan import pairing
from dlprof.plan.pairing import Axes, Path, cases, choose, choose_device, paths, targets

pytestmark = pytest.mark.unit

BOTH = ("cpu", "cuda")


def pair(exports, imports):
    return make_probe_info("torch", exports=exports), make_probe_info("numpy", imports=imports)


def names(exports, imports, device="cpu"):
    return [path.name for path in paths(*pair(exports, imports), device)]


def test_an_export_and_an_import_of_one_protocol_are_a_path():
    (path,) = paths(
        *pair([make_way("out", code="out({x})")], [make_way("in", code="into({x})")]), "cpu"
    )
    assert (path.name, path.protocol, path.code) == ("out->in", "dlpack", "into(out(x))")


def test_an_export_and_an_import_of_different_protocols_are_none():
    assert names([make_way(protocols=["dlpack-capsule"])], [make_way("in", ["dlpack"])]) == []


def test_every_export_meets_every_import_that_speaks_its_protocol():
    exports = [
        make_way("a", code="a({x})"),
        make_way("b", ["numpy"], "b({x})"),
        make_way("c", code="c({x})"),
    ]
    imports = [
        make_way("in", ["dlpack"], "in({x})"),
        make_way("any", ["dlpack", "numpy"], "any({x})"),
    ]
    assert names(exports, imports) == ["a->in", "a->any", "b->any", "c->in", "c->any"]


@pytest.mark.parametrize("device", BOTH)
def test_a_way_for_another_device_is_no_path(device):
    exports = [
        make_way("host", code="h({x})", devices=["cpu"]),
        make_way("device", code="d({x})", devices=["cuda"]),
    ]
    expected = "host" if device == "cpu" else "device"
    assert names(exports, [make_way("in")], device) == [f"{expected}->in"]
    assert names(
        [make_way("out", code="o({x})")],
        [make_way(w.name, code=w.code, devices=w.devices) for w in exports],
        device,
    ) == [f"out->{expected}"]


def test_a_native_import_takes_only_the_producers_it_names():
    native = make_way("from_numpy", ["native"], "f({x})", producers=("numpy",))
    export = make_way("tensor", ["native"])
    consumer = make_probe_info("torch", imports=[native])
    assert paths(make_probe_info("numpy", exports=[export]), consumer, "cpu")
    assert not paths(make_probe_info("jax", exports=[export]), consumer, "cpu")


def test_paths_with_the_same_code_are_one_path_of_the_first_protocol():
    exports = [make_way("tensor", ["dlpack"]), make_way("array", ["array-interface"])]
    imports = [make_way("asarray", ["dlpack", "array-interface"], "asarray({x})")]
    (path,) = paths(*pair(exports, imports), "cpu")
    assert (path.name, path.protocol) == ("tensor->asarray", "dlpack")


def test_the_bare_array_is_no_path():
    assert names([make_way("ndarray", ["numpy"])], [make_way("ndarray", ["numpy"])]) == []


def found():
    exports = [make_way("tensor"), make_way("to_dlpack", code="out({x})")]
    imports = [
        make_way("from_dlpack", code="numpy.from_dlpack({x})"),
        make_way("copy", code="numpy.array({x})"),
    ]
    return paths(*pair(exports, imports), "cpu")


@pytest.mark.parametrize(
    ("globs", "chosen"),
    [
        ([], ["tensor->from_dlpack", "tensor->copy", "to_dlpack->from_dlpack", "to_dlpack->copy"]),
        (["*->copy"], ["tensor->copy", "to_dlpack->copy"]),
        (["tensor->*"], ["tensor->from_dlpack", "tensor->copy"]),
        (["numpy.array(x)"], ["tensor->copy"]),
        (["*(out(x))"], ["to_dlpack->from_dlpack", "to_dlpack->copy"]),
        (["tensor->copy", "to_*->copy"], ["tensor->copy", "to_dlpack->copy"]),
        (["TENSOR->*"], []),
        (["tensor"], []),
    ],
)
def test_a_glob_chooses_paths_by_their_whole_name_or_code(globs, chosen):
    assert [path.name for path in choose(found(), globs)] == chosen


CPU_ONLY, CUDA_ONLY, EITHER = ("cpu",), ("cuda",), BOTH


@pytest.mark.parametrize(
    ("producer", "consumer", "no_cuda", "asked", "device", "reason"),
    [
        (EITHER, EITHER, None, "auto", "cuda", "both frameworks can use it"),
        (EITHER, EITHER, "no driver", "auto", "cpu", "no driver"),
        (CPU_ONLY, EITHER, None, "auto", "cpu", "torch cannot own arrays on cuda"),
        (EITHER, CPU_ONLY, None, "auto", "cpu", "numpy cannot own arrays on cuda"),
        (CPU_ONLY, CPU_ONLY, None, "auto", "cpu", "torch and numpy cannot own arrays on cuda"),
        (CUDA_ONLY, CPU_ONLY, None, "auto", "cuda", "torch has arrays nowhere else"),
        (CUDA_ONLY, EITHER, None, "auto", "cuda", "both frameworks can use it"),
        (EITHER, EITHER, None, "cpu", "cpu", "asked for"),
        (EITHER, CPU_ONLY, None, "cuda", "cuda", "asked for"),
    ],
)
def test_the_device_and_its_reason(producer, consumer, no_cuda, asked, device, reason):
    probes = make_probe_info("torch", devices=producer), make_probe_info("numpy", devices=consumer)
    assert choose_device(*probes, make_catalog(*probes, no_cuda=no_cuda), asked) == (device, reason)


@pytest.mark.parametrize(
    ("devices", "no_cuda", "asked", "message"),
    [
        (EITHER, "no driver", "cuda", "cuda cannot be measured: no driver"),
        (CPU_ONLY, None, "cuda", "torch has no arrays on cuda"),
        (CUDA_ONLY, None, "cpu", "torch has no arrays on cpu"),
        (CUDA_ONLY, "no driver", "auto", "torch has arrays on cuda only, and no driver"),
    ],
)
def test_a_device_that_cannot_be_had_is_refused_with_the_reason(devices, no_cuda, asked, message):
    probes = make_probe_info("torch", devices=devices), make_probe_info("numpy")
    with pytest.raises(Unmeasured, match=f"^{message}$"):
        choose_device(*probes, make_catalog(no_cuda=no_cuda), asked)


@pytest.mark.parametrize("asked", ["auto", "cpu"])
def test_a_consumer_that_needs_a_device_is_refused_where_there_is_none(asked):
    probes = make_probe_info("numpy"), make_probe_info("cupy", devices=CUDA_ONLY)
    with pytest.raises(Unmeasured, match=r"^cupy has arrays on cuda only, and no driver$"):
        choose_device(*probes, make_catalog(no_cuda="no driver"), asked)


def test_the_same_reason_of_several_pairs_is_told_once():
    host, either = make_probe_info("numpy"), make_probe_info("torch", devices=BOTH)
    pairs = [(host, host), (either, either), (either, either)]
    assert targets(pairs, make_catalog(no_cuda=None), Axes()).device_reasons == (
        "on cpu: numpy and numpy cannot own arrays on cuda; on cuda: both frameworks can use it"
    )


def test_pairs_without_their_device_are_told_apart_from_those_without_a_path():
    host, gpu = make_probe_info("numpy"), make_probe_info("cupy", devices=CUDA_ONLY)
    found = targets([(host, host), (host, gpu)], make_catalog(no_cuda="no driver"), Axes())
    assert found.nowhere == (("numpy", "cupy"),)
    assert found.refused == ("numpy → cupy: cupy has arrays on cuda only, and no driver",)


def test_every_path_is_spread_over_every_axis():
    axes = Axes(shapes=((4,), (8, 8)), dtypes=("float32", "int8"), layouts=("C", "F"), device="cpu")
    probes = pair([make_way()], [make_way("a", code="a({x})"), make_way("b", code="b({x})")])
    spread = cases([probes], make_catalog(), axes)
    assert len(spread) == 2 * 2 * 2 * 2
    assert len({(case.path.code, case.shape, case.dtype, case.layout) for case in spread}) == len(
        spread
    )


def test_cases_come_in_the_same_order_every_time():
    axes = Axes(shapes=((4,), (8, 8)), dtypes=("float32", "int8"))
    probes = pair([make_way()], [make_way("a", code="a({x})"), make_way("b", code="b({x})")])
    assert cases([probes], make_catalog(), axes) == cases([probes], make_catalog(), axes)


def test_globs_that_match_no_path_are_refused():
    with pytest.raises(UsageError, match=r"^no path matches nothing\*, \*none; 'dlprof paths"):
        cases(
            [pair([make_way()], [make_way("in", code="i({x})")])],
            make_catalog(),
            Axes(),
            ["nothing*", "*none"],
        )


def test_frameworks_without_a_common_protocol_are_refused():
    with pytest.raises(UsageError, match=r"^the frameworks share no protocol on this device$"):
        cases([pair([make_way(protocols=["numpy"])], [make_way()])], make_catalog(), Axes())


def test_a_glob_must_match_a_path_of_any_pair_only():
    one = pair([make_way()], [make_way("in", code="i({x})")])
    other = pair([make_way()], [make_way("into", code="j({x})")])
    chosen = cases([one, other], make_catalog(), Axes(), ["*->into"])
    assert [case.path.name for case in chosen] == ["dlpack->into"]


@pytest.mark.parametrize(
    ("export", "import_", "promise"),
    [
        (("o({x})", "copy"), ("i({x})", "view"), "copy"),
        (("o({x})", "view"), ("i({x})", "copy"), "copy"),
        (("o({x})", None), ("i({x})", "copy"), "copy"),
        (("o({x})", "view"), ("i({x})", "view"), "view"),
        (("o({x})", None), ("i({x})", "view"), None),
        (("o({x})", "view"), ("i({x})", None), None),
        (("{x}", None), ("i({x})", "view"), "view"),
        (("{x}", None), ("i({x})", None), None),
        (("o({x})", "view"), ("{x}", None), "view"),
    ],
)
def test_one_half_that_copies_makes_a_copy_and_a_view_needs_two(export, import_, promise):
    probes = pair(
        [make_way("out", code=export[0], promise=export[1])],
        [make_way("in", code=import_[0], promise=import_[1])],
    )
    (case,) = cases([probes], make_catalog(), Axes())
    assert case.record()["promise"] == promise


def test_a_case_is_recorded_in_the_sessions_words():
    (case,) = cases([pair([make_way()], [make_way("in", code="i({x})")])], make_catalog(), Axes())
    assert case.record() == {
        "producer": "torch",
        "export": "dlpack",
        "consumer": "numpy",
        "import": "in",
        "protocol": "dlpack",
        "code": "i(x)",
        "shape": (1024, 1024),
        "dtype": "float32",
        "layout": "C",
        "device": "cpu",
        "promise": None,
        "setup": "",
        "source": "x",
    }


class TestGlobs:
    def path(self, code="torch.frombuffer(x, dtype=torch.{dtype}).reshape({shape})"):
        return Path(make_way(), make_way("frombuffer"), "dlpack", code)

    @pytest.mark.parametrize(
        "glob",
        [
            "dlpack->frombuffer",
            "*frombuffer*",
            "torch.frombuffer(x, dtype=torch.float32).reshape((4, 8))",
            "torch.frombuffer(x, dtype=torch.{dtype}).reshape({shape})",
        ],
    )
    def test_a_path_is_found_by_its_name_its_code_and_its_code_for_an_array(self, glob):
        assert pairing.matches(self.path(), glob)

    @pytest.mark.parametrize("glob", ["frombuffer", "torch.frombuffer(x)", "*asarray*"])
    def test_it_is_found_by_nothing_else(self, glob):
        assert not pairing.matches(self.path(), glob)


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_paths_with_one_code_that_with_a_promise_is_kept(turned):
    exports = [
        make_way("plain", code="f({x})"),
        make_way("documented", code="f({x})", promise="view"),
    ]
    import_ = make_way("in", code="into({x})", promise="view")
    exports = exports[::-1] if turned else exports
    (path,) = paths(*pair(exports, [import_]), "cpu")
    assert (path.name, path.promise) == ("documented->in", "view")


def test_of_two_paths_with_one_code_that_by_the_first_protocol_of_the_import_is_kept():
    exports = [make_way("capsule", ["dlpack"], "{x}"), make_way("plain", ["numpy"], "{x}")]
    import_ = make_way("in", ["numpy", "dlpack"], "into({x})")
    (path,) = paths(*pair(exports, [import_]), "cpu")
    assert (path.name, path.protocol) == ("plain->in", "numpy")
