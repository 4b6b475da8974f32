"""What a finding makes of its cases, in words that fit what its rule is about.

A severity says how bad something is, and nothing about what: a warning may be about time, memory,
waiting, what the documentation says, or who may write.
"""

from __future__ import annotations

from collections.abc import Mapping

from dlprof.session.model import FindingRecord
from dlprof.text.clean import clean

WRONG, UNSAFE = "wrong", "unsafe"
SLOW, WAITING = "slow for no reason", "waiting for no reason"
UNDOCUMENTED = "not as documented"

MEANINGS: Mapping[str, Mapping[str, str]] = {
    "DLP001": {"warning": WAITING},
    "DLP002": {"warning": WAITING},
    "DLP003": {"error": UNSAFE},
    "DLP004": {"warning": SLOW},
    "DLP005": {"warning": "taking more memory than needed"},
    "DLP006": {"warning": SLOW},
    "DLP007": {"error": WRONG},
    "DLP008": {"error": WRONG},
    "DLP009": {"error": UNSAFE, "warning": "writable although read-only"},
    "DLP010": {"error": "leaking memory", "warning": "leaving something behind"},
    "DLP011": {"error": UNSAFE},
    "DLP012": {"warning": SLOW},
    "DLP014": {"warning": SLOW},
    "DLP016": {"error": "not coming back"},
    "DLP017": {"warning": "copying some layouts only"},
    "DLP018": {"error": UNSAFE, "warning": UNDOCUMENTED},
    "DLP020": {"error": UNSAFE},
}
"""By rule and severity; *info* means the same for every rule."""
UNKNOWN_RULE: Mapping[str, str] = {
    "error": "wrong or unsafe",
    "warning": "worth mending",
    "info": "worth knowing",
}
"""Of a rule that a newer dlprof wrote into the session."""


def meaning(finding: FindingRecord) -> str:
    """``slow for no reason``: what the cases of the finding are."""
    of_rule = MEANINGS.get(finding.rule, {})
    known = of_rule.get(finding.severity) or UNKNOWN_RULE.get(finding.severity)
    return known or clean(finding.severity, 60)
