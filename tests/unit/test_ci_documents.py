"""What pages promise is of this version: inputs, keys and assertions."""

import re

import yaml
from pipelines import ACTION, JOB, ROOT

from dlprof.measuring.scenario import read

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
