"""Other forms of an English word, by its ending."""

from __future__ import annotations

_LEAST_STEM = 3


def inflected(term: bytes) -> tuple[bytes, ...]:
    """Return forms that a lower-case word may also be found in, not all of them words.

    `files` gives `file`, `parsing` gives `pars` and `parse`, `retry` gives `retrys`. Nothing
    for what is not ASCII letters alone.
    """
    if not term.isascii() or not term.isalpha():
        return ()
    forms: list[bytes] = []
    if term.endswith(b"s") and not term.endswith(b"ss"):
        forms.append(term[:-1])
        if term.endswith(b"es"):
            forms.append(term[:-2])
    elif term.endswith(b"ed"):
        forms += (term[:-2], term[:-1])
    elif term.endswith(b"ing"):
        forms += (term[:-3], term[:-3] + b"e")
    if not term.endswith(b"s"):
        forms.append(term + b"s")
    return tuple(form for form in forms if len(form) > _LEAST_STEM)
