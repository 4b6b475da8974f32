"""Text that wants to be more than text, and sessions that are full of it."""

from __future__ import annotations

from html_builders import alone, case, lost

from dlprof.session.model import FindingRecord, Session

BITES = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\x1b]8;;http://evil\x07",
    "\u202egnp.exe",
    "]]>&lt;&#x0;\x00",
    "datum.value; fetch('//evil')",
    "אבג ﷽",
    "```\n# not a heading\n```",
)


def session_of(word) -> Session:
    """A session that says ``word`` wherever it can."""
    names = dict.fromkeys(("export", "protocol", "dtype", "layout", "device", "setup"), word)
    names |= {"producer": f"p{word}", "consumer": f"c{word}"}
    evidence = {word: word, "list": [word], "nested": {word: {word: [word]}}}
    handshake = [
        {"call": word, "arguments": {word: word}, "outcome": word, "answer": word},
        {"call": "import", "outcome": word, "capsule": {"name": word, "flags": [word]}},
    ]
    found = FindingRecord(
        rule=word, name=word, severity=word, results=[0, 99, -1], summary=word, evidence=evidence
    )
    session = alone(
        case(
            word,
            ownership={"verdict": word, "evidence": evidence},
            ordering={"verdict": word, "evidence": {"reason": word}},
            lifetime={"verdict": "unknown", "evidence": {"reason": word}},
            handshake=handshake,
            notes=[word],
            case=names,
        ),
        case(word, 9000.0, "copy", (64, 64), case=names),
        lost(word, "crashed", f"{word}\n{word}", output=f"{word}\n{word}", case=names),
        created=word,
        command=[word],
        device_choice=word,
        left_out=[word],
        foreign_cores=2.0,
        environment={
            "python": word,
            "packages": {word: word},
            "variables": {word: word},
            word: word,
        },
        request={"pairs": [[word, word]], "probe_files": [word], word: word},
    )
    return session.model_copy(update={"findings": [found, *session.findings]})
