"""What the survey saw: which dtypes, layouts and shapes each path takes, and as what."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from dlprof.judge.alignment import WORDS
from dlprof.judge.case_view import CaseView
from dlprof.judge.safety import unchecked
from dlprof.probes.base import FLOAT8
from dlprof.report.document import (
    Answer,
    Band,
    Cell,
    Column,
    Lines,
    Section,
    Table,
    Tile,
    Tiles,
    Tone,
)
from dlprof.report.paths import BY, KINDS, rules_by_case
from dlprof.runner.session import CaseRecord, Session, pair_text
from dlprof.runner.survey import PLAIN, PLAINEST, UNALIGNED, Label
from dlprof.runner.survey import label_of as array_label
from dlprof.text.clean import counted, first_line

RESULTS: Mapping[str, Tone] = {
    "crash": "bad",
    "hangs": "bad",
    "wrong": "bad",
    "narrowed": "copy",
    "view": "view",
    "copy": "copy",
    "?": "",
    "refused": "dim",
}
"""Words for what became of an array, in the order of the table."""
LETTERS: Mapping[str, str] = {
    "view": "V",
    "copy": "C",
    "narrowed": "N",
    "refused": "R",
    "wrong": "W",
    "crash": "X",
    "hangs": "H",
}
"""In the picture, with which they need no color; all other words are unknown."""
UNKNOWN = "?"
MOST_ROWS = 22
MOST_DRAWN = 40
"""Rows of a picture, each with the paths that do the same."""
REST = "all but those below"
MOST_MISSING = 2
NEARLY = 0.9
"""The share of most arrays that a path without a warning must take to be named first."""
ONE_OFF = "sliced float32"
OFF = {
    "copy": "copies if x is 4 bytes off a 64-byte boundary",
    "refused": "refuses if x is 4 bytes off a 64-byte boundary",
}
MOST_KINDS = 2
"""So many kinds of float8 have names in a row of the table."""


GLOSSES = {
    "F": "column-major order",
    "strided": "every second element",
    "sliced": "one element into a larger array",
    "reversed": "a negative stride",
    "readonly": "not writable",
    "masked": "some elements masked",
    "swapped": "the other byte order",
    "unaligned": "one byte off a multiple of its item size",
    "structured": "a dtype with a named field",
    "datetime": "datetime64[ms]",
    "broadcast": "a stride of 0",
    "negated": "a lazy negative",
    "conjugated": "a lazy conjugate",
    "scalar": "no axes",
    "narrowed": "a smaller dtype, which loses large values",
}
"""Words of the table that a reader may not know."""


class Outcome(NamedTuple):
    """What became of an array: one word, and the rules that name it."""

    result: str
    rules: str


class Group(NamedTuple):
    """Paths of a pair that do the same with every array."""

    codes: tuple[str, ...]
    outcomes: Mapping[Outcome, list[Label]]


NO_GROUP = Group((), {})


def label_of(case: CaseRecord) -> Label:
    label = array_label(case)
    shape, *others = label.name.split(" ")
    name = " ".join((shape.replace("x", BY), *others))
    return label._replace(name=name) if label.axis == "shapes" else label


def surveyed(session: Session) -> dict[str, list[CaseView]]:
    """The cases of the survey by their pair, in words."""
    found: dict[str, list[CaseView]] = defaultdict(list)
    for index, result in enumerate(session.results):
        if result.case.survey:
            found[pair_text(result.case.pair)].append(CaseView(index, result))
    return dict(found)


def title(session: Session) -> tuple[str, str]:
    """The pairs that a session of a survey alone looked at, and its arrays; empty for another."""
    found = surveyed(session)
    arrays = {label_of(case.result.case) for cases in found.values() for case in cases}
    told = counted(len(arrays), "small array")
    if len(found) != 1:
        return (f"{len(found)} pairs", told) if found else ("", "")
    ((pair, cases),) = found.items()
    tried = {label_of(case.result.case) for case in cases if case.result.status != "skipped"}
    unmade = {*_unmade(cases)}
    return pair, f"{told}, {len(tried - unmade)} made" if unmade else told


def tables(session: Session, is_brief: bool = True) -> Iterator[Table]:
    """One for each pair: a row for each outcome of paths that do the same."""
    pairs, rules = surveyed(session), rules_by_case(session.findings)
    for pair, cases in pairs.items():
        unmade = _unmade(cases)
        known = _without(cases, unmade)
        groups = _groups(known, rules)
        rows = [[*_rows(group, is_brief)] for group in groups]
        shown = _shown(rows) if is_brief else len(rows)
        left = sum(len(group.codes) for group in groups[shown:])
        path = Column("path" if len(pairs) == 1 else f"path: {pair}")
        columns = (path, Column("result"), Column("arrays"), Column("problem"))
        more = f"… and {counted(left, 'more path')}" if left else ""
        yield Table(columns, tuple(chain(*rows[:shown])), more, is_summary=is_brief)


def answers(session: Session) -> Iterator[Answer]:
    """The path of a single pair that takes most arrays as a view, and the one as a copy, without
    an error there; one without a warning, too, if it takes nearly as many. None crashes or gives
    wrong values for another array.
    """
    pairs = surveyed(session)
    errors = {one.rule for one in session.findings if one.severity == "error"}
    warnings = {one.rule for one in session.findings if one.severity == "warning"}
    for cases in pairs.values() if len(pairs) == 1 else ():
        known = _without(cases, _unmade(cases))
        count = len({label_of(case.result.case) for case in known})
        fit = [
            group
            for group in _groups(known, rules_by_case(session.findings))
            if not any(RESULTS.get(one.result) == "bad" for one in group.outcomes)
        ]
        for kind in KINDS:
            taken = [(group, _taken(group, kind, errors)) for group in fit]
            unwarned = [one for one in taken if warnings.isdisjoint(_rules_of(one[1]))]
            (group, found), best = (
                max(some, key=lambda one: sum(one[1].values()), default=(NO_GROUP, {}))
                for some in (taken, unwarned)
            )
            if sum(best[1].values()) >= NEARLY * sum(found.values()):
                group, found = best
            if found:
                rules = _rules_of(found)
                told = [
                    f"{sum(found.values())} of {count}",
                    _off(group) if kind == "view" else "",
                    f"see {', '.join(rules)}" if rules else "",
                ]
                note = "; ".join(filter(None, told))
                yield Answer(f"most arrays as a {kind}", group.codes[0], "", note)


def _taken(group: Group, kind: str, errors: Collection[str]) -> dict[Outcome, int]:
    """How many arrays the paths take as a ``kind`` without a rule of ``errors``, by outcome."""
    return {
        one: len(labels)
        for one, labels in group.outcomes.items()
        if one.result == kind and not {*one.rules.split()} & {*errors}
    }


def _off(group: Group) -> str:
    """What becomes of an aligned array one element further, if the aligned one is a view."""
    names = {label.name: one.result for one, labels in group.outcomes.items() for label in labels}
    return OFF.get(names.get(ONE_OFF, ""), "") if names.get(PLAINEST.name) == "view" else ""


def _rules_of(outcomes: Iterable[Outcome]) -> list[str]:
    return list(dict.fromkeys(rule for one in outcomes for rule in one.rules.split()))


def _shown(rows: Sequence[Sequence[object]]) -> int:
    """How many groups the first screen has room for, each with all of its rows; one at least."""
    ends = accumulate(map(len, rows))
    return max(sum(end <= MOST_ROWS for end in ends), 1)


def pictures(session: Session) -> Iterator[Tiles]:
    """One for each pair: paths by dtype, and paths by layout, address and shape."""
    pairs, rules = surveyed(session), rules_by_case(session.findings)
    for pair, cases in pairs.items():
        known = _without(cases, _unmade(cases))
        labels = dict.fromkeys(label_of(case.result.case) for case in known)
        groups = _groups(known, rules)
        axes = {
            "by dtype": [label for label in labels if label.axis == PLAINEST.axis],
            "by layout, address and shape": [
                label for label in labels if label.axis != PLAINEST.axis
            ],
        }
        bands = tuple(_band(head, columns, groups) for head, columns in axes.items() if columns)
        if bands:
            yield Tiles(bands, _caption(pair if len(pairs) > 1 else "", bands, len(groups)))


def _band(heading: str, columns: Sequence[Label], groups: Sequence[Group]) -> Band:
    rows = []
    for group in groups[:MOST_DRAWN]:
        became = {label: one for one, labels in group.outcomes.items() for label in labels}
        tiles = (_tile(one, became[one]) if one in became else None for one in columns)
        rows.append((_name(group), tuple(tiles)))
    return Band(heading, tuple(label.name for label in columns), tuple(rows))


def _tile(label: Label, outcome: Outcome) -> Tile:
    title = f"{label.name}: {outcome.result}{f', {outcome.rules}' if outcome.rules else ''}"
    letter = LETTERS.get(outcome.result, UNKNOWN)
    return Tile(letter, RESULTS.get(outcome.result, ""), title, bool(outcome.rules))


def _caption(pair: str, bands: Iterable[Band], groups: int) -> str:
    drawn = [tile for band in bands for _, tiles in band.rows for tile in tiles if tile]
    letters = {tile.letter for tile in drawn}
    meanings = {**{letter: word for word, letter in LETTERS.items()}, UNKNOWN: "unknown"}
    told = ", ".join(f"{one} {word}" for one, word in meanings.items() if one in letters)
    framed = " A frame marks a problem." if any(tile.is_framed for tile in drawn) else ""
    left = f" The table has {groups - MOST_DRAWN:,} more rows." if groups > MOST_DRAWN else ""
    return f"{f'{pair}: ' if pair else ''}{told}.{framed}{left}"


def marks(session: Session, shown: Iterable[Table]) -> tuple[str, ...]:
    """Which arrays are not in the tables that are ``shown``, and what less known words mean."""
    pairs = surveyed(session).values()
    cases = [case for pair in pairs for case in pair]
    unmade = dict.fromkeys(
        f"{pair[0].pair[0]} {_unmade_text(pair, missing)}."
        for pair in pairs
        if (missing := _unmade(pair))
    )
    narrowed = dict.fromkeys(
        case.result.case.narrows_why or "" for case in cases if _word(case) == "narrowed"
    )
    texts = [cell.text for table in shown for row in table.rows for cell in row if not cell.code]
    # An axis has the name of a flag.
    told = (text.replace(UNALIGNED, "") for text in (*texts, *unmade))
    words = {word for text in told for word in re.findall(r"[\w-]+", text)}
    meanings = [f"{name}: {gloss}" for name, gloss in GLOSSES.items() if name in words]
    glossed = [f"{'; '.join(meanings)}."] if meanings else []
    beside = map(_beside, pairs)
    return tuple(filter(None, (*unmade, *narrowed, *glossed, *beside)))


def _beside(cases: Sequence[CaseView]) -> str:
    """How many conversions did something else in a process after others; empty for none."""
    count = sum(case.result.in_company is not None for case in cases)
    if not count:
        return ""
    return f"{count:,} of {len(cases):,} conversions failed or differed only after others."


def section(session: Session, drawn: Iterable[Tiles] = ()) -> Iterator[Section]:
    """The pictures that are ``drawn``, all rows, and why arrays were refused."""
    found = surveyed(session)
    if not found:
        return
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    for case in (case for cases in found.values() for case in cases):
        made = case.result.refused_at != "create"  # what dlprof cannot make is no refusal
        if case.result.status != "ok" and case.result.reason and made:
            reasons[first_line(case.result.reason)][case.code] = None
    lines = [
        f"{next(iter(codes))}{f' and {len(codes) - 1} more' * (len(codes) > 1)}: {reason}"
        for reason, codes in reasons.items()
    ]
    rules = rules_by_case(session.findings)
    for cases in found.values():
        if not _is_any_made(cases):
            continue  # no path was asked
        for first, *others in (group.codes for group in _groups(cases, rules)):
            lines += [f"The same as {first}: {', '.join(others)}"] if others else []
    lines += dict.fromkeys(line for cases in found.values() for line in _made(cases))
    whole = tuple(tables(session, is_brief=False))
    meanings = Lines(marks(session, whole))
    notes = [one for one in (meanings, Lines(tuple(lines))) if one.lines]
    yield Section("Survey", (*drawn, *whole, *notes))


def summary(session: Session) -> str:
    """One line for the first screen of a run; empty without a survey."""
    cases = [case for pair in surveyed(session).values() for case in pair]
    if not cases:
        return ""
    indices = {case.index for case in cases}
    timed = {one.rule for one in session.findings if not set(one.results) <= indices}
    rules = {one.rule for one in session.findings} - timed
    left = sum(
        case.result.status == "skipped" or case.result.refused_at == "import" for case in cases
    )
    if left == len(cases):
        return "The survey of other arrays was left out."
    if not _is_any_made(cases):
        return f"No small array could be made: {'; '.join(_reasons(cases))}."
    arrays = len({label_of(case.result.case) for case in cases})
    tried = f"Also tried: {arrays} small arrays (dtypes, layouts, shapes)."
    shown = f"Only there: {', '.join(sorted(rules))}." if rules else "No other problem was seen."
    missing = f" {left:,} of {len(cases):,} conversions were left out." if left else ""
    blind = sum(case.result.status == "ok" and bool(unchecked(case)) for case in cases)
    of = f"{blind:,} of {len(cases):,} conversions"
    unread = f" {of} gave values that could not be read." if blind else ""
    beside = _beside(cases)
    return f"{tried} {shown}{missing}{unread}{f' {beside}' if beside else ''}"


def _unmade(cases: Sequence[CaseView]) -> list[Label]:
    """The arrays that the producer cannot make."""
    unmade = (case.result.case for case in cases if case.result.refused_at == "create")
    return list(dict.fromkeys(map(label_of, unmade)))


def _made(cases: Sequence[CaseView]) -> Iterator[str]:
    """The names of all arrays, for which a row has a word such as ``all dtypes``."""
    unmade = _unmade(cases)
    labels = dict.fromkeys(label_of(case.result.case) for case in cases)
    made = [label for label in labels if label not in unmade]
    for axis in dict.fromkeys(label.axis for label in made):
        names = (label.name for label in made if label.axis == axis)
        yield f"All {axis} of {cases[0].pair[0]}: {', '.join(names)}"


def _is_any_made(cases: Iterable[CaseView]) -> bool:
    return any(case.result.refused_at != "create" for case in cases)


def _unmade_text(cases: Sequence[CaseView], missing: Collection[Label]) -> str:
    if not _is_any_made(cases):
        return f"makes no array: {'; '.join(_reasons(cases))}"
    made = {label_of(case.result.case) for case in cases} - {*missing}
    if any(label.axis == PLAINEST.axis for label in made):
        return f"cannot make {arrays_text(_but_implied(missing), ())}"
    plain = (
        f"{PLAIN.get(cases[0].result.case.device, 'plain')} arrays, so that no dtype was surveyed"
    )
    others = [label for label in missing if label.axis != PLAINEST.axis]
    return f"cannot make {'; '.join(filter(None, (arrays_text(others, ()), plain)))}"


def _reasons(cases: Iterable[CaseView]) -> list[str]:
    """Why they were not measured, the commonest first."""
    told = Counter(first_line(case.result.reason or "").rstrip(".") for case in cases)
    return [reason for reason, _ in told.most_common(2)]


def _without(cases: Sequence[CaseView], unmade: Sequence[Label]) -> list[CaseView]:
    return [case for case in cases if label_of(case.result.case) not in unmade]


def _groups(cases: Sequence[CaseView], rules: Mapping[int, tuple[str, ...]]) -> list[Group]:
    paths: dict[tuple[str, str], dict[Label, Outcome]] = defaultdict(dict)
    codes: dict[tuple[str, str], str] = {}
    for case in cases:
        record = case.result.case
        path, label = (record.export, record.import_), label_of(record)
        outcome = Outcome(_word(case), " ".join(rules.get(case.index, ())))
        if 0 in record.shape and case.is_right:
            # Without elements there is no memory to share or to copy.
            plainest = paths[path].get(PLAINEST, outcome)
            if plainest.result in WORDS:
                outcome = outcome._replace(result=plainest.result)
        paths[path][label] = outcome
        if label == PLAINEST:
            codes[path] = case.code
        codes.setdefault(path, case.code)
    alike: dict[tuple[tuple[Label, Outcome], ...], list[str]] = defaultdict(list)
    for path, outcomes in paths.items():
        alike[tuple(outcomes.items())].append(codes[path])
    groups = []
    for outcomes_alike, names in alike.items():
        by_outcome: dict[Outcome, list[Label]] = defaultdict(list)
        for label, outcome in outcomes_alike:
            by_outcome[outcome].append(label)
        groups.append(Group(tuple(sorted(names, key=len)), by_outcome))
    return sorted(groups, key=lambda group: -len(group.codes))


def _word(case: CaseView) -> str:
    word, record = case.outcome, case.result.case
    narrowed = record.narrows_to and case.changed.dtype == (record.dtype, record.narrows_to)
    return "narrowed" if word == "wrong" and narrowed else word


def _name(group: Group) -> Cell:
    first, *others = group.codes
    return Cell(first, code=True, note=f"+{len(others)} alike" if others else "")


def _rows(group: Group, is_brief: bool) -> Iterator[tuple[Cell, ...]]:
    """The outcome of most arrays first, then the others, worst first; one word's rows together."""
    every = [label for labels in group.outcomes.values() for label in labels]
    words = list(RESULTS)
    usual = max(group.outcomes, key=lambda one: len(group.outcomes[one]))

    def rank(outcome: Outcome) -> tuple[bool, int, bool]:
        at = words.index(outcome.result) if outcome.result in words else len(words)
        return outcome.result != usual.result, at, outcome != usual

    path = _name(group)
    for outcome in sorted(group.outcomes, key=rank):
        is_rest = is_brief and outcome == usual and len(group.outcomes) > 1
        labels = group.outcomes[outcome]
        named = [
            one
            for other in group.outcomes
            if other not in (outcome, usual)
            for one in group.outcomes[other]
        ]
        shown = _but_implied(labels, named) if is_brief else labels
        known = [one for one in every if one in shown or one not in labels]
        text = arrays_text(shown, known)
        if is_rest:  # what a row below seems to name is named here
            also = [one for one in labels if any(other in named for other in _alone(one))]
            text = "; ".join(filter(None, (f"{_dtypes(labels)}{REST}", arrays_text(also, ()))))
        if is_brief and len(group.outcomes) == 1:
            text = "all"
        tone = RESULTS.get(outcome.result, "")
        yield path, Cell(outcome.result, tone), Cell(text), Cell(outcome.rules)
        path = Cell("")


def _but_implied(labels: Collection[Label], named: Collection[Label] = ()) -> list[Label]:
    """Without those of which the dtype alone, or the layout or shape alone, is among them, and the
    other of both has no name in another row.
    """

    def is_implied(one: Label) -> bool:
        known = any(other in labels for other in _alone(one))
        return known and not any(other in named for other in _alone(one))

    return [one for one in labels if not is_implied(one)]


def _alone(label: Label) -> tuple[Label, ...]:
    """The arrays that have the dtype alone, and the layout or shape alone, of one that has both."""
    if not label.dtype:
        return ()
    whole = label._replace(name=label.name.removesuffix(label.dtype).strip(), dtype="")
    return PLAINEST._replace(name=label.dtype), whole


def _dtypes(labels: Iterable[Label]) -> str:
    """``float32 and 15 more dtypes; ``; empty if there are none."""
    names = [label.name for label in labels if label.axis == PLAINEST.axis]
    if not names:
        return ""
    first = PLAINEST.name if PLAINEST.name in names else names[0]
    more = f" and {counted(len(names) - 1, 'more dtype')}" if len(names) > 1 else ""
    return f"{first}{more}; "


def _folded(names: Iterable[str]) -> list[str]:
    """Names of dtypes; most kinds of float8 are counted, as they seldom differ."""
    found = list(names)
    kinds = [name for name in found if name in FLOAT8]
    if len(kinds) <= MOST_KINDS:
        return found
    told = "float8 kinds" if len(kinds) == len(FLOAT8) else f"{len(kinds)} float8 kinds"
    return [told if name == kinds[0] else name for name in found if name not in kinds[1:]]


def arrays_text(found: Iterable[Label], every: Iterable[Label]) -> str:
    """``all dtypes but bool; F, strided; all shapes``: of every array, the ones that are found."""
    texts = []
    chosen, known = list(found), list(every)
    for axis in dict.fromkeys(label.axis for label in chosen):
        names = _folded(label.name for label in chosen if label.axis == axis)
        missing = _folded(
            label.name for label in known if label.axis == axis and label not in chosen
        )
        if known and not missing and len(names) > 1:
            texts.append(f"all {axis}")
        elif known and len(missing) <= MOST_MISSING < len(names) - 1:
            texts.append(f"all {axis} but {' and '.join(missing)}")
        else:
            texts.append(", ".join(names))
    return "; ".join(texts)
