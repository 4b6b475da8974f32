"""Settings: what a conversion changes for the whole framework or process, and the rule on it."""

import warnings

import pytest
from builders import make_subject
from rule_builders import path, verdict

from dlprof.probes.base import Import, Protocol
from dlprof.probes.numpy import NumPy
from dlprof.rules import find
from dlprof.worker.instruments import settings


class WithSettings(NumPy):
    """NumPy, and a setting that nothing can read."""

    settings = {**NumPy.settings, "lost": "numpy.no_such_getter()"}  # noqa: RUF012


class Heard:
    def part(self, name, value):
        self.found = value


def looked(call):
    """What the instrument says of ``call`` as a conversion."""
    import_ = Import("any", (Protocol.DLPACK,), "call({x})")
    subject = make_subject(
        import_=import_, producer=WithSettings(), consumer=WithSettings(), call=call
    )
    heard = Heard()
    with settings.watched(subject, heard):
        subject.convert()
    return heard.found


def test_a_conversion_that_changes_nothing_keeps_the_settings():
    assert looked(lambda x: x) == {"verdict": "kept", "evidence": {}}


def test_a_setting_of_a_framework_is_told_before_and_after():
    numpy = pytest.importorskip("numpy")
    with numpy.errstate(all="warn"):
        found = looked(lambda _: numpy.seterr(over="raise"))
    assert found["verdict"] == "changed"
    (one,) = found["evidence"]["changed"]
    assert (one["name"], one["code"]) == ("handling of float errors of numpy", "numpy.geterr()")
    assert ("'over': 'warn'" in one["before"], "'over': 'raise'" in one["after"]) == (True, True)


def test_a_setting_of_the_process_counts_also_if_the_call_is_refused():
    def refuse(_):
        warnings.simplefilter("ignore", BufferError)
        raise BufferError

    heard = Heard()
    subject = make_subject(import_=Import("any", (Protocol.DLPACK,), "refuse({x})"), refuse=refuse)
    with warnings.catch_warnings(), pytest.raises(BufferError), settings.watched(subject, heard):
        subject.convert()
    (one,) = heard.found["evidence"]["changed"]
    assert one["name"] == "warning filters of the process"


CHANGED = {"name": "grad mode of torch", "code": "torch.is_grad_enabled()"}


def test_a_finding_names_the_setting_its_values_and_a_path_that_keeps_it():
    seen = verdict("changed", changed=[{**CHANGED, "before": "True", "after": "False"}])
    (found,) = find([path("sets(x)", settings=seen), path("keeps(x)", settings=verdict("kept"))])
    assert (found.rule, found.severity) == ("DLP025", "warning")
    assert "the grad mode of torch: True before, False after" in found.headline
    assert found.advice == "keeps(x) keeps it."


def test_a_path_of_which_nothing_read_the_settings_is_not_advised():
    seen = verdict("changed", changed=[{**CHANGED, "before": "True", "after": "False"}])
    (found,) = find([path("sets(x)", settings=seen), path("timed(x)")])
    assert found.advice == ""


def test_a_long_value_stays_in_the_evidence():
    seen = verdict("changed", changed=[{**CHANGED, "before": "a" * 99, "after": "b"}])
    (found,) = find([path("sets(x)", settings=seen)])
    assert "aaa" not in found.headline
    assert found.evidence["before"] == "a" * 99


def test_each_setting_is_a_finding_of_its_own():
    other = {**CHANGED, "name": "locale of the process", "before": "'C'", "after": "''"}
    seen = verdict("changed", changed=[{**CHANGED, "before": "True", "after": "False"}, other])
    found = find([path("sets(x)", settings=seen)])
    assert [one.evidence["setting"] for one in found] == [CHANGED["name"], other["name"]]
