from __future__ import annotations

import pytest

from rlm_rag.evals.base import Haystack, Response, Sample
from rlm_rag.evals.scorers.choices import chosen_letter, claim, longbench, longbench_choice, verdict


def sample(gold: object) -> Sample:
    return Sample(id="one", question="?", haystack=Haystack("key", lambda: "text"), gold=gold)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("The correct answer is (B).", "B"),
        ("**The correct answer is (C)**", "C"),
        ("The correct answer is *D*", "D"),
        ("The correct answer is A, or rather: The correct answer is (B)", "B"),
        # Quirks that the rule has: a word's first letter is taken, lower case is not.
        ("The correct answer is Dubious", "D"),
        ("the correct answer is (B)", None),
        ("The correct answer is: (B)", None),
        ("The correct answer is (E)", None),
        ("B", None),
    ],
)
def test_longbench_reads_two_patterns_and_nothing_else(text: str, letter: str | None) -> None:
    assert longbench_choice(text) == letter
    score = longbench(Response(text=text), sample("B"))
    assert (score.value, score.parse_ok) == (float(letter == "B"), letter is not None)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("(B) because Anna said so", "B"),
        ("Not A. The answer is C", "C"),
        ("A or B", None),
        ("no idea", None),
    ],
)
def test_a_letter_stands_alone(text: str, letter: str | None) -> None:
    assert chosen_letter(text) == letter


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<explanation>It is false that...</explanation><answer>TRUE</answer>", True),
        ("<answer> false </answer>", False),
        ("FALSE", False),
        ("It is true, not false", None),
        ("<answer>perhaps</answer> true", None),
        ("", None),
    ],
)
def test_a_claim_is_true_false_or_undecided(text: str, said: bool | None) -> None:
    assert verdict(text) is said
    for gold in (True, False):
        score = claim(Response(text=text), sample(gold))
        assert (score.value, score.parse_ok) == (float(said is gold), said is not None)
