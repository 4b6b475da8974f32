"""Sessions of many environments, compared in one table."""

import pytest
from builders import make_result
from many_builders import day, machine, result
from rule_builders import verdict

from dlprof.compare.environments import read_environments, version_key
from dlprof.runner.session_file import document


@pytest.fixture
def compared(tmp_path):
    def of(*found):
        for number, session in enumerate(found):
            (tmp_path / f"{number}.json").write_text(document(session))
        return read_environments([tmp_path], pytest.fail)

    return of


def torch(version, *results, number=0, **changes):
    environment = machine(packages={"torch": version, "numpy": "2.4.0"}, **changes)
    return day(number, *results, environment=environment)


def test_columns_are_environments_in_the_order_of_their_versions(compared):
    found = compared(*(torch(version, result()) for version in ("2.10.0", "2.9.1", "2.9.0")))
    assert [found.label(place) for place in range(3)] == [
        "torch 2.9.0",
        "torch 2.9.1",
        "torch 2.10.0",
    ]
    assert found.different == 0


def test_paths_that_differ_come_first(compared):
    same, copy = result("a"), result("b", ownership=verdict("copy"))
    found = compared(torch("2.9.0", same, result("b")), torch("2.10.0", same, copy))
    assert found.rows[0].case.code == copy.case.code
    assert found.different == 1
    assert [cell.word for cell in found.rows[0].cells.values()] == ["view", "copy"]


def test_times_differ_within_one_machine_only(compared):
    fast, slow = (make_result("f(x)", ns, (0.9 * ns, 1.1 * ns)) for ns in (1000.0, 2000.0))
    found = compared(torch("2.9.0", fast), torch("2.10.0", slow))
    assert found.different == 1
    found = compared(torch("2.9.0", fast), torch("2.10.0", slow, cpu="Another"))
    assert found.different == 0


def test_the_newest_session_of_an_environment_counts(compared):
    found = compared(
        torch("2.9.0", result(ownership=verdict("copy")), number=3), torch("2.9.0", result())
    )
    assert [cell.word for cell in found.rows[0].cells.values()] == ["copy"]


def test_versions_are_sorted():
    versions = ["10.0", "2.0.post1", "2.0", "0.4.10", "2.0rc1", "0.4.9"]
    in_order = ["0.4.9", "0.4.10", "2.0rc1", "2.0", "2.0.post1", "10.0"]
    assert sorted(versions, key=version_key) == in_order
