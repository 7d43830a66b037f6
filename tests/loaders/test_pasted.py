"""What is pasted into a chat holds every document, whatever its text holds."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.corpus import Corpus
from rlm_rag.loaders.pasted import as_markdown, as_xml, tree_of

PLAIN = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"]), max_size=30)
TEXT = st.lists(PLAIN | st.sampled_from(["```", "````py", "]]>", "<a&b>", "\n", "]]"])).map("".join)
PATH = st.from_regex(r"[a-z\"&<]{1,5}(/[a-z.]{1,5}[a-z])?", fullmatch=True)


@given(documents=st.dictionaries(PATH, TEXT, min_size=1, max_size=4))
def test_xml_is_well_formed_and_holds_every_text(documents: dict[str, str]) -> None:
    with Corpus.from_documents(documents.items()) as corpus:
        root = ElementTree.fromstring("\n".join(as_xml(corpus, count_tokens=len)))
    found = {one.attrib["path"]: one.text or "" for one in root.iter("document")}
    assert found == documents
    total = sum(map(len, documents.values()))
    assert root.attrib["summary"].endswith(f"about {total:,} tokens")


@given(text=TEXT)
def test_no_fence_of_a_document_ends_its_own(text: str) -> None:
    with Corpus.from_documents([("a.py", text), ("b", "last")]) as corpus:
        shown = "\n".join(as_markdown(corpus, count_tokens=len))
    fence = re.search(r"## a\.py\n\n(`+)py\n", shown)
    assert fence is not None
    rest = shown[fence.end() :]
    body, _, after = rest.partition(f"{fence[1]}\n\n## b\n\n```\nlast\n```")
    assert after == "" and body.removesuffix("\n") == text.removesuffix("\n")
    assert re.search(f"(?m)^{fence[1]}", body) is None


def test_characters_that_no_chat_takes_are_replaced() -> None:
    with Corpus.from_documents([("a\nb", "x\x00\x1b\ud800y")]) as corpus:
        xml = "\n".join(as_xml(corpus, count_tokens=len))
        markdown = "\n".join(as_markdown(corpus, count_tokens=len))
    (document,) = ElementTree.fromstring(xml).iter("document")
    assert (document.attrib["path"], document.text) == ("a\nb", "x\ufffd\ufffd\ufffdy")
    assert "## a\ufffdb\n" in markdown and markdown.encode()


def test_a_tree_names_each_folder_once() -> None:
    paths = ["README", "src/a.py", "src/b/c.py", "src/b/d.py", "t/a.py"]
    assert tree_of(paths) == "README\nsrc/\n  a.py\n  b/\n    c.py\n    d.py\nt/\n  a.py"
