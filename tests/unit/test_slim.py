"""What is left of a result that is made lighter."""

from __future__ import annotations

import pytest
from builders import make_result
from repro_builders import recipe_of

from dlprof.session.slim import without_texts

pytestmark = pytest.mark.unit


def test_a_result_without_texts_has_no_text_of_which_a_script_is_made():
    told = {"create": "x = 1", "code": "f(x)", "sizes_bytes": {"4096": "torn"}}
    result = make_result(
        recipe=recipe_of(),
        lifetime={"verdict": "dangling", "evidence": told},
        early_write={
            "verdict": "varies",
            "evidence": {"processes": [{"verdict": "unsafe", "evidence": told}], "reason": "both"},
        },
    )
    left = without_texts(result)
    assert left.recipe is None
    assert left.lifetime.evidence.model_dump() == {"sizes_bytes": {"4096": "torn"}}
    (process,) = left.early_write.evidence.processes
    assert process.evidence.model_dump() == {"sizes_bytes": {"4096": "torn"}}
    assert left.early_write.evidence.reason == "both"
    assert left.case == result.case
    assert left.ready_time == result.ready_time
