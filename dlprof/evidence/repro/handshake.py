"""The handshake: a stand-in for the source writes down what it is asked."""

from __future__ import annotations

from dlprof.errors import NoReproducer
from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.lines import block
from dlprof.evidence.repro.subject import Subject
from dlprof.session.model import FindingRecord

RECORDERS = {
    "dlpack": """\
class Recorder:
    def __dlpack_device__(self):
        return array.__dlpack_device__()

    def __dlpack__(self, **asked):
        try:
            capsule = array.__dlpack__(**asked)
        except Exception as refusal:
            calls.append(f"asked for {asked}: refused, {type(refusal).__name__}: {refusal}")
            raise
        calls.append(f"asked for {asked}: answered")
        return capsule
""",
    "cuda-array-interface": """\
class Recorder:
    @property
    def __cuda_array_interface__(self):
        try:
            interface = array.__cuda_array_interface__
        except Exception as refusal:
            calls.append(f"asked: refused, {type(refusal).__name__}: {refusal}")
            raise
        calls.append("asked: answered")
        return interface
""",
}


def retry(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The producer refuses what it is asked first, and the consumer asks again."""
    case = subject.result.case
    recorder = RECORDERS.get(case.protocol)
    if recorder is None:
        raise NoReproducer("only DLPack and the CUDA Array Interface can be stood in for")
    body = block(
        "calls = []\n",
        recorder,
        subject.create(),
        "array, x = x, Recorder()",
        f"{subject.code}",
        'print(*calls, sep="\\n")',
        'return len(calls) > 1 and "refused" in calls[0]',
    )
    return Effect(f"{subject.code} asks twice: {case.producer} refuses at first", body)
