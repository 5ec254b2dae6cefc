"""The random cases with which Tests/WireTests/Pusher checks signatures and encryption."""

from pathlib import Path

from pusher_cases import cases

CASES = Path(__file__).parents[1] / "Support" / "pusher_cases.jsonl"


def test_the_cases_are_those_of_the_official_library() -> None:
    assert CASES.read_text() == cases(50, 1)
