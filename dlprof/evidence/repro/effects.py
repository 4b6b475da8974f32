"""Which rule shows by which effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dlprof.evidence.repro import cost, crash, handshake, lifetime, memory, sharing, values, waiting
from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.subject import Subject
from dlprof.session.model import FindingRecord

Show = Callable[[Subject, Subject | None, FindingRecord], Effect]
"""From a finding's clearest case, and the case it is compared with, to what a script shows."""

EFFECTS: Mapping[str, Show] = {
    "DLP001": waiting.host_sync,
    "DLP002": waiting.device_sync,
    "DLP003": waiting.unordered,
    "DLP004": sharing.avoidable_copy,
    "DLP005": memory.amplification,
    "DLP006": cost.host_bounce,
    "DLP007": values.dtype_changed,
    "DLP008": values.wrong_values,
    "DLP009": sharing.read_only_lost,
    "DLP010": memory.retained,
    "DLP011": lifetime.dangling,
    "DLP012": cost.slow_path,
    "DLP013": cost.asymmetric,
    "DLP014": cost.in_loop,
    "DLP015": handshake.retry,
    "DLP016": crash.crash,
    "DLP017": sharing.layout_copy,
    "DLP018": sharing.promise_broken,
    "DLP019": waiting.early_return,
    "DLP020": lifetime.unsafe_copy,
}
