from __future__ import annotations

from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.evals.base import Haystack, Response, Sample
from rlm_rag.evals.scorers.texts import (
    contained_any,
    contained_fraction,
    exact_match,
    mrcr,
    normalised,
    prefixed_ratio,
    rouge_l,
    ruler_all,
    stands_in,
    token_f1,
)

TEXTS = st.text(alphabet="ab cd.\n", max_size=40)


def sample(gold: object) -> Sample:
    return Sample(id="one", question="?", haystack=Haystack("key", lambda: "text"), gold=gold)


def test_ruler_counts_the_references_that_the_text_holds_whatever_their_case() -> None:
    assert contained_fraction("The words are ABACUS and stove.", ["abacus", "Stove", "x9"]) == 2 / 3
    # A number inside a longer one is found: it is a rule on texts, not on words.
    assert contained_fraction("12345678", ["2345"]) == 1.0
    assert contained_any("PARIS, France", ["Lyon", "paris"]) == 1.0
    assert contained_any("", ["Lyon"]) == 0.0


@pytest.mark.parametrize(
    ("answer", "text", "stands"),
    [
        ("The Old-One!", "it was an oldone.", True),
        ("cat", "concatenate", False),
        # Normalised, nothing is left of these.
        ("!=", "x!=y, by the operator", True),
        ("!=", "the operator is ==", False),
        (" A ", "The answer is A.", True),
        ("A", "Ada, or BA, or a", False),
        ("!=", "", False),
        ("", "", False),
        (" ", "anything", False),
    ],
)
def test_an_answer_stands_in_a_text_by_its_words_or_as_it_is_written(
    answer: str, text: str, stands: bool
) -> None:
    assert stands_in(answer, text) is stands


def test_ruler_scores_name_what_was_found() -> None:
    score = ruler_all(Response(text="AAAAA and ccccc"), sample(["aaaaa", "BBBBB", "CCCCC"]))
    assert (score.value, score.parsed, score.parse_ok) == (2 / 3, ["aaaaa", "CCCCC"], True)
    assert not ruler_all(Response(text=" \n"), sample(["a"])).parse_ok


def test_squad_normalises_case_punctuation_articles_and_blanks() -> None:
    assert normalised("The  cat, an Old-one; a (cat)!") == "cat oldone cat"
    assert exact_match("the Cat.", ["dog", "cat"]) == 1.0
    # No white space goes where punctuation was.
    assert exact_match("old-one", ["old one"]) == 0.0


@pytest.mark.parametrize(
    ("text", "references", "value"),
    [
        ("the cat sat", ["cat sat down"], 2 * (2 / 2) * (2 / 3) / (2 / 2 + 2 / 3)),
        ("a a b", ["b b"], 2 * (1 / 1) * (1 / 2) / (1 + 1 / 2)),
        ("x", ["y", "x"], 1.0),
        ("", [""], 0.0),
        ("the", ["the"], 0.0),
    ],
)
def test_token_f1_takes_the_best_reference(text: str, references: list[str], value: float) -> None:
    assert token_f1(text, references) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "reference", "value"),
    # As rouge_score 0.1.2 gives them.
    [
        ("the cat sat on the mat", "the cat is on the mat", 0.8333333333333334),
        ("a b c d", "d c b a", 0.25),
        ("police killed the gunman", "police ended the gunman", 0.75),
        ("Größe: 12-13", "große 12 13", 0.75),
        ("", "a", 0.0),
        ("привет", "привет", 0.0),
    ],
)
def test_rouge_l_is_that_of_its_program(text: str, reference: str, value: float) -> None:
    assert rouge_l(text, [reference]) == pytest.approx(value)


def test_mrcr_wants_the_prefix_first_and_then_compares() -> None:
    assert prefixed_ratio("k3Xa poem", "k3Xa poem", "k3X") == 1.0
    assert prefixed_ratio(" k3Xa poem", "k3Xa poem", "k3X") == 0.0
    assert prefixed_ratio("k3Xabcd", "k3Xbcde", "k3X") == pytest.approx(0.75)


@given(TEXTS, TEXTS)
def test_mrcr_is_the_ratio_of_difflib_in_its_order(text: str, answer: str) -> None:
    graded = mrcr(Response(text="zz" + text), sample({"answer": "zz" + answer, "prefix": "zz"}))
    assert graded.value == SequenceMatcher(None, text, answer).ratio()
    assert graded.parse_ok


@given(TEXTS, TEXTS)
def test_every_rule_stays_between_nothing_and_all(text: str, reference: str) -> None:
    for rule in (contained_fraction, contained_any, exact_match, token_f1, rouge_l):
        assert 0.0 <= rule(text, [reference]) <= 1.0
        assert rule(text, [reference]) == rule(text, [reference])
