"""The examples on the pages of the rules run with the frameworks of today."""

import re
import subprocess
import sys

import pytest

from dlprof.judge import RULES, page

pytestmark = pytest.mark.nightly

NEEDS_CUDA, MAY_ABORT = "import cupy|needs CUDA", "some versions abort"


def example(rule):
    found = re.search(r"```python\n(.*?)```", page(rule), re.DOTALL)
    assert found, f"{rule} has no example"
    return found[1]


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_the_example_of_a_rule_runs(rule):
    text = example(rule)
    if re.search(NEEDS_CUDA, text):
        pytest.skip("needs CUDA")
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0 or MAY_ABORT in text, done.stderr
