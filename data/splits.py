"""Splits: fixed by content, disjoint, and checked for problems that are almost the same."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from coda.data.examples import SPLITS, Example, Split

SHARES: dict[Split, float] = {"train": 0.4, "validation": 0.2, "test": 0.4}

NEAR = 0.8
"""Share of common word triples from which on two problems count as near-duplicates."""

_WORD = re.compile(r"\w+")
_BANDS, _ROWS = 20, 4


def split_of(text: str, shares: Mapping[Split, float] = SHARES) -> Split:
    """The split that a problem belongs to, fixed by its text alone, spacing and case aside.

    A problem keeps its split whatever else is in the file, and two copies of it are never in different ones.
    """
    folded = " ".join(text.casefold().split())
    place = int.from_bytes(hashlib.sha256(folded.encode()).digest()[:8], "big") / 2**64
    bound = 0.0
    for name, share in shares.items():
        bound += share
        if place < bound:
            return name
    return list(shares)[-1]


def near_duplicates(examples: Sequence[Example], threshold: float = NEAR) -> list[tuple[Example, Example, float]]:
    """Pairs of examples in different splits whose problems are almost the same, most similar first.

    Similarity is the Jaccard index of the sets of word triples; candidates come from min-hashing, so that the time is
    linear in the number of examples.
    """
    shingles = [_shingles(example) for example in examples]
    found = []
    for a, b in _candidates(examples, shingles):
        similarity = len(shingles[a] & shingles[b]) / len(shingles[a] | shingles[b])
        if similarity >= threshold:
            found.append((examples[a], examples[b], similarity))
    return sorted(found, key=lambda pair: (-pair[2], pair[0].id, pair[1].id))


def sizes(examples: Iterable[Example]) -> dict[Split, int]:
    """How many examples each split has."""
    counts = dict.fromkeys(SPLITS, 0)
    for example in examples:
        counts[example.split] += 1
    return counts


def _candidates(examples: Sequence[Example], shingles: list[frozenset[int]]) -> Iterator[tuple[int, int]]:
    """Pairs across splits that agree in one band of their min-hash signatures."""
    signatures = _signatures(shingles)
    seen: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        buckets: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for index, signature in enumerate(signatures):
            buckets[signature[band * _ROWS : (band + 1) * _ROWS]].append(index)
        for members in buckets.values():
            for a, b in itertools.combinations(members, 2):
                if examples[a].split != examples[b].split and (a, b) not in seen:
                    seen.add((a, b))
                    yield a, b


def _shingles(example: Example) -> frozenset[int]:
    text = " ".join((example.problem.text, *example.problem.choices)).casefold()
    words = _WORD.findall(text)
    triples = {" ".join(words[at : at + 3]) for at in range(max(1, len(words) - 2))}
    return frozenset(_hash(each) for each in triples)


def _signatures(shingles: list[frozenset[int]]) -> list[tuple[int, ...]]:
    """Min-hashes: the smallest of all hashes times an odd constant, modulo 2^64, for each of many constants."""
    import numpy as np

    factors = np.array([_hash(f"factor {index}") | 1 for index in range(_BANDS * _ROWS)], dtype=np.uint64)
    found = []
    for each in shingles:
        products = np.array(sorted(each), dtype=np.uint64)[:, None] * factors
        found.append(tuple((products.min(axis=0) >> np.uint64(16)).tolist()))
    return found


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")
