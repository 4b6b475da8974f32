"""What a journal must say before a run is finished with it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from dlprof.errors import UsageError
from dlprof.runner import resume


@pytest.mark.parametrize("catalog", [5, {}, {"probes": [5]}, {"probes": {}, "interpreter": 3}])
def test_a_journal_whose_catalog_is_none_is_refused_in_words(catalog):
    header = {"catalog": catalog, "cases": []}
    journal = SimpleNamespace(path=Path("s.json.journal"), header=header)
    here = SimpleNamespace(python="python", simulated=0, interpreter={}, probes=())
    with pytest.raises(UsageError, match="does not say what it was measured with"):
        resume.check_same(journal, here, [])
