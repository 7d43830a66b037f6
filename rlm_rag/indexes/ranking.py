"""How much each thing counts that a window is ranked by.

The sizes were chosen on issues, docstrings and commits of some projects and checked on those of
others (docs/decisions.md); with `PLAIN` the extras are off, and the score is textbook BM25.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weights:
    """What is added to BM25.

    - `path`, `definition`, `scope`: occurrences that a window is given of the words of its
      path, of the names it defines, of the names that enclose it;
    - `whole_file`: the share of the whole file's score;
    - `stop_word`, `title`, `inflected`: factors of a query's common words, of the first of its
      lines, of another form of its words (`file` where it says `files`);
    - `test_path`, `record_path`, `aside`, `report_prose`: factors of files of tests, of records of
      changes, of generated, minified, vendored and lock files, and, where the query is a report,
      of prose and examples, as far as a window lacks what is asked for;
    - `report_code`, `report_names`, `report_second`: where the query is a report, the factor of
      words that it has in quoted code alone, the factor of what is gained by names, and the
      share of the file's second best window;
    - `defined_identifier`, `named_file`, `file_stem`: what a window gains where it defines what
      the query names, where the query names its file, and where the name of its file holds a
      word of the query: the first and the last by the word's inverse frequency;
    - `near`: the share by which a window's score rises where one line holds all of the query's
      words, by the square of what it holds, among the best windows;
    - `near_name`: the same where the name of a definition holds them, by what it holds.
    """

    k1: float = 2.0
    b: float = 0.75
    path: int = 2
    definition: int = 4
    scope: int = 1
    whole_file: float = 0.4
    stop_word: float = 0.3
    title: float = 1.5
    inflected: float = 0.3
    test_path: float = 0.7
    record_path: float = 0.7
    aside: float = 0.5
    report_prose: float = 0.8
    report_code: float = 0.3
    report_names: float = 1.6
    report_second: float = 0.3
    defined_identifier: float = 3.0
    named_file: float = 12.0
    file_stem: float = 1.5
    near: float = 0.45
    near_name: float = 0.45


PLAIN = Weights(
    path=0,
    definition=0,
    scope=0,
    whole_file=0.0,
    stop_word=1.0,
    title=1.0,
    inflected=0.0,
    test_path=1.0,
    record_path=1.0,
    aside=1.0,
    report_prose=1.0,
    report_code=1.0,
    report_names=1.0,
    report_second=0.0,
    defined_identifier=0.0,
    named_file=0.0,
    file_stem=0.0,
    near=0.0,
    near_name=0.0,
)
