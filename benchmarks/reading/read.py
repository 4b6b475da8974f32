"""Is a reader right about what the first screen of a session says?

    read.py sheets FOLDER [--columns 100] [--dlprof COMMAND]
    read.py score ANSWERS.toml ...

``sheets`` writes one file per recorded session: its first screen and three questions. A reader who
has seen nothing else answers them. ``score`` compares the answers with the truth in
``questions.toml``, which comes from the session files and from ``dlprof report --full``.
``--dlprof`` takes another edition, to compare the two.

``answers/`` holds what readers answered, one file per reader.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
NEEDED, ASKED = 29, 30
UNITS_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
NUMBER = r"\d+(?:\.\d+)?"
TIME = re.compile(
    rf"(?:about |~ ?|≈ ?)?({NUMBER})(?: ?± ?{NUMBER}| ?\| ?[\d.,]+)? ?(ns|us|µs|μs|ms|s)"
)
"""A time as reports print it: with its interval, or the first of several modes."""

HOW = "Answer with the expression, the time or the choice alone."


@dataclass(frozen=True)
class Question:
    """A question about a first screen, and how its answers are judged.

    An answer is right if it is ``answer``, fits the regular expression ``accept`` as a whole, or
    gives a time within ``within_ns``. ``wrong`` are answers that a hasty reader may give. Case,
    backquotes and spaces around an answer do not count.
    """

    text: str
    answer: str
    wrong: tuple[str, ...]
    choices: tuple[str, ...] = ()
    accept: str | None = None
    within_ns: tuple[float, float] | None = None

    def is_right(self, answer: str) -> bool:
        given = _plain(answer)
        if given == _plain(self.answer):
            return True
        if self.within_ns and (time := TIME.fullmatch(given)):
            low, high = self.within_ns
            return low <= float(time[1]) * UNITS_NS[time[2]] <= high
        return self.accept is not None and bool(re.fullmatch(self.accept, given, re.IGNORECASE))


@dataclass(frozen=True)
class Sheet:
    """The questions about one recorded session; ``number`` names it without telling what it is."""

    number: str
    session: str
    questions: tuple[Question, ...]

    def text(self) -> str:
        """The session file as JSON."""
        return gzip.decompress(
            (HERE / "sessions" / f"{self.session}.json.gz").read_bytes()
        ).decode()


def sheets() -> list[Sheet]:
    """All sheets, in the order of ``questions.toml``."""
    asked = tomllib.loads((HERE / "questions.toml").read_text(encoding="utf-8"))
    return [
        Sheet(f"{number:02}", name, tuple(map(_question, questions["question"])))
        for number, (name, questions) in enumerate(asked.items(), start=1)
    ]


def write_sheets(folder: Path, columns: int, dlprof: Sequence[str]) -> None:
    """Write ``NN.txt`` for each session: the first screen that ``dlprof`` prints, and questions."""
    folder.mkdir(parents=True, exist_ok=True)
    for sheet in sheets():
        page = [_first_screen(sheet, columns, dlprof).rstrip(), "", "-" * 40, HOW, ""]
        for number, question in enumerate(sheet.questions, start=1):
            choices = f" [{' | '.join(question.choices)}]" if question.choices else ""
            page.append(f"{number}. {question.text}{choices}")
        (folder / f"{sheet.number}.txt").write_text("\n".join(page) + "\n", encoding="utf-8")


def score(answers: Mapping[str, Sequence[str]]) -> list[tuple[Sheet, Question, str]]:
    """The wrong answers. A question without an answer counts as wrong."""
    wrong = []
    for sheet in sheets():
        given = list(answers.get(sheet.number, ()))
        given += [""] * (len(sheet.questions) - len(given))
        for question, answer in zip(sheet.questions, given, strict=False):
            if not question.is_right(answer):
                wrong.append((sheet, question, answer))
    return wrong


def _question(raw: Mapping[str, object]) -> Question:
    tuples = {key: tuple(value) for key, value in raw.items() if isinstance(value, list)}
    return Question(**{**raw, **tuples})  # type: ignore[arg-type]


def _plain(answer: str) -> str:
    return answer.replace("`", "").strip().rstrip(".").lower()


def _first_screen(sheet: Sheet, columns: int, dlprof: Sequence[str]) -> str:
    with TemporaryDirectory() as folder:
        file = Path(folder, f"{sheet.number}.json")
        file.write_text(sheet.text(), encoding="utf-8")
        told = subprocess.run(
            [*dlprof, "report", file.name],
            cwd=folder,
            env={**os.environ, "COLUMNS": str(columns)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return told.stdout.decode()


def _print_score(file: Path) -> bool:
    wrong = score(tomllib.loads(file.read_text(encoding="utf-8")))
    print(f"{file.stem}\n  sheet  session     right")
    for sheet in sheets():
        missed = sum(1 for of, _, _ in wrong if of == sheet)
        asked = len(sheet.questions)
        print(f"  {sheet.number}     {sheet.session:<10}  {asked - missed} of {asked}")
    print(f"  all                {ASKED - len(wrong)} of {ASKED}")
    for sheet, question, answer in wrong:
        print(f"  {sheet.number}: {question.text}\n      {answer!r} instead of {question.answer!r}")
    return ASKED - len(wrong) >= NEEDED


def main() -> int:
    """Exit code 1 if a reader has fewer than ``NEEDED`` right answers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("sheets", help="write first screens and questions")
    verb.add_argument("folder", type=Path)
    verb.add_argument("--columns", type=int, default=100)
    verb.add_argument("--dlprof", type=shlex.split, default=[sys.executable, "-m", "dlprof"])
    verb = verbs.add_parser("score", help="compare answers with the truth")
    verb.add_argument("answers", type=Path, nargs="+")
    given = parser.parse_args()
    if given.verb == "sheets":
        write_sheets(given.folder, given.columns, given.dlprof)
        return 0
    reached = [_print_score(file) for file in given.answers]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
