"""A result folder as a value: read, checked, and clustered again for any number of segments.

The folder is what `result/write.py` writes, at every participant. Everything here works on
published values, so it costs no privacy.

Segments have letters. Those of the published result are in the order in which the server sent them,
A the largest, and only those with users. Segments for another k keep the letter of the published
one that they share most users with, each letter once; what is new gets the next letters. So a
letter means about the same wherever it is shown.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.figures import users
from splitmeans.kmeans.distances import nearest_distance
from splitmeans.kmeans.weighted_kmeans import n_different
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.learned import about_bounds
from splitmeans.plan.settle import make_plan
from splitmeans.plan.stages import ReleasedValues
from splitmeans.result.contents import check_contents
from splitmeans.result.files import read_fields
from splitmeans.result.signed import SignedFacts, signer_text
from splitmeans.study import Study
from splitmeans.study.features import to_own_units
from splitmeans.synopsis.choose_k import ChooseK
from splitmeans.synopsis.clustering import COUNTS_ALONE, Clustering, about_found, nobody
from splitmeans.synopsis.segments import assign_nodes, by_size, letter
from splitmeans.synopsis.synopsis import Synopsis

if TYPE_CHECKING:
    from splitmeans.intervals.overlap import Overlap
    from splitmeans.intervals.sizes import SizeIntervals


@dataclass(frozen=True, kw_only=True, eq=False)
class Segmentation:
    """The segments for one k, in the order of their letters.

    Attributes:
        letters: What the segments are called.
        published: Whether these are the segments that the server published.
        scaled_centres: Centres in distance units, shape (k, D).
        centres: The same in the columns' own units.
        sizes: Estimated users of each, shape (k,).
        loss: Mean squared distance of the weighted nodes to the nearest centre.
        of_node: Which segment each node of the synopsis belongs to, shape (nodes,); -1 if there
            is none.
    """

    letters: tuple[str, ...]
    published: bool
    scaled_centres: FloatArray
    centres: FloatArray
    sizes: FloatArray
    loss: float
    of_node: IntArray

    @property
    def k(self) -> int:
        """How many segments."""
        return len(self.letters)

    @property
    def clustering(self) -> Clustering:
        """The segments as a clustering of the synopsis, in the same order."""
        return Clustering(
            centres=self.centres,
            scaled_centres=self.scaled_centres,
            sizes=self.sizes,
            loss=self.loss,
        )

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name} {users(size)}" for name, size in zip(self.letters, self.sizes, strict=True)
        )
        return (
            f"<Segmentation {self.k} segments{' as published' if self.published else ''}: {sizes}>"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """What a run published, with the agreed facts and the privacy statement.

    Attributes:
        folder: Where it was read from; None for a run of this process.
        study: What was agreed.
        synopsis: The weighted grid.
        published_centres: The published segments in distance units, shape (k, D).
        published_sizes: Their estimated users, shape (k,).
        released: What the stages of the run released: for each stage and each of its parties the
            values. The number of users, where the study has that stage.
        privacy: What the run released, what it cost, and who can learn what.
        statement: The same in plain words, with dates.
        facts: Texts that identify the run: names, hashes, dates, version.
        signed: Whether the server signed the result; the signature fits the study's key then. A
            study without keys is a simulation, of which nothing is signed.
        messages: The transcript: for each message its direction, slot and hash.
        signed_facts: What the server signs.
        signature: Its signature; empty for a simulation.
        presence: How many users are at which parties, with noise (`synopsis/presence_counts.py`);
            empty where that is not counted. `overlap` says what it tells.
        names: Names that people gave to published segments, by letter; nothing of them is signed.
    """

    folder: Path | None
    study: Study
    synopsis: Synopsis
    published_centres: FloatArray
    published_sizes: FloatArray
    released: ReleasedValues
    privacy: PrivacyFacts
    statement: str
    facts: Mapping[str, str]
    signed: bool
    messages: tuple[Mapping[str, str], ...]
    signed_facts: SignedFacts
    signature: bytes
    presence: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read a result folder and check it against the server's signature.

        Raises:
            ParameterError: If a file is missing, changed or not of this format, or what the server
                signed does not fit; the file is named.
        """
        result = cls(**read_fields(Path(folder)))
        check_contents(result)
        return result

    def __repr__(self) -> str:
        return (
            f"<Result study {self.study.name!r}, run {self.facts['run']!r}: "
            f"{len(self.published_centres)} segments of about {users(self.synopsis.total)} users, "
            f"{self.synopsis.n_columns} columns of {', '.join(self.study.party_names)}; "
            f"{self.origin}>"
        )

    def _repr_html_(self) -> str:
        from splitmeans.result.notebook import result_html

        return result_html(self)

    @property
    def origin(self) -> str:
        """When it was published, by whom, and whether that is proved."""
        signer = signer_text(self.study.server_key if self.signed else None)
        return f"published {self.facts['published_at']} by the server, {signer}"

    @property
    def where(self) -> str:
        """How errors name the result."""
        return str(self.folder) if self.folder else f"result of study {self.study.name!r}"

    def called(self, segments: Segmentation) -> tuple[str, ...]:
        """Return what people call segments: names of published ones, where given, or letters."""
        names = self.names_for(segments)
        return tuple(names.get(letter, letter) for letter in segments.letters)

    def names_for(self, segments: Segmentation) -> Mapping[str, str]:
        """Return the names that hold for segments, by letter."""
        return self.names if segments.published else {}

    @property
    def remark(self) -> str | None:
        """What to know of fewer segments than asked for and of doubtful bounds, or none."""
        return remark_on(self.study, found=len(self.published_sizes), released=self.released)

    @functools.cached_property
    def published(self) -> Segmentation:
        """The segments that the server published, largest first."""
        of_node, _ = assign_nodes(self.synopsis, self.published_centres)
        k = len(self.published_sizes)
        return self._segmentation(
            self.published_centres,
            of_node,
            self.published_sizes,
            order=np.arange(k),
            letters=[letter(rank) for rank in range(k)],
            published=True,
        )

    def segments(self, k: int | None = None) -> Segmentation:
        """Return the published segments, or those for another k, the same ones at every call.

        Args:
            k: How many; as many as were published if not given.
        """
        if k is None or k == len(self.published_centres):
            return self.published
        _validate.at_least(2, k=k)
        self.check_segments()
        if self.most_segments == 0:
            raise ParameterError(f"{self.where}: {nobody(self.study)}")
        if k > self.most_segments:
            raise ParameterError(
                f"k must be at most {self.most_segments}, the number of different places of the "
                f"published grid that have users, got {k}"
            )
        if k not in self._found:
            self._found[k] = self._segments(k)
        return self._found[k]

    def check_segments(self) -> None:
        """Refuse what needs segments where the study asked for counts alone."""
        if self.study.counts_only:
            raise ParameterError(f"{self.where}: {COUNTS_ALONE}")

    @functools.cached_property
    def _found(self) -> dict[int, Segmentation]:
        """Segments by k that were asked for already."""
        return {}

    def _segments(self, k: int) -> Segmentation:
        clustering = self.synopsis.cluster(k, random_state=k)
        of_node, sizes = assign_nodes(self.synopsis, clustering.scaled_centres)
        letters = self._letters_like_published(of_node, sizes)
        order = _order_of(letters)
        return self._segmentation(
            clustering.scaled_centres,
            of_node,
            sizes,
            order=order,
            letters=[letters[at] for at in order],
            published=False,
        )

    @functools.cached_property
    def most_segments(self) -> int:
        """How many segments the grid can have: its different places with users."""
        used = self.synopsis.weights > 0
        return n_different(self.synopsis.scaled_nodes[used])

    def compare_k(self, ks: Iterable[int]) -> ChooseK:
        """Measure the segments for each k, as `segments` returns them.

        Numbers beyond `most_segments` are left out. Where noise left users at a single place, that
        is the one segment there is.
        """
        self.check_segments()
        wanted = sorted(set(ks))
        most = max(self.most_segments, self.published.k)
        tried = [k for k in wanted if k <= most] or ([1] if most == 1 else wanted[:1])
        found = [self.synopsis.fit_of(self.segments(k).scaled_centres) for k in tried]
        losses, silhouettes = zip(*found, strict=True)
        return ChooseK(
            ks=tuple(int(k) for k in tried), losses=tuple(losses), silhouettes=tuple(silhouettes)
        )

    def size_intervals(self, k: int | None = None) -> "SizeIntervals | None":
        """Return 95 % intervals of the sizes of `segments(k)`, in the same order.

        Each is for the number of users who are nearer to the segment's centre than to any other.
        None where no honest interval can be given; the report says why.
        """
        from splitmeans.result.intervals import intervals_of

        return intervals_of(self, [self.segments(k)]).found[0]

    def why_no_intervals(self) -> str | None:
        """Say why figures that are asked of the synopsis have no intervals; None if they have."""
        from splitmeans.result.intervals import why_none

        return why_none(self) if self.synopsis.precision is None else None

    def overlap(self) -> "Overlap":
        """Return how many users are at which parties, with 95 % intervals; costs no privacy.

        Raises:
            ParameterError: If the run did not count it: user sets are equal, or the method does
                not tell.
        """
        from splitmeans.result.intervals import overlap_of_result

        return overlap_of_result(self)

    def _letters_like_published(self, of_node: IntArray, sizes: FloatArray) -> list[str]:
        # Imported on first use: it takes long to load.
        from scipy.optimize import linear_sum_assignment

        shared = np.zeros((len(sizes), self.published.k))
        np.add.at(shared, (of_node, self.published.of_node), self.synopsis.weights)
        rows, columns = linear_sum_assignment(-shared)
        letters = {
            int(row): self.published.letters[column]
            for row, column in zip(rows, columns, strict=True)
        }
        new = [int(segment) for segment in by_size(sizes) if int(segment) not in letters]
        letters |= {segment: letter(self.published.k + rank) for rank, segment in enumerate(new)}
        return [letters[segment] for segment in range(len(sizes))]

    def _segmentation(
        self,
        scaled_centres: FloatArray,
        of_node: IntArray,
        sizes: FloatArray,
        *,
        order: IntArray,
        letters: list[str],
        published: bool,
    ) -> Segmentation:
        features = tuple(feature for group in self.synopsis.features for feature in group)
        weights, total = self.synopsis.weights, self.synopsis.total
        cost = 0.0
        if total > 0 and len(scaled_centres):
            seen = self.synopsis.seen
            nodes = seen(self.synopsis.scaled_nodes)
            cost = float(weights @ nearest_distance(nodes, seen(scaled_centres)))
        return Segmentation(
            letters=tuple(letters),
            published=published,
            scaled_centres=scaled_centres[order],
            centres=to_own_units(features, scaled_centres[order]),
            sizes=sizes[order],
            loss=cost / total if total > 0 else 0.0,
            of_node=np.argsort(order)[of_node] if len(order) else of_node,
        )


def _order_of(letters: list[str]) -> IntArray:
    """Return the order of segments by their letters, A to Z before AA."""
    return np.array(sorted(range(len(letters)), key=lambda at: (len(letters[at]), letters[at])))


def remark_on(study: Study, *, found: int, released: ReleasedValues) -> str | None:
    """Return what to know of a result with so many segments, None if there is nothing."""
    learned = None if study.all_public else about_bounds(make_plan(study, released=released))
    return "; ".join(filter(None, (about_found(found, study), learned))) or None
