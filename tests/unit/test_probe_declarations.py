"""What a probe declares is checked when it is loaded, and refused with its place."""

from pathlib import Path

import pytest

from dlprof.worker import loading
from dlprof.worker.contract import FaultyProbe

FAKE = Path(__file__).parent.parent / "probe_files" / "fake.py"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("name = 5", "Bad.name must be a name, not 5"),
        ("name = 'x' * 10**6 + '\\n'", "Bad.name must be a name, not 'xxx"),
        ("aliases = 'bad'", "Bad.aliases must be a tuple, not 'bad'"),
        ("setup = b'import ctypes'", "Bad.setup must be text, not b'import ctypes'"),
        ("devices = ('gpu',)", "Bad.devices must be of ('cpu', 'cuda'), not ('gpu',)"),
        ("variables = ['A=1']", "Bad.variables must be a mapping, not ['A=1']"),
        ("variables = {'A': 'a\\0b'}", "Bad.variables['A'] cannot be an environment variable"),
        ("imports = (*IMPORTS, *IMPORTS)", "Bad.imports has two ways named 'view'"),
        ("exports = (Export(5, Protocol.NATIVE, '{x}'),)", "a name in Bad.exports must be a name, not 5"),
        ("exports = (Export('a', 'native!', '{x}'),)", "the protocol of Bad.exports 'a' must be a Protocol, not ('native!',)"),
        ("exports = (Export('a', Protocol.NATIVE, 'x'),)", "the code of Bad.exports 'a' must hold {x} (and may hold {dtype}, {shape}) and nothing else in braces: 'x'"),
        ("exports = (Export('a', Protocol.NATIVE, 'y = {x}'),)", "the code of Bad.exports 'a' is not a Python expression"),
        ("exports = (Export('a', Protocol.NATIVE, '{x}', promise='vieww'),)", "the promise of Bad.exports 'a' must be copy or view, not 'vieww'"),
        ("imports = (Import('a', (Protocol.DLPACK,), 'f({x})', layouts=('odd',)),)", "the layouts of Bad.imports 'a' must be of C, aligned"),
    ],
)  # fmt: skip
def test_a_declaration_that_cannot_be_used_is_refused_with_its_place(tmp_path, line, reason):
    name = "" if line.startswith("name") else "name = 'bad'\n    aliases = ()\n    "
    head = FAKE.read_text(encoding="utf-8").partition("class Missing")[0]
    probe = tmp_path / "probe.py"
    probe.write_text(f"{head}\nclass Bad(Fake):\n    {name}{line}\n", encoding="utf-8")
    with pytest.raises(FaultyProbe) as refused:
        loading.load(f"file:{probe}")
    assert str(refused.value).startswith(reason)
