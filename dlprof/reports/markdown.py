"""The summary as GitHub-flavoured Markdown, as for ``$GITHUB_STEP_SUMMARY``.

The answer first, then findings, the paths, and what was not measured. Text of a session is
anybody's: code stands in code spans, everything else is escaped, so that nothing of it is markup,
mentions anybody or ends a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dlprof.analysis.quantity import plain_time, size_text
from dlprof.reports import command, placement
from dlprof.reports.answer import answers
from dlprof.reports.circumstances import foreign_text, packages, processes_text
from dlprof.reports.faults import suspected
from dlprof.reports.findings import pairs_text
from dlprof.reports.footnotes import footnotes
from dlprof.reports.row import Row
from dlprof.reports.terminal import Column, measures_of, varying
from dlprof.session.environments import environments_of
from dlprof.session.model import FindingRecord, Header
from dlprof.text.clean import clean, first_line

MOST_ROWS = 200
MOST_FINDINGS = 50
MOST_REASONS = 50
MOST_ANSWERS = 50
MOST_CODES = 3
LOOP_COLUMNS = tuple(Column(title, placement.cell(title), right=True) for title in placement.TITLES)

_MARKUP = re.compile(r"[\\`*_\[\]<>#|~&$]")
_MENTION = re.compile(r"@|(?<=\\#)(?=\d)")
_LINK = re.compile(r":(?=//)|(?<=\bwww)\.", re.IGNORECASE)
_BACKTICKS = re.compile(r"`+")


def render(header: Header, rows: Sequence[Row]) -> str:
    """The summary; at most a few hundred lines, however long the session is."""
    rows = suspected(rows, header.findings)
    blocks = [
        _title(header, rows),
        *_answers(rows),
        *_findings(header.findings, rows),
        *_paths(rows),
        *_loops(rows),
        *_lost(header, rows),
        *_about(header),
    ]
    return "\n\n".join(blocks) + "\n"


def prose(text: str) -> str:
    """``text`` as it stands, in the middle of a line or in a cell: none of it is markup."""
    shown = _MARKUP.sub(r"\\\g<0>", clean(text))
    # A backslash keeps a character from being markup, but not a name from being mentioned.
    shown = _MENTION.sub(lambda found: f"{found[0]}<!-- -->", shown)
    return _LINK.sub(r"\\\g<0>", shown)


def code(text: str) -> str:
    """``text`` as a code span that may stand in a cell."""
    shown = clean(text).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    pad = " " if not shown.strip() or "`" in (shown[0], shown[-1]) else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool]) -> str:
    """A table; cells are Markdown already."""
    rules = ["---:" if is_right else "---" for is_right in right]
    lines = [titles, rules, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _title(header: Header, rows: Sequence[Row]) -> str:
    same = [values[0] for values in zip(*(row.array for row in rows), strict=True) if _one(values)]
    sizes = {row.size_bytes for row in rows}
    size = f" ({size_text(sizes.pop())})" if len(sizes) == 1 and sizes != {0} else ""
    what = " ".join(same) + size if same else command.short(header).removeprefix("dlprof ")
    return f"## dlprof: {prose(what)}"


def _one(values: Sequence[str]) -> bool:
    return len(set(values)) == 1


def _answers(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        yield "**The session has no results.**"
        return
    found = answers(rows)
    yield from (f"**{prose(answer)}**" for answer in found[:MOST_ANSWERS])
    if len(found) > MOST_ANSWERS:
        yield f"… and {len(found) - MOST_ANSWERS:,} more arrays in the session file"


def _findings(findings: Sequence[FindingRecord], rows: Sequence[Row]) -> Iterator[str]:
    yield "### Findings" if findings else "No findings."
    if findings:
        yield "\n".join(
            _finding(finding, pairs_text(finding, rows)) for finding in findings[:MOST_FINDINGS]
        )
    if len(findings) > MOST_FINDINGS:
        yield f"… and {len(findings) - MOST_FINDINGS:,} more in the session file"


def _finding(finding: FindingRecord, pairs: str) -> str:
    name = f"{finding.severity} {finding.rule} {finding.name}"
    where = f" {prose(pairs)}:" if pairs else ""
    line = f"- **{prose(name)}**:{where} {prose(finding.summary)}"
    return f"{line}  \n  {prose(finding.advice)}" if finding.advice else line


def _paths(rows: Sequence[Row]) -> Iterator[str]:
    order = {array: at for at, array in enumerate(dict.fromkeys(row.array for row in rows))}
    measured = sorted(
        (row for row in rows if row.ready is not None),
        key=lambda row: (order[row.array], row.cost_ns),
    )
    if not measured:
        return
    columns = [*varying(rows), *measures_of(rows)]
    yield "### Paths"
    yield table(
        ["path", *(column.title for column in columns)],
        (_line(row, columns) for row in measured[:MOST_ROWS]),
        [False, *(column.right for column in columns)],
    )
    if len(measured) > MOST_ROWS:
        yield f"… and {len(measured) - MOST_ROWS:,} more in the session file"
    yield from (prose(note) for note in footnotes(measured))


def _loops(rows: Sequence[Row]) -> Iterator[str]:
    """Times per iteration, where placements were asked for."""
    looped = [row for group in placement.loops(rows) for row in group if placement.is_timed(row)]
    if not looped:
        return
    yield "### In a loop"
    yield "\n".join(f"- {prose(text)}" for text in placement.answers(rows)[:MOST_ANSWERS])
    columns = [*varying(rows), *LOOP_COLUMNS]
    yield table(
        ["path", *(column.title for column in columns)],
        (_line(row, columns) for row in looped[:MOST_ROWS]),
        [False, *(column.right for column in columns)],
    )
    if len(looped) > MOST_ROWS:
        yield f"… and {len(looped) - MOST_ROWS:,} more in the session file"


def _line(row: Row, columns: Sequence[Column]) -> list[str]:
    cells = [prose(part) for part in (_cell(row, column) for column in columns)]
    return [code(row.code), *cells]


def _cell(row: Row, column: Column) -> str:
    text = " ".join(column.cell(row).splitlines())
    if column.title == "status" and row.changed:
        return f"{text}: {', '.join(row.changed)}"
    return text


def _lost(header: Header, rows: Sequence[Row]) -> Iterator[str]:
    """What was not measured and why; the same reason is told once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.ready is None:
            reasons.setdefault((row.status, first_line(row.why_not)), []).append(row.code)
    lines = [_reason(*key, codes) for key, codes in list(reasons.items())[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        lines.append(f"- … and {len(reasons) - MOST_REASONS:,} more reasons in the session file")
    lines += [f"- {prose(words)}" for words in header.left_out]
    if lines:
        yield "### Not measured"
        yield "\n".join(lines)


def _reason(status: str, reason: str, codes: Sequence[str]) -> str:
    names = list(dict.fromkeys(codes))
    what = ", ".join(code(name) for name in names[:MOST_CODES])
    more = f" and {len(names) - MOST_CODES:,} more" if len(names) > MOST_CODES else ""
    return f"- {what}{more}: {prose(status)}: {prose(reason)}"


def _about(header: Header) -> Iterator[str]:
    foreign = foreign_text(header)
    if foreign:
        yield f"**{prose(foreign)}**"
    words = [processes_text(header)]
    for name, environment in environments_of(header):
        python = f"Python {environment.get('python', '?')}"
        where = f"{name}: " if name else ""
        words.append(where + ", ".join([python, *packages(header, environment)]))
    cpu = header.environment.get("cpu")
    words += [str(word) for word in (cpu, header.device_choice) if word]
    if header.wall_s is not None:
        words.append(f"measured in {plain_time(header.wall_s * 1e9)}")
    if not header.complete:
        words.append("the run was stopped: this is what was measured until then")
    yield prose("; ".join(words)) + "."
