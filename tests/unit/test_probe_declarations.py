"""What a probe declares is checked when it is loaded, and refused with its place."""

from pathlib import Path

import pytest

from dlprof.worker import loading
from dlprof.worker.contract import FaultyProbe

FAKE = Path(__file__).parent.parent / "probe_files" / "fake.py"


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("name = 5", ("Bad.name", "5")),
        ("name = 'x' * 10**6 + '\\n'", ("Bad.name", "'xxx")),
        ("aliases = 'bad'", ("Bad.aliases", "'bad'")),
        ("setup = b'import ctypes'", ("Bad.setup", "b'import ctypes'")),
        ("devices = ('gpu',)", ("Bad.devices", "('cpu', 'cuda')", "('gpu',)")),
        ("variables = ['A=1']", ("Bad.variables", "['A=1']")),
        ("variables = {'A': 'a\\0b'}", ("Bad.variables['A']",)),
        ("imports = (*IMPORTS, *IMPORTS)", ("Bad.imports", "'view'")),
        ("exports = (Export(5, Protocol.NATIVE, '{x}'),)", ("name in Bad.exports", "5")),
        ("exports = (Export('a', 'native!', '{x}'),)", ("protocol of Bad.exports 'a'", "('native!',)")),
        ("exports = (Export('a', Protocol.NATIVE, 'x'),)", ("code of Bad.exports 'a'", "{x}", "{dtype}, {shape}", "'x'")),
        ("exports = (Export('a', Protocol.NATIVE, 'y = {x}'),)", ("code of Bad.exports 'a'", "Python")),
        ("exports = (Export('a', Protocol.NATIVE, '{x}', promise='vieww'),)", ("promise of Bad.exports 'a'", "copy or view", "'vieww'")),
        ("imports = (Import('a', (Protocol.DLPACK,), 'f({x})', layouts=('odd',)),)", ("layouts of Bad.imports 'a'", "C, aligned")),
    ],
)  # fmt: skip
def test_a_declaration_that_cannot_be_used_is_refused_with_its_place(tmp_path, line, facts):
    name = "" if line.startswith("name") else "name = 'bad'\n    aliases = ()\n    "
    head = FAKE.read_text(encoding="utf-8").partition("class Missing")[0]
    probe = tmp_path / "probe.py"
    probe.write_text(f"{head}\nclass Bad(Fake):\n    {name}{line}\n", encoding="utf-8")
    with pytest.raises(FaultyProbe) as refused:
        loading.load(f"file:{probe}")
    assert all(fact in str(refused.value) for fact in facts)
