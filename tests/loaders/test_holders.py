from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.loaders.holders import holders

paths = st.lists(st.sampled_from(["a", "a.b", "b", "-"]), min_size=1, max_size=4).map("/".join)


@given(st.lists(paths), paths, st.sampled_from(["", "/"]))
def test_the_outermost_of_all_folders_that_hold_a_path_is_told(
    folders: list[str], path: str, final: str
) -> None:
    path += final
    holding = [folder for folder in folders if path.startswith(f"{folder}/")]
    assert holders(folders)(path) == min(holding, key=len, default=None)
