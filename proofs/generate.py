"""Writes what Coq checks about the code: tables, whole-numbered certificates, real messages.

    python -m proofs.generate            write proofs/generated
    python -m proofs.generate --check    compare instead: exit 1 if a file differs

Tables and laws come from the library, for the studies in `proofs/studies`; so a change of a law, of
a default or of the encoder shows as a difference until the files are written, and proved, again.
"""

import argparse
import math
import sys
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from proofs.coq_text import block_text, comment, integer_list, rational
from proofs.examples import examples_file
from proofs.figure import SCALE, Block, block_of, exp_sum, figure
from splitmeans import Study
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.pld import delta_for, epsilon_for, flatten

HERE = Path(__file__).parent
GENERATED = HERE / "generated"
STUDIES = {
    "TwoParties": "two-parties.toml",
    "FourParties": "four-parties.toml",
}

# Terms of the series of e^epsilon: the rest is below 1e-12 for an epsilon below 1.
TERMS = 12
# Digits of epsilon as the statement prints it, and of delta.
_EPSILON_STEP = 10**4
_DELTA_DIGITS = 7

_IMPORTS = """From Coq Require Import QArith List ZArith NArith.
From Splitmeans Require Import Definitions Checker CheckerSound Theorems.
Import ListNotations.
Open Scope Q_scope.
"""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What is checked about a study's messages about memberships, all parties together.

    Attributes:
        plan: The plan of the study.
        laws: Its decoy laws with the number of tables under each.
        blocks: The same as the checker takes them.
        epsilon: What the statement says that these messages cost alone, rounded up.
        accountant: The delta of the library's accountant at this epsilon.
        computed: What the checker's program finds there, over `SCALE`.
        delta: The same, rounded up to a few digits: what the theorem says.
    """

    plan: Plan
    laws: dict[DecoyLaw, int]
    blocks: list[Block]
    epsilon: Fraction
    accountant: float
    computed: int
    delta: Fraction


def checked(study: Study, *, terms: int = TERMS) -> Checked:
    """Return what is checked about a study with the decoy join."""
    plan = make_plan(study)
    laws: Counter[DecoyLaw] = Counter()
    for group in plan.groups:
        law = plan.law_of(group)
        assert isinstance(law, DecoyLaw), "a study with decoys"
        laws[law] += 1
    events = tuple(flatten((plan.membership_event,)))
    alone = epsilon_for(events, study.budget.delta)
    epsilon = Fraction(math.ceil(alone * _EPSILON_STEP), _EPSILON_STEP)
    blocks = [block_of(law.weights, times=times, sigma=law.sigma) for law, times in laws.items()]
    computed = figure(blocks, exp_sum(terms, epsilon))
    return Checked(
        plan=plan,
        laws=dict(laws),
        blocks=blocks,
        epsilon=epsilon,
        accountant=delta_for(events, float(epsilon)),
        computed=computed,
        delta=_rounded_up(Fraction(computed, SCALE)),
    )


def study_file(name: str, source: str) -> str:
    """Return the Coq file of a study: its tables, its certificate and the theorem about it."""
    found = checked(Study.read(HERE / "studies" / source))
    heading = [
        f"Written by proofs/generate.py from proofs/studies/{source}; not to be edited.",
        f"Study {found.plan.study.name!r}, hash {found.plan.study.hash}.",
        *(
            f"{times} of {len(found.plan.groups)} tables: sigma {law.sigma!r}, t {law.truncation}, "
            f"SHA-256 {law.table_hash}."
            for law, times in found.laws.items()
        ),
    ]
    tables = "\n".join(
        f"Definition table_{number} : list Z := {integer_list(law.weights)}."
        for number, law in enumerate(found.laws, start=1)
    )
    blocks = ";\n  ".join(
        block_text(block, table=f"table_{number}")
        for number, block in enumerate(found.blocks, start=1)
    )
    smaller = found.delta - _digit_step(found.delta)
    return f"""{comment(heading)}
{_IMPORTS}
{tables}
Definition blocks : list block := [
  {blocks}].
Definition epsilon : Q := {rational(found.epsilon)}.
Definition delta : Q := {rational(found.delta)}.

(** The certificate: the bound at this epsilon, over 2^64. *)
Lemma computed : figure blocks (exp_sum {TERMS} epsilon) = {found.computed}%Z.
Proof. vm_cast_no_check (eq_refl {found.computed}%Z). Qed.
Lemma tables_are_good : forallb good blocks = true.
Proof. vm_compute; reflexivity. Qed.
Lemma passes : check blocks (exp_sum {TERMS} epsilon) delta = true.
Proof. unfold check. rewrite tables_are_good, computed. vm_compute; reflexivity. Qed.
(** One less in the last digit is too little. *)
Lemma less_is_refused : check blocks (exp_sum {TERMS} epsilon) {rational(smaller)} = false.
Proof. unfold check. rewrite tables_are_good, computed. vm_compute; reflexivity. Qed.

Theorem {_snake(name)}_is_private {{A}} tag rate n (secret : dist A) p :
  proper tag -> 0 <= rate -> rate <= 1 -> proper secret ->
  (forall a, well_formed (laws_of blocks) (p a)) ->
  private epsilon delta (sampled_run tag (laws_of blocks) rate n secret p false)
                        (sampled_run tag (laws_of blocks) rate n secret p true).
Proof. apply (checked_run_is_private blocks epsilon {TERMS}); [discriminate|exact passes]. Qed.
"""


def refused_file() -> str:
    """Return a file of tables that the checker must refuse, at the figures of two parties."""
    found = checked(Study.read(HERE / "studies" / STUDIES["TwoParties"]))
    (law,) = found.laws
    (block,) = found.blocks
    weights, middle = law.weights, law.truncation
    moved = list(weights)
    moved[3], moved[-4], moved[middle] = (
        weights[3] // 2,
        weights[3] // 2,
        weights[middle] + 2 * (weights[3] - weights[3] // 2),
    )
    cut = list(weights)
    cut[0], cut[-1], cut[middle] = 0, 0, weights[middle] + 2 * weights[0]
    quieter = DecoyLaw(sigma=0.999 * law.sigma, truncation=law.truncation, server_sigma=1.0)
    total = sum(weights)
    controls = {
        "an_entry_was_altered": Block(weights=tuple(moved), times=1, b=block.b, c=block.c),
        "a_table_cut_short": Block(weights=tuple(cut), times=1, b=block.b, c=block.c),
        "a_thousandth_less_noise": block_of(quieter.weights, times=1, sigma=quieter.sigma),
        "one_release_more": Block(weights=weights, times=2, b=block.b, c=block.c),
        "no_decoys": Block(weights=(total,), times=1, b=block.b, c=block.c),
        "one_decoy_always": Block(weights=(0, total), times=1, b=block.b, c=block.c),
    }
    lines = [
        comment(
            [
                "Written by proofs/generate.py; not to be edited.",
                "The checker refuses these, at the epsilon and delta of TwoParties.v.",
            ]
        ),
        _IMPORTS,
        f"Definition E : Q := exp_sum {TERMS} {rational(found.epsilon)}.",
        f"Definition delta : Q := {rational(found.delta)}.",
        f"Definition honest : list block := [{block_text(block)}].",
        "Lemma the_table_itself_passes : check honest E delta = true.",
        "Proof. vm_compute; reflexivity. Qed.",
    ]
    for name, control in controls.items():
        lines += [
            f"Lemma refused_{name} : check [{block_text(control)}] E delta = false.",
            "Proof. vm_compute; reflexivity. Qed.",
        ]
    return "\n".join(lines) + "\n"


def generated() -> dict[str, str]:
    """Return the name and text of every generated file."""
    files = {f"{name}.v": study_file(name, source) for name, source in STUDIES.items()}
    return files | {"Refused.v": refused_file(), "Examples.v": examples_file()}


def differences(folder: Path, files: dict[str, str]) -> list[str]:
    """Return what is wrong in the folder, compared with these files."""
    there = {path.name for path in folder.glob("*.v")}
    problems = [f"{name}: should not be there" for name in sorted(there - set(files))]
    for name, text in files.items():
        path = folder / name
        if not path.exists():
            problems.append(f"{name}: is missing")
        elif path.read_text(encoding="utf-8") != text:
            problems.append(f"{name}: differs from what the library gives now")
    return problems


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    files = generated()
    if parser.parse_args().check:
        problems = differences(GENERATED, files)
        for problem in problems:
            sys.stderr.write(f"proofs/generated/{problem}\n")
        if problems:
            sys.stderr.write("To write and prove them again: python -m proofs.generate\n")
        return 1 if problems else 0
    GENERATED.mkdir(exist_ok=True)
    for name, text in files.items():
        (GENERATED / name).write_text(text, encoding="utf-8")
    return 0


def _rounded_up(number: Fraction) -> Fraction:
    """Return the next number with a few digits that is not below."""
    step = _digit_step(number)
    return math.ceil(number / step) * step


def _digit_step(number: Fraction) -> Fraction:
    exponent = math.floor(math.log10(number)) - _DELTA_DIGITS + 1
    return Fraction(10) ** exponent


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)[1:]


if __name__ == "__main__":
    raise SystemExit(main())
