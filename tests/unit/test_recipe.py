"""The recipe of a case: what the probes say, and what of it is left out."""

import pytest

from dlprof.probes.base import CONTIGUOUS, ArraySpec, Unsupported
from dlprof.probes.numpy import NumPy
from dlprof.worker.instruments import recipe

SPEC = ArraySpec((4, 8), "float32")


def measured(probe):
    return recipe.measure(probe, probe, probe.imports[0], SPEC)


@pytest.mark.parametrize("error", [Unsupported("no"), ValueError("no"), SystemError()])
def test_what_a_probe_refuses_to_say_is_left_out(error):
    class Silent(NumPy):
        def use(self, device):
            raise error

        def idioms(self, device, dtype):
            raise error

    assert "use" not in measured(Silent())["source"]


@pytest.mark.parametrize("layout", CONTIGUOUS)
def test_an_array_without_gaps_is_told_at_every_alignment(layout):
    spec = ArraySpec((4, 8), "float32", layout)
    found = recipe.measure(NumPy(), NumPy(), NumPy().imports[0], spec)["create"]
    made = {layout: NumPy().create(ArraySpec((4, 8), "float32", layout)) for layout in found}
    assert {"aligned", "sliced"} <= set(made) | {layout}
    assert found == made
