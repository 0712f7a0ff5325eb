"""A data protection impact assessment, filled in as far as a study says something.

What only people can know is left as blanks: who is controller, for what purpose, on which lawful
basis. docs/guides/dpia.md is the same document without a study.
"""

from dataclasses import replace

from splitmeans.evidence.pages import Section
from splitmeans.evidence.sections import by_column, onlookers, participants, releases, retention
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.study import PartySpec, Study
from splitmeans.wire.identity import spoken

BLANK = "________"


def dpia_of(study: Study) -> tuple[str, tuple[Section, ...]]:
    """Return title and sections of the assessment of a study; no data is touched."""
    facts = PrivacyFacts.for_study(study)
    sections = (
        _processing(study),
        _roles(study),
        participants(study),
        _subjects(study),
        by_column(facts),
        releases(facts),
        _purposes(study),
        _necessity(study),
        retention(),
        _measures(study, facts),
        onlookers(facts),
        _risks(study, facts),
        _decision(),
    )
    numbered = (
        replace(section, heading=f"{number}. {section.heading}")
        for number, section in enumerate(sections, start=1)
    )
    return f"Data protection impact assessment: {study.name}", tuple(numbered)


def _processing(study: Study) -> Section:
    if study.expected_users is None:
        users = "not said in the study"
    else:
        users = f"about {study.expected_users:,} people, as the study says"
    return Section(
        heading="The processing",
        text=(_counting(study) if study.counts_only else _segmenting(study),),
        head=("What", "This study"),
        rows=(
            ("Digits of the study, to compare with the file that was agreed", spoken(study.hash)),
            ("Number of people", users),
            ("Agreed limit, for all runs of the study together", study.budget.words),
            ("How many runs, how often", _runs(study)),
            ("Assessment made by, on", BLANK),
        ),
    )


def _segmenting(study: Study) -> str:
    return (
        f"{len(study.parties)} organisations ({', '.join(study.party_names)}) find "
        f"{study.n_clusters} groups of people about whom each of them has data (segments). "
        "Data is not pooled. Each organisation computes typical values of groups of its own "
        "people, adds random noise and sends these to a server, together with noisy "
        "information about which people are in which group. The server computes the segments "
        "from what it was sent and gives them to all organisations. Each organisation may then "
        "label its own people with the segments, on its own machine."
    )


def _counting(study: Study) -> str:
    return (
        f"{len(study.parties)} organisations ({', '.join(study.party_names)}) count how many "
        "people are known to which of them, and nothing else: no column about people is read, and "
        "no groups are made. Each organisation sends a random-looking tag for each of its people, "
        "among invented records that look the same, to a server. The server counts the tags that "
        "several organisations sent, adds random noise and gives the numbers to all organisations. "
        "No organisation is given a list of who is counted."
    )


def _runs(study: Study) -> str:
    if study.renewal is None:
        return f"one; other studies on the same people: {BLANK}, limited by each party's ledger"
    often = "" if study.renewal.every is None else f", one about every {study.renewal.every}"
    return f"{study.renewal.runs}{often}"


def _roles(study: Study) -> Section:
    rows = [
        (
            party.name,
            f"controller of its own table; joint controller of the study: {BLANK} (yes or no; if "
            "yes: where the arrangement is filed)",
            BLANK,
        )
        for party in study.parties
    ]
    rows += [
        ("server", f"processor for: {BLANK}; contract of: {BLANK}", BLANK),
        ("operator of the mailbox or relay", f"processor for: {BLANK}; contract: {BLANK}", BLANK),
    ]
    return Section(
        heading="Controller, processor, data protection officer",
        text=(
            "Legal entities behind the names in the study. That server and relay receive only what "
            "was made with noise, or cannot be opened, may bear on their role; that is for you to "
            "judge.",
        ),
        head=("Name in the study", "Role", "Legal entity, address, data protection officer"),
        rows=tuple(rows),
    )


def _subjects(study: Study) -> Section:
    common = (
        "people who are in the tables of all organisations"
        if study.user_sets == "equal"
        else "people who are in the table of any of the organisations"
    )
    rows = [
        (party.name, column.name, _kind(column.is_categorical), f"{BLANK} (yes or no)")
        for party in study.parties
        for column in party.columns
    ]
    if study.counts_only:
        rows = [
            (party.name, _id_columns(party), "identifies people", f"{BLANK} (yes or no)")
            for party in study.parties
        ]
    return Section(
        heading="Categories of data subjects and of data",
        text=(
            f"Data subjects: {common}: {BLANK} (customers, patients, members; children among "
            "them: yes or no).",
            "Columns that enter the computation. Special categories (Article 9 GDPR: health, "
            "religion, origin and others) or data on offences (Article 10): say so in the last "
            "column"
            + (
                "; that somebody is known to an organisation may be one of them itself."
                if study.counts_only
                else "."
            ),
        ),
        head=("Organisation", "Column", "Kind", "Special category"),
        rows=tuple(rows),
    )


def _id_columns(party: PartySpec) -> str:
    return ", ".join(held.column for held in party.id_columns) or party.id_column


def _purposes(study: Study) -> Section:
    what, them = "finding the segments", "them"
    if study.counts_only:
        what, them = "counting the people that are shared", "the numbers"
    return Section(
        heading="Purposes and lawful basis",
        head=("Question", "Answer"),
        rows=(
            (f"Purpose of {what}", BLANK),
            (f"What each organisation will do with {them}", BLANK),
            ("Lawful basis (Article 6 GDPR), for each organisation", BLANK),
            ("If special categories: exception of Article 9(2)", BLANK),
            (
                "Is the purpose compatible with the one the data was collected for (Article 6(4))?",
                BLANK,
            ),
            ("How data subjects are informed (Articles 13, 14)", BLANK),
            (
                "How rights are met: access, erasure, objection (Articles 15 to 21)",
                f"{BLANK} (a person taken out of an organisation's table is in no later run; a "
                "result that was published cannot be changed for one person, and the bound below "
                "says how little it can depend on one)",
            ),
            (
                "Decisions about single people based on the result alone (Article 22)",
                "none is possible: the result says nothing about a person"
                if study.counts_only
                else BLANK,
            ),
            ("Transfers to third countries", BLANK),
        ),
    )


def _necessity(study: Study) -> Section:
    n_columns = sum(len(party.columns) for party in study.parties)
    needed = (
        f"The study names {n_columns} columns; others are not read. Is each of them needed? {BLANK}"
    )
    less = "fewer columns, fewer people, a smaller epsilon, segments of each organisation alone"
    if study.counts_only:
        needed = "The study names no columns but those that identify people; others are not read."
        less = "fewer organisations, fewer people, a smaller epsilon, an estimate without data"
    return Section(
        heading="Necessity and proportionality",
        text=(needed, f"Why less does not do ({less}): {BLANK}"),
        notes=(
            "`splitmeans plan` says which error to expect at which epsilon, before any data is "
            "touched.",
        ),
    )


def _measures(study: Study, facts: PrivacyFacts) -> Section:
    total = (
        f"The noise is calibrated to {facts.total_words}, for all messages of all "
        "organisations together; each organisation computes this itself and does not release "
        "anything if it is more than was agreed."
    )
    ids = study.id_rules.type
    return Section(
        heading="Measures",
        notes=(
            f"Differential privacy. {total}",
            "Pseudonyms. Identifiers are never sent. People are matched by tags or an order under "
            "a key that is new in every run, known to the organisations and never to the "
            f"server. Identifiers are brought to one spelling first ({ids}).",
            "Encryption and authenticity. Every message is sealed to its receiver and signed by "
            "its sender with keys that the study pins; the relay is reached over TLS.",
            "Agreement. Each organisation approves exactly one study by its digits; any change is "
            "another study and is refused.",
            "A ledger at each organisation is charged before anything is sent, and refuses runs "
            "beyond the limit that the organisation has set.",
            "No code, query or file name from outside is run or opened at an organisation, and no "
            "port is open there.",
            "A result is signed by the server; `splitmeans archive` files a run away with a "
            "record in plain words, and `splitmeans archive verify` checks it.",
            f"Access to home folder, key file and table is limited to: {BLANK}; disk encryption: "
            f"{BLANK}.",
        ),
    )


def _risks(study: Study, facts: PrivacyFacts) -> Section:
    together = facts.observer("coalition").bounds[0].cost
    rows = [
        (
            "The server or a reader concludes from messages or result that a person is in the data"
            + ("" if study.counts_only else ", or what a value is"),
            "limited for the server and readers of the result by the figures above",
            BLANK,
        ),
        (
            "The server and an organisation act together",
            "no technical limit; the operator of the server must have no interest in helping an "
            "organisation"
            if together is None
            else "limited for values, not for presence",
            BLANK,
        ),
        (
            "An organisation learns about people of another from the result",
            "no limit"
            if facts.towards_party is None
            else "limited by the figure towards another party above, while the server follows the "
            "rules",
            BLANK,
        ),
        (
            "Runs are repeated until little is left of the protection",
            "each organisation's ledger adds them up; set a limit (`splitmeans ledger limit`)",
            BLANK,
        ),
        (
            "A key file or home folder is stolen",
            "passphrase, file rights, disk encryption; a key file alone opens no message, with the "
            "home it opens those of a run that has not ended; the thief can sign as its owner",
            BLANK,
        ),
    ]
    if not study.counts_only:
        rows += [
            (
                "Limits of columns or categories were chosen by looking at the data",
                "an agreement between people; no software can find it out",
                BLANK,
            ),
            (
                "Segments are used unfairly, or a segment is sensitive in itself",
                "no technical measure; look at the segments before they are used",
                BLANK,
            ),
        ]
    return Section(
        heading="Risks that remain",
        text=("Likelihood and severity are yours to judge, with your kind of data in mind.",),
        head=("Risk", "What limits it", "Likelihood, severity, what else is done"),
        rows=tuple(rows),
    )


def _decision() -> Section:
    return Section(
        heading="Decision",
        head=("What", "Who, when"),
        rows=(
            ("Advice of the data protection officer (Article 35(2))", BLANK),
            ("Views of data subjects, or why they were not asked (Article 35(9))", BLANK),
            ("Prior consultation of the authority needed (Article 36)?", BLANK),
            ("Decision of the controller", BLANK),
            ("To be looked at again", f"{BLANK} (at the latest when the study changes)"),
        ),
    )


def _kind(is_categorical: bool) -> str:
    return "a choice from a list" if is_categorical else "a number"
