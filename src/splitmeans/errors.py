"""Every error that splitmeans raises on purpose.

SplitmeansError
├── ParameterError     an argument breaks a rule                        (also a ValueError)
│   └── StudyError     a study file or object breaks a rule
├── DataError          a party's table breaks a rule                    (also a ValueError)
├── PrivacyError       a release would cost more than was agreed, or its cost is unknown
│   ├── UnaccountableBudget  epsilon or delta is outside exact accounting (also a ParameterError)
│   └── BudgetError    a data source's lifetime limit would be passed, or its ledger is not sound
├── ProtocolError      a message is malformed, unexpected, or from the wrong sender
│   └── MessageRefused a message's signature, seal, slot or size is wrong; it was not looked at
│       └── OtherRunKey  it is signed, but sealed to a key of the run that this home never had
├── EngineError        what walks a party's table (Spark) is missing, or stopped
├── JournalError       the stored state of a run cannot be used
│   └── HomeUnavailable     another process uses it, or its disk is full  (also Retryable)
├── MailboxError       a mailbox refuses
│   ├── MessageExists       it holds another message of the same sender in this place
│   └── MailboxUnavailable  it cannot be reached, or has no room          (also Retryable)
├── EvidenceError      an archive is not what was signed, or does not add up
├── RehearsalError     a study failed on made-up tables, before anything was charged
└── WaitingError       nothing arrived for too long; the run can be taken up again

`exit_code` says how the command line ends on each; docs/reference/cli.md has the table for people.
No message ever contains a value from a party's table: row numbers and names only.
"""

FINAL, MENDABLE, WAITED, LATER, STOPPED = 1, 2, 3, 4, 130


class Retryable:
    """Marks errors that may pass by themselves: the same command, unchanged, can succeed later."""


class SplitmeansError(Exception):
    """Root of all splitmeans errors."""


class ParameterError(SplitmeansError, ValueError):
    """An argument breaks a rule; the message gives its name, the rule and the value."""


class StudyError(ParameterError):
    """A study breaks a rule; the message names the key, the rule and the fix."""


class DataError(SplitmeansError, ValueError):
    """A party's table breaks a rule; the message names column and row numbers, never values."""


class PrivacyError(SplitmeansError):
    """A release would cost more than was agreed, or its cost cannot be computed."""


class UnaccountableBudget(PrivacyError, ParameterError):
    """Exact accounting cannot compute a budget of this size; the message names figure and range."""


class BudgetError(PrivacyError):
    """A data source's lifetime limit would be passed, or the ledger cannot be trusted."""


class ProtocolError(SplitmeansError):
    """A message is malformed, unexpected in this state, or from the wrong sender."""


class MessageRefused(ProtocolError):
    """A message is not what its slot promises: signature, seal, size or format is wrong."""


class OtherRunKey(MessageRefused):
    """A message is signed by its sender, and sealed to a key of the run that this home never had.

    So this participant's key was used for the run from another home as well.
    """


class EngineError(SplitmeansError):
    """What walks a party's table is not installed, cannot start, or stopped in the middle."""


class JournalError(SplitmeansError):
    """The stored state of a run is missing, damaged, or belongs to something else."""


class HomeUnavailable(JournalError, Retryable):
    """Another process holds the run or the home's database at the moment, or the disk is full."""


class MailboxError(SplitmeansError):
    """A mailbox refuses a request, or cannot be used."""


class MessageExists(MailboxError):
    """A mailbox already has another message of this sender in this place, and keeps it."""


class MailboxUnavailable(MailboxError, Retryable):
    """A mailbox cannot be reached, is busy or has no room at the moment."""


class EvidenceError(SplitmeansError):
    """An archive was changed, is signed by somebody else, or what it claims does not follow."""


class RehearsalError(SplitmeansError):
    """A study failed in its rehearsal, where nothing is sent and nothing is charged."""


class WaitingError(SplitmeansError):
    """Others did not send in time; nothing is lost and the same command goes on later."""


def exit_code(problem: SplitmeansError) -> int:
    """Return the exit code of a command that ends with this error."""
    if isinstance(problem, WaitingError):
        return WAITED
    if isinstance(problem, Retryable):
        return LATER
    return MENDABLE if isinstance(problem, ParameterError | DataError) else FINAL
