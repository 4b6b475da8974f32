"""The sixteen conversions of scenarios/gate.toml, for every tool alike.

Arrays and conversions are made as dlprof's worker makes them, from the same probes, so that what
is compared is how the tools decide and not what they measure.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).parent
ROOT = HERE.parent
PROBE = HERE / "spun_probe.py"
SHAPE = (1024, 1024)


@dataclass(frozen=True)
class Conversion:
    """``way`` is the name of export and import, as in ``dlprof paths``."""

    pair: str
    way: str
    copies: bool = False

    @property
    def name(self) -> str:
        return f"{self.pair} {self.way}"

    @property
    def import_(self) -> str:
        return self.way.partition("->")[2]


SUITE = (
    Conversion("bytes->numpy", "buffer->ndarray_buffer"),
    Conversion("jax->numpy", "dlpack->from_dlpack"),
    Conversion("jax->numpy", "array->asarray"),
    Conversion("jax->torch", "dlpack->from_dlpack"),
    Conversion("numpy->onnxruntime", "ndarray->ortvalue_from_numpy"),
    Conversion("numpy->torch", "dlpack->from_dlpack"),
    Conversion("numpy->torch", "ndarray->from_numpy"),
    Conversion("torch->jax", "tensor->from_dlpack"),
    Conversion("torch->numpy", "tensor->from_dlpack"),
    Conversion("torch->numpy", "array->asarray"),
    Conversion("torch->numpy", "numpy->ndarray"),
    Conversion("jax->numpy", "array->array", copies=True),
    Conversion("jax->torch", "array->tensor", copies=True),
    Conversion("numpy->tensorflow", "array->constant", copies=True),
    Conversion("numpy->torch", "array->tensor", copies=True),
    Conversion("torch->numpy", "array->array", copies=True),
)
VIEWS = tuple(one for one in SUITE if not one.copies)
COPIES = tuple(one for one in SUITE if one.copies)


def name_of(case: Mapping[str, str]) -> str:
    """The name of the conversion that a case of a session or a report is."""
    return f"{case['producer']}->{case['consumer']} {case['export']}->{case['import']}"


def scenario() -> str:
    """scenarios/gate.toml with the probes that plant slowdowns."""
    text = (ROOT / "scenarios" / "gate.toml").read_text(encoding="utf-8")
    paths = [f"_spun({glob})" for glob in tomllib.loads(text)["paths"]]
    head, _, rest = text.partition("paths = [")
    probes = f"probes = {json.dumps([str(PROBE)])}"
    return f"{head}paths = {json.dumps(paths)}\n{probes}\n{rest.partition(']')[2]}"


def ready(conversion: Conversion) -> Any:
    """The statement and its names, the array made: ``code`` and ``namespace`` of a subject."""
    _worker_importable()
    from dlprof.probes.base import ArraySpec
    from dlprof.worker.subject import namespace_for, prepare

    producer, consumer = (_probe(name) for name in conversion.pair.split("->"))
    export_name, import_name = conversion.way.split("->")
    export = next(one for one in producer.exports if one.name == export_name)
    import_ = next(one for one in consumer.imports if one.name == import_name)
    spec = ArraySpec(SHAPE, "float32", "C", "cpu")
    namespace = namespace_for(producer, consumer, import_)
    return prepare(producer, consumer, export, import_, spec, namespace)


def function(conversion: Conversion) -> Any:
    """The conversion as a function without arguments, as a benchmark of another tool has it."""
    subject = ready(conversion)
    scope: dict[str, Any] = {}
    exec(f"def convert():\n    return {subject.code}", subject.namespace, scope)
    return scope["convert"]


@cache
def _probe(name: str) -> Any:
    from dlprof.worker import loading

    return loading.find(f"file:{PROBE}", name)


def _worker_importable() -> None:
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
