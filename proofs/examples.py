"""Messages of the encoder and counts of the server, for Coq to compare with its definitions.

The other end of the property test in `tests/proofs`, which compares many more with a transcript.
"""

import numpy as np

from proofs.coq_text import comment
from proofs.instance import Group, Instance, random_instance
from proofs.model import Message, Record, Release

_SEED, _EXAMPLES = 23, 8

_HEADER = """From Coq Require Import List NArith Arith.
From Splitmeans Require Import Definitions.
Import ListNotations.

(** A release whose labels are written down: for every party, its label in every cell. *)
Definition of_labels (labels : list (list (option nat))) : release :=
  {| cells := length (hd [] labels); parties := seq 0 (length labels);
     label := fun p c => nth c (nth p labels []) None;
     others := []; user := None |}.
(** How many records every cell has: what the server must find, H + D. *)
Definition counted (r : release) (records : list record) : list nat :=
  map (count_occ Nat.eq_dec (map snd records)) (seq 0 (cells r)).
"""


def examples_file() -> str:
    """Return the Coq file of examples: one of each kind of table, from random instances."""
    rng = np.random.default_rng(_SEED)
    heading = [
        "Written by proofs/generate.py; not to be edited.",
        "What the encoder sent and the server counted is what the definitions say.",
    ]
    parts = [comment(heading), _HEADER]
    for number in range(1, _EXAMPLES + 1):
        instance = random_instance(rng)
        parts.append(_example(number, instance, instance.groups[-1]))
    return "\n".join(parts)


def _example(number: int, instance: Instance, group: Group) -> str:
    sent = instance.sent()
    release, records = instance.release_of(group), instance.records_of(group)
    return f"""(** {len(group)} parties, {release.cells} cells, {len(records)} records. *)
Definition release_{number} : release := {_release(release)}.
Definition records_{number} : list record := {_records(records)}.
Example messages_{number} : messages release_{number} records_{number} = {
        _messages(instance.sent_to(group, sent))
    }.
Proof. vm_compute; reflexivity. Qed.
Example counts_{number} : counted release_{number} records_{number} = {
        _naturals(instance.server_counts(group, sent))
    }.
Proof. vm_compute; reflexivity. Qed.
"""


def _release(release: Release) -> str:
    rows = [
        "[" + "; ".join("None" if label is None else f"Some {label}" for label in row) + "]"
        for row in release.labels
    ]
    return f"of_labels [{'; '.join(rows)}]"


def _records(records: list[Record]) -> str:
    return "[\n  " + ";\n  ".join(f"({tag}%N, {cell})" for tag, cell in records) + "]"


def _messages(messages: list[Message]) -> str:
    texts = []
    for tags, labels in messages:
        listed = "; ".join(f"{tag}%N" for tag in tags)
        texts.append(f"([{listed}], {_naturals(labels)})")
    return "[\n  " + ";\n  ".join(texts) + "]"


def _naturals(numbers: list[int]) -> str:
    return "[" + "; ".join(map(str, numbers)) + "]"
