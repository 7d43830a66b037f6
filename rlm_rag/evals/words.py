"""Words, sentences and made-up words that generated haystacks are written with."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from random import Random


def _split(text: str, separator: str | None = None) -> tuple[str, ...]:
    return tuple(" ".join(word.split()) for word in text.split(separator))


ADJECTIVES = _split(
    """
    amber ancient bitter blue bold brave brisk broad calm clever cold crimson curious dark
    dear deep distant dusty eager early faint fierce fine fond gentle golden grand green
    hidden hollow humble idle jolly keen late light little lively lonely loud lucky mellow
    mild misty modest narrow noble odd pale patient plain polite proud quick quiet rapid
    rare restless rough round royal rustic sharp shy silent silver simple sleepy slow small
    smooth soft solemn sour steady still strange stubborn subtle sunny sweet swift tall tame
    tender tidy tiny vast velvet vivid warm weary white wild wise witty wooden young
    """
)
NOUNS = _split(
    """
    acorn anchor apple arrow badge bakery barn basket beacon bell bench bottle branch bridge
    brook bucket button cabin candle canyon carpet castle cedar chapel cherry clock cloud
    coast compass copper cottage cradle crown curtain desert dome door drum eagle engine
    farm feather fence ferry field flute forest fountain fox garden gate glacier glove goose
    grove hammer harbor hat hedge hill horn island ivory jacket jar kettle key kite ladder
    lake lamp lantern leaf ledger letter lion lock loom lute map market meadow mill mirror
    moon mountain museum needle nest oak oar ocean orchard otter owl paddle palace paper
    parrot path pebble pencil piano pillow pine planet plum pocket pond porch pottery
    prairie puzzle quarry quilt rabbit raft rail raven ribbon ring river road robin roof
    rope rose saddle sail scarf school shell shelf ship shore sparrow spoon spring stable
    stair star statue stone stove stream street sugar summit table tailor temple thread
    tiger tower trail train tulip tunnel valley vase village violin wagon walnut wheel
    willow window winter wolf yard
    """
)
_PEOPLE = _split(
    """
    the baker | a sailor | the old teacher | her neighbour | the gardener | a clerk | the
    miller | his aunt | the librarian | a traveller | the innkeeper | the clockmaker | a
    fisherman | the tailor | their guide | the postman
    """,
    "|",
)
_VERBS = _split(
    """
    carried | remembered | described | painted | admired | repaired | forgot | crossed |
    measured | followed | sold | noticed | visited | sketched | missed | polished | borrowed
    | drew | praised | watched
    """,
    "|",
)
_ENDS = _split(
    """
    before the rain came | on the way home | without a word | as every year | for the first
    time | in the early light | and thought no more of it | while the others slept | after a
    long walk | with great care | though nobody had asked | until the bells rang
    """,
    "|",
)
_SYLLABLES = tuple(f"{onset}{vowel}" for onset in "bdfgklmnprstvz" for vowel in "aeiou")
_WORD_SYLLABLES = (3, 4)


def sentences(rng: Random) -> Iterator[str]:
    """Yield sentences of plain prose for ever; none holds a digit or a capital but its first."""
    while True:
        text = (
            f"{rng.choice(_PEOPLE)} {rng.choice(_VERBS)} the {rng.choice(ADJECTIVES)} "
            f"{rng.choice(NOUNS)} near the {rng.choice(NOUNS)} {rng.choice(_ENDS)}."
        )
        yield text[0].upper() + text[1:]


def word_key(rng: Random) -> str:
    """Return `adjective-noun`: one of about 20,000."""
    return f"{rng.choice(ADJECTIVES)}-{rng.choice(NOUNS)}"


def number(rng: Random, digits: int = 7) -> str:
    """Return a number of so many digits; RULER's have seven."""
    return str(rng.randrange(10 ** (digits - 1), 10**digits))


def uuid4(rng: Random) -> str:
    """Return a random UUID."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def coined_words(rng: Random) -> Iterator[str]:
    """Yield different made-up words of six to eight letters: there are 24 million."""
    known: set[str] = set()
    while True:
        word = "".join(rng.choices(_SYLLABLES, k=rng.choice(_WORD_SYLLABLES)))
        if word not in known:
            known.add(word)
            yield word
