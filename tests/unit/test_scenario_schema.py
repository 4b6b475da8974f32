"""The JSON Schema in the documents is that of the model, and fits the ready scenarios."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pytest

from dlprof.scenario.schema import schema, text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]


def test_the_schema_in_the_documents_is_up_to_date():
    assert (ROOT / "docs" / "scenario.schema.json").read_text(encoding="utf-8") == text()


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize(
    "path", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda path: path.name
)
def test_every_ready_scenario_fits_the_schema(path):
    scenario = tomllib.loads(path.read_text(encoding="utf-8"))
    assert jsonschema.Draft202012Validator(json.loads(text())).is_valid(scenario)


@pytest.mark.parametrize(
    "change",
    [
        {"pairs": []},
        {"rounds": "3"},
        {"shape": ["4"]},
        {"devices": ["gpu"]},
        {"thresholds": {"slow": 3}},
        {"environment": [{"name": "a"}]},
    ],
    ids=str,
)
def test_the_schema_refuses_what_dlprof_refuses(change):
    content = {"title": "t", "question": "q", "pairs": ["a->b"], **change}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema())
