"""Every option can be set by the environment, by one rule: SPLITMEANS_<COMMAND>_<OPTION>.

`splitmeans party run --result-folder X` is also `SPLITMEANS_PARTY_RUN_RESULT_FOLDER=X`: the words
of the command and the option's long name, in capitals, with underscores. What is given on the
command line wins; an empty variable counts as none. Services and containers keep their settings in
a file that way, with command lines that never change.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from splitmeans.errors import ParameterError

PREFIX = "SPLITMEANS"
_NOT_SETTINGS = {"--help", "--version", "--install-completion", "--show-completion"}


def variable_of(command: tuple[str, ...], option: str) -> str:
    """Return the variable of a command's option, such as `--mailbox` of `("party", "run")`."""
    words = (PREFIX, *command, option.lstrip("-"))
    return "_".join(words).replace("-", "_").upper()


def long_name(option: Any) -> str | None:
    """Return an option's first long name; None for an argument and for what is no setting."""
    names = [name for name in option.opts if name.startswith("--")]
    if option.param_type_name != "option" or not names or names[0] in _NOT_SETTINGS:
        return None
    return str(names[0])


def name_variables(command: Any, words: tuple[str, ...]) -> None:
    """Give every option of a command, and of those below it, its variable."""
    for path, leaf in _leaves(command, words):
        for option in leaf.params:
            name = long_name(option)
            if name is None:
                continue
            given = option.envvar or []
            before = [given] if isinstance(given, str) else list(given)
            option.envvar = [variable_of(path, name), *before]
            option.show_envvar = False  # one rule for all needs no line for each


def check_variables(command: Any, words: tuple[str, ...], environ: Mapping[str, str]) -> None:
    """Refuse a variable that looks like a setting of this command and is none.

    Raises:
        ParameterError: A misspelt setting would be left out without a word.
    """
    leaves = dict(_leaves(command, words))
    # Of `party run` and another command whose words begin alike, such as `result label-all`.
    known = {
        variable_of(path, name)
        for path, leaf in leaves.items()
        for option in leaf.params
        if (name := long_name(option)) is not None
    }
    for path in leaves:
        start = variable_of(path, "")
        for name in sorted(environ):
            if name.startswith(start) and name not in known:
                raise ParameterError(
                    f"the environment has {name}, and `splitmeans {' '.join(path)}` has no such "
                    "option; mend its name, or unset it"
                )


def _leaves(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the commands that can be run, with their words."""
    below = getattr(command, "commands", None)
    if below is None:
        yield words, command
        return
    for name, one in below.items():
        yield from _leaves(one, (*words, name))
