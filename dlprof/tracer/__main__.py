"""``python -m dlprof.tracer OPTIONS script.py …``: what ``dlprof trace`` starts."""

from __future__ import annotations

import json
import sys

from dlprof.tracer import program


def main() -> None:
    asked, *words = sys.argv[1:]
    options = json.loads(asked)
    program.start(
        options["folder"], tuple(options["include"]), options["events"], options["most_percent"]
    )
    program.run(words, options["as_module"])


main()
