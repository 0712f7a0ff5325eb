"""The kinds that a relay goes by are those of the messages."""

import subprocess
import sys
import typing

from splitmeans.wire import messages, ways
from splitmeans.wire.tags import tag_of

TAGS = {tag_of(kind) for kind in typing.get_args(messages.Message)}


def test_every_message_has_a_way_and_every_way_has_its_messages():
    on_their_ways = (*ways.TO_SERVER, *ways.FROM_SERVER, *ways.BETWEEN_PARTIES, *ways.TO_ITSELF)
    assert set(on_their_ways) == TAGS
    assert set(ways.LARGE) <= TAGS
    assert set(ways.STAGED) == {
        tag_of(kind)
        for kind in typing.get_args(messages.Message)
        if "stage" in vars(kind).get("__annotations__", {})
    }


def test_kinds_by_tag_and_by_type_are_the_same():
    assert ways.kinds_with(["Ready", "StageRelease"])[:3] == (
        "Ready",
        "StageRelease_1",
        "StageRelease_2",
    )
    assert messages.kinds_of([messages.Ready, messages.StageRelease]) == ways.kinds_with(
        ["Ready", "StageRelease"]
    )


def test_ways():
    def sent(kind: str, **given: bool) -> bool:
        way = {"from_server": False, "to_server": False, "to_itself": False} | given
        return ways.may_send(kind, **way)

    assert sent("partyrelease", to_server=True)
    assert not sent("partyrelease")
    assert sent("stagerelease_9")
    assert not sent("stagerelease_10")
    assert not sent("stagerelease")
    assert sent("publishedresult", from_server=True)
    assert sent("publishedresult", from_server=True, to_itself=True)
    assert not sent("hello", to_itself=True)
    assert ways.is_large("partyrelease")
    assert not ways.is_large("hello")


def test_a_relay_makes_no_arrays():
    code = (
        "import sys, splitmeans.relay.app, splitmeans.relay.serve, splitmeans.relay.purge\n"
        "import splitmeans.relay.study_files, splitmeans.cli.relay\n"
        "print(sorted({'numpy', 'pyarrow', 'llvmlite'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
