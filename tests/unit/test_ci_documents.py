"""What pages promise is of this version: inputs, keys and assertions."""

import re

import pytest
import yaml
from pipelines import ACTION, JOB, ROOT
from pydantic import BaseModel

from dlprof.measuring.scenario import read
from dlprof.runner import trace_file

CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")


class Loader(yaml.SafeLoader):
    """YAML with GitLab's ``!reference``."""


Loader.add_constructor("!reference", lambda loader, node: tuple(loader.construct_sequence(node)))


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def steps(thing):
    """Every step of a workflow, wherever it stands."""
    if isinstance(thing, dict):
        yield from [thing] if "uses" in thing else []
        thing = list(thing.values())
    if isinstance(thing, list):
        for part in thing:
            yield from steps(part)


EXAMPLES = [yaml.load(block, Loader) for block in blocks(CI, "yaml")]


def test_the_workflows_use_inputs_that_there_are():
    used = [step["with"] for step in steps(EXAMPLES) if "dlprof" in step["uses"]]
    assert used
    for inputs in used:
        assert set(inputs) <= set(ACTION["inputs"])
        assert ("scenario" in inputs) != ("base" in inputs)


def test_the_job_uses_variables_that_there_are():
    (job,) = [example["conversions"] for example in EXAMPLES if "conversions" in example]
    assert job["extends"] == ".dlprof-gate"
    assert set(job["variables"]) <= set(JOB["variables"])
    assert job["before_script"][-1] == (".dlprof-gate", "before_script")


def test_the_scenario_can_be_read(tmp_path):
    (block,) = blocks(CI, "toml")
    file = tmp_path / "conversions.toml"
    file.write_text(block, encoding="utf-8")
    assert read(file).problem.expect == ["no error"]


@pytest.mark.parametrize(
    ("page", "modules"),
    [
        ("trace.md", (trace_file,)),
    ],
)
def test_every_key_of_a_session_and_a_trace_is_documented(page, modules):
    text = re.sub(r"```.*?```", "", (ROOT / "docs" / page).read_text("utf-8"), flags=re.DOTALL)
    documented = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    for module in modules:
        for record in vars(module).values():
            if isinstance(record, type) and issubclass(record, BaseModel):
                keys = {field.alias or name for name, field in record.model_fields.items()}
                assert keys <= documented, record
