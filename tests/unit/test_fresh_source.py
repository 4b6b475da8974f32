"""Fresh source: the proof in two conversions of each new array."""

import pytest
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Protocol
from dlprof.worker.instruments.fresh_source import NEW, Pair, judge, measure


@pytest.mark.parametrize(
    ("pair", "crosses", "word"),
    [
        (Pair(1_000_000, 100_000, is_view=False, same_result=True), False, "kept"),
        (Pair(1_000_000, 100_000, is_view=False, same_result=False), False, "not kept"),
        (Pair(1_000_000, 100_000, is_view=False, same_result=False), True, "kept"),
        (Pair(40_000, 7_000, is_view=True, same_result=True), False, "kept"),
        (Pair(13_000, 7_000, is_view=True, same_result=True), False, "not kept"),
        (Pair(13_000, 7_000, is_view=True, same_result=True, moved=True), False, "kept"),
    ],
    ids=[
        "given again",
        "made again",
        "much faster to a device",
        "costly view",
        "cheap view",
        "joined",
    ],
)
def test_memory_kept_for_an_array_is_seen(pair, crosses, word):
    assert judge([pair] * 3, 0.0, crosses)["verdict"] == word


def test_a_retained_copy_has_the_time_of_a_new_array_of_its_size():
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
