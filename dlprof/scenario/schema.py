"""The JSON Schema of scenario files, for editors.

``python -m dlprof.scenario.schema`` prints it.
"""

from __future__ import annotations

import json
from typing import Any

from dlprof.scenario.model import Scenario


def schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of a scenario; made from the model and from nothing else."""
    found = Scenario.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **found,
        "title": "dlprof scenario",
    }


def text() -> str:
    """What stands in docs/scenario.schema.json."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    print(text(), end="")  # noqa: T201 - the answer
