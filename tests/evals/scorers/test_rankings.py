from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.evals.base import Haystack, Response, Sample
from rlm_rag.evals.scorers.rankings import (
    RankingScorer,
    all_found,
    figures,
    listed_paths,
    ndcg,
    recall,
    reciprocal_rank,
)

GAINS = {"a": 2.0, "b": 1.0, "c": 1.0, "z": 0.0}
PATHS = st.lists(st.sampled_from("abcdefz"), unique=True)


def sample(gold: object) -> Sample:
    return Sample(id="one", question="?", haystack=Haystack("key", lambda: "text"), gold=gold)


@pytest.mark.parametrize(
    ("ranked", "value"),
    # As trec_eval gives them (pytrec-eval-terrier 0.5).
    [
        (["a", "b", "c"], 1.0),
        (["x", "b", "a"], 0.5209090851403014),
        (["z", "c", "x", "a"], 0.47662611018851303),
        ([], 0.0),
    ],
)
def test_ndcg_is_that_of_trec_eval(ranked: list[str], value: float) -> None:
    assert ndcg(ranked, GAINS, 10) == pytest.approx(value)


def test_recall_acc_and_mrr_count_what_is_relevant() -> None:
    relevant = {"a", "b", "c"}
    assert recall(["z", "c", "x", "a"], relevant, 10) == pytest.approx(2 / 3)
    assert recall(["z", "c", "x", "a"], relevant, 3) == pytest.approx(1 / 3)
    assert all_found(["c", "b", "a"], relevant, 3) == 1.0
    assert all_found(["c", "b", "a"], relevant, 2) == 0.0
    assert reciprocal_rank(["z", "x", "b"], relevant) == pytest.approx(1 / 3)
    assert reciprocal_rank(["z"] * 100 + ["a"], relevant) == 0.0


@given(PATHS)
def test_figures_grow_with_k_and_stay_between_nothing_and_all(ranked: list[str]) -> None:
    found = figures(ranked, GAINS)
    assert all(0.0 <= value <= 1.0 for value in found.values())
    assert found["hit@1"] <= found["hit@5"] <= found["hit@10"]
    assert found["acc@5"] <= found["acc@10"] <= found["hit@10"]
    assert found["hit@1"] == (found["mrr"] == 1.0)


def test_what_is_passed_over_holds_no_rank() -> None:
    ranked = ("b.py#cell=1", "c.py", "a.py")
    plain = RankingScorer("mrr")
    passing = RankingScorer("mrr", lambda path, asked: path == "b.py" and asked.id == "one")
    assert plain(Response(ranked=ranked), sample(["a.py"])).value == pytest.approx(1 / 3)
    assert passing(Response(ranked=ranked), sample(["a.py"])).value == 0.5
    assert passing(Response(ranked=ranked), sample(["b.py"])).value == 0.0


def test_a_path_ranked_twice_counts_once() -> None:
    score = RankingScorer("mrr")(Response(ranked=("x", "x", "a")), sample(["a"]))
    assert score.value == 0.5


def test_a_part_counts_as_its_document_unless_it_is_gold() -> None:
    ranked = ("b.pdf#page=9", "a.pdf#page=3", "a.pdf#page=1")
    assert RankingScorer("mrr")(Response(ranked=ranked), sample(["a.pdf"])).value == 0.5
    assert RankingScorer("mrr")(Response(ranked=ranked), sample(["a.pdf#page=1"])).value == 1 / 3


def test_an_answer_lists_paths_or_else_cites_them() -> None:
    text = "These files:\n1. `src/a.py:10-20` computes it\n- src/b.py:3\n* src/b.py\n"
    text += "```text\nsrc/c.py.\n```"
    assert listed_paths(text) == ("src/a.py", "src/b.py", "src/c.py")
    blanks = "1. `Annual Report.pdf:3`\n2. b c.md#page=2\nThese are all of them."
    assert listed_paths(blanks, has_blanks=True) == ("Annual Report.pdf", "b c.md#page=2")
    assert listed_paths(blanks) == ()
    mrr = RankingScorer("mrr")(Response(text=blanks), sample(["b c.md"]))
    assert mrr.value == 0.5
    scorer = RankingScorer("hit@1")
    assert scorer(Response(text=text), sample(["src/a.py"])).value == 1.0
    cited = Response(text="It is computed there, I think", cited=("src/d.py",))
    assert scorer(cited, sample(["src/d.py"])).value == 1.0
    nothing = scorer(Response(text="I do not know"), sample(["src/d.py"]))
    assert (nothing.value, nothing.parse_ok) == (0.0, False)
