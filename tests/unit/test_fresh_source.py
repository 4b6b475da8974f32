"""Fresh source: what two conversions of each new array prove."""

import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.worker.instruments.fresh_source import NEW, Pair, judge, measure


def views(first_ns, second_ns):
    return [Pair(first_ns, second_ns, is_view=True, same_result=True)] * 3


def copies(same_result):
    return [Pair(1_000_000, 100_000, is_view=False, same_result=same_result)] * 3


def test_a_copy_that_is_given_out_again_is_kept():
    assert judge(copies(same_result=True), 0.0)["verdict"] == "kept"


def test_a_copy_that_is_made_again_is_not_kept_however_fast_it_was():
    assert judge(copies(same_result=False), 0.0)["verdict"] == "not kept"


def test_a_copy_to_another_device_that_is_much_faster_the_second_time_is_kept():
    assert judge(copies(same_result=False), 0.0, crosses=True)["verdict"] == "kept"


def test_a_copy_that_is_kept_has_the_time_of_a_new_array_of_its_own_size():
    kept, sizes = {}, []

    def keep(array):
        if id(array) not in kept:
            sizes.append(array.nbytes)
            kept[id(array)] = array, array.copy()
        return kept[id(array)][1]

    import_ = Import("keep", (Protocol.DLPACK,), "keep({x})")
    spec = ArraySpec((1024, 1024), "float32")
    found = measure(make_subject(import_=import_, spec=spec, keep=keep), 0)
    assert found["verdict"] == "kept"
    assert found["evidence"]["new_ns"] > 0
    assert sizes[-NEW:] == [spec.size_bytes] * NEW


def test_a_view_whose_first_conversion_costs_much_more_is_kept():
    assert judge(views(40_000, 7_000), 0.0)["verdict"] == "kept"


@pytest.mark.parametrize("first_ns", [7_000, 10_000, 13_000])
def test_a_view_whose_first_conversion_costs_a_little_more_is_not_kept(first_ns):
    assert judge(views(first_ns, 7_000), 0.0)["verdict"] == "not kept"
