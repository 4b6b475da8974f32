"""The frameworks of the gate's suite with a spin behind every conversion, to plant slowdowns.

DLPROF_BENCHMARK_SPIN names conversions and how long they spin, such as
``torch->numpy numpy->ndarray 12;torch->numpy numpy->array 10``: a number of turns for a view, a
percentage of its own time for a copy. All others do not spin. The call of the spin is in all
of them, on both sides, so that the spin is the only difference.

Behind a view it counts the bits of a number, and a turn is a digit of it. A loop in Python took
4.5 ns a turn in some processes and 6 ns in others, by what else lies in memory; a digit takes
1.90 ns in all. Behind a copy it looks at the clock: ``tf.constant`` takes one of two times in a
process, and either becomes as many percent longer.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from dlprof.probes.base import Import
from dlprof.probes.builtin import ALL

FRAMEWORKS = ("bytes", "jax", "numpy", "onnxruntime", "tensorflow", "torch")
VARIABLE = "DLPROF_BENCHMARK_SPIN"
LEAST = 64
"""Digits without a plant. The processor overlaps the first ones with the work before them:
with 16 of them, 20 more took 1.2 to 1.7 ns each behind a conversion of 0.8 us."""
DIGIT_BITS = sys.int_info.bits_per_digit

SPIN = """
import os as _os
_all = [one.rsplit(" ", 2) for one in _os.environ.get("{variable}", "").split(";") if one]
_turns = {(pair, way.partition("->")[2]): int(turns) for pair, way, turns in _all}

def _spun(result, number=(1 << {bits} * ({least} + _turns.get(("{pair}", "{way}"), 0))) - 1):
    number.bit_count()
    return result

from time import perf_counter_ns as _now

def _longer(begun, result, percent=_turns.get(("{pair}", "{way}"), 0)):
    if percent:
        now = _now()
        end = now + (now - begun) * percent // 100
        while _now() < end:
            pass
    return result
"""
COPIES = ("numpy.array({x})", "tf.constant({x})", "torch.tensor({x})")
MADE_BY = "\n_made_by = globals().get('_made_by', {name!r})"


def digits(count: int) -> int:
    """Return a number with this many digits: counting its bits takes as many turns."""
    return (1 << DIGIT_BITS * count) - 1


def wrapped(code: str) -> str:
    """Return the code of a path's end with the spin behind it."""
    return f"_longer(_now(), {code})" if code in COPIES else f"_spun({code})"


def spun(name: str, way: Import) -> Import:
    """Return the same export or import with the spin. The producer's setup runs first."""
    text = SPIN.replace("{variable}", VARIABLE).replace("{way}", way.name)
    text = text.replace("{bits}", str(DIGIT_BITS)).replace("{least}", str(LEAST))
    setup = text.replace('"{pair}"', f"f'{{_made_by}}->{name}'")
    return replace(way, code=wrapped(way.code), setup=f"{way.setup}\n{setup}")


def kind_of(kind: type) -> type:
    ways = tuple(spun(kind.name, way) for way in kind.imports)
    setup = kind.setup + MADE_BY.format(name=kind.name)
    content = {"imports": ways, "setup": setup, "__module__": __name__}
    return type(f"Spun{kind.__name__}", (kind,), content)


for _kind in ALL:
    if _kind.name in FRAMEWORKS:
        globals()[f"Spun{_kind.__name__}"] = kind_of(_kind)
del _kind
