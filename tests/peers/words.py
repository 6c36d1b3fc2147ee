"""The words by which the agents of the Python SDKs are told what to do, and what they hand out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

COUNT_MAX = 1_000_000
SLOW_SECONDS_MAX = 86_400.0
FILE = bytes(range(256))
DATA = {'nothing': None, 'list': [1, 2.5, 'three'], 'yes': True}

FLAGS = ('echo', 'input', 'auth', 'reject', 'fail', 'msg', 'late', 'data', 'file', 'raise')
COUNTS = ('chunks', 'burst')


@dataclass
class Words:
    """What the words at the beginning of a message ask for."""

    flags: frozenset[str]
    slow: float
    chunks: int
    burst: int

    def __contains__(self, flag: str) -> bool:
        return flag in self.flags


def read(texts: list[str]) -> Words:
    """Reads words up to the first that means nothing; texts that begin with none of them are echoed."""
    rest = deque(' '.join(texts).split())
    flags: set[str] = set()
    numbers = {'slow': 0.0, 'chunks': 0, 'burst': 0}
    known = 0
    while rest and 'echo' not in flags:
        word = rest.popleft()
        if word in FLAGS:
            flags.add(word)
        elif word in COUNTS and rest and rest[0].isdecimal():
            numbers[word] = min(int(rest.popleft()), COUNT_MAX)
        elif word == 'slow' and rest and (seconds := seconds_of(rest[0])) is not None:
            rest.popleft()
            numbers['slow'] = seconds
        else:
            break
        known += 1
    if known == 0:
        flags.add('echo')
    return Words(frozenset(flags), numbers['slow'], numbers['chunks'], numbers['burst'])


def seconds_of(word: str) -> float | None:
    """A number of seconds; none when the word is no number."""
    try:
        return min(float(word), SLOW_SECONDS_MAX) if word[:1].isdecimal() else None
    except ValueError:
        return None
