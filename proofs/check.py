"""`make proofs`: compares the generated files, has Coq check everything, and tries what must fail.

It ends with 1 at the first of these: a generated file differs from what the library gives now; a
proof does not pass; a theorem rests on anything that is not proved; a control is not refused.
"""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from proofs.generate import GENERATED, STUDIES, differences, generated

HERE = Path(__file__).parent
THEORY = HERE / "theory"
BUILD = HERE / ".build"

# In the order in which they need each other.
FILES = (
    "Definitions",
    "Distributions",
    "Composition",
    "Views",
    "Runs",
    "Attained",
    "Checker",
    "Lattice",
    "CheckerSound",
    "Theorems",
    "Controls",
)
# What docs/concepts/machine-checked.md tells of.
THEOREMS = (
    "Theorems.events_are_covered",
    "Theorems.post_processing_is_free",
    "Theorems.messages_follow_from_counts",
    "Theorems.run_is_bounded_by_the_product",
    "Theorems.product_bound_is_exact",
    "Theorems.checker_is_sound",
    "Theorems.checked_run_is_private",
    "Theorems.run_after_other_releases",
    "Theorems.fellow_party_is_bounded",
    "Controls.no_decoys_leak",
    "Controls.decoys_per_cluster_leak",
    "Controls.decoys_per_cell_do_not",
    "TwoParties.two_parties_is_private",
    "FourParties.four_parties_is_private",
)
CLOSED = "Closed under the global context"
# Ways to leave something unproved, or to have Coq check less.
_UNPROVED = re.compile(
    r"\b(Admitted|admit|Axioms?|Conjecture|Parameters?|give_up|bypass_check|Unset|"
    r"type-in-type|Primitive|Register)\b"
)
_ASSUMED = """Axiom anything : False.
Theorem unfounded : 0 = 1.
Proof. destruct anything. Qed.
Print Assumptions unfounded.
"""
_SECONDS = 300


class Refused(Exception):
    """Something did not pass."""


def main() -> int:
    """Check everything; return 1 and say why if something does not pass."""
    started = time.monotonic()
    try:
        _compare()
        _compile_all()
        _assumptions()
        _controls()
    except Refused as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    _tell(f"all proofs pass, {len(THEOREMS)} theorems rest on no axiom", started)
    return 0


def unproved(text: str) -> list[str]:
    """Return the words of a Coq file that would leave something unproved; comments do not count."""
    code = text
    while (shorter := re.sub(r"\(\*(?:(?!\(\*|\*\)).)*\*\)", "", code, flags=re.DOTALL)) != code:
        code = shorter
    return [match.group(0) for match in _UNPROVED.finditer(code)]


def open_assumptions(printed: str, names: tuple[str, ...]) -> list[str]:
    """Return the theorems that Coq's answers to `Print Assumptions` do not call closed."""
    answers = re.split(r"^(?=Closed under|Axioms:|Section Variables:)", printed, flags=re.MULTILINE)
    answers = [answer.strip() for answer in answers if answer.strip()]
    if len(answers) != len(names):
        return list(names)
    return [name for name, answer in zip(names, answers, strict=True) if answer != CLOSED]


def _compare() -> None:
    started = time.monotonic()
    problems = differences(GENERATED, generated())
    if problems:
        listed = "\n".join(f"proofs/generated/{problem}" for problem in problems)
        raise Refused(f"{listed}\nTo write and prove them again: python -m proofs.generate")
    _tell("tables, certificates and messages are those of the library", started)


def _compile_all() -> None:
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir()
    sources = [THEORY / f"{name}.v" for name in FILES] + sorted(GENERATED.glob("*.v"))
    if {path.name for path in THEORY.glob("*.v")} != {f"{name}.v" for name in FILES}:
        raise Refused("proofs/theory has other files than proofs/check.py lists")
    for source in sources:
        text = source.read_text(encoding="utf-8")
        if found := unproved(text):
            raise Refused(f"{source.name} has {found[0]!r}")
        started = time.monotonic()
        _write(source.name, text)
        if problem := _coqc(source.name):
            raise Refused(f"{source.name} does not pass:\n{problem}")
        _tell(f"{source.name}, {len(text.splitlines())} lines", started)


def _assumptions() -> None:
    modules = [*FILES, *(path.stem for path in sorted(GENERATED.glob("*.v")))]
    lines = [f"From Splitmeans Require {' '.join(modules)}."]
    lines += [f"Print Assumptions {name}." for name in THEOREMS]
    _write("Assumptions.v", "\n".join(lines))
    done = _run("Assumptions.v")
    if done.returncode:
        raise Refused(f"Print Assumptions does not pass:\n{done.stderr}")
    if found := open_assumptions(done.stdout, THEOREMS):
        raise Refused(f"these rest on something unproved: {', '.join(found)}\n{done.stdout}")
    _write("Assumed.v", _ASSUMED)
    if not open_assumptions(_run("Assumed.v").stdout, ("unfounded",)):
        raise Refused("a control was not refused: a theorem that rests on an axiom")


def _controls() -> None:
    """Try changed copies of a study's file: each must be refused, and where it was changed."""
    started = time.monotonic()
    name = next(iter(STUDIES))
    text = (GENERATED / f"{name}.v").read_text(encoding="utf-8")
    changes = controls(text)
    for number, (what, (changed, lemma)) in enumerate(changes.items()):
        _write(f"Control{number}.v", changed)
        found = _failing_lemma(changed, _coqc(f"Control{number}.v"))
        if found != lemma:
            raise Refused(f"a control was not refused in {lemma}: {what} (refused in {found})")
    _tell(f"{len(changes)} changed copies of {name}.v were refused", started)


def controls(text: str) -> dict[str, tuple[str, str]]:
    """Return changed copies of a study's file that must not pass, with the lemma that must fail."""
    no_decoys = re.sub(r"list Z := \[[^]]*\]", f"list Z := [{2**64}]", text)
    return {
        "a smaller delta": (_changed(text, r"(Definition delta : Q := \()(\d+)", -1), "passes"),
        "a smaller epsilon": (
            _changed(text, r"(Definition epsilon : Q := \()(\d+)", -1),
            "computed",
        ),
        "another certificate": (_changed(text, r"(epsilon\) = |eq_refl )(\d+)", -1), "computed"),
        "an altered entry": (
            _changed(text, r"(list Z := \[\n  )(\d+)", 1),
            "tables_are_good",
        ),
        "no decoys": (no_decoys, "computed"),
    }


def _failing_lemma(text: str, problem: str | None) -> str | None:
    """Return the lemma in which Coq found the problem."""
    place = re.search(r"line (\d+), characters", problem or "")
    if place is None:
        return None
    above = "\n".join(text.splitlines()[: int(place[1])])
    names = re.findall(r"^(?:Lemma|Theorem) (\w+)", above, flags=re.MULTILINE)
    return names[-1] if names else None


def _changed(text: str, pattern: str, by: int) -> str:
    changed, times = re.subn(pattern, lambda found: found[1] + str(int(found[2]) + by), text)
    assert times, "the pattern is there"
    return changed


def _write(name: str, text: str) -> None:
    (BUILD / name).write_text(text, encoding="utf-8")


def _coqc(name: str) -> str | None:
    """Return what Coq says against a file of the build folder; None if it passes."""
    done = _run(name)
    return None if done.returncode == 0 else done.stderr


def _run(name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["coqc", "-q", "-Q", ".", "Splitmeans", name],
        cwd=BUILD,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def _tell(what: str, started: float) -> None:
    sys.stdout.write(f"{time.monotonic() - started:6.1f} s  {what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
