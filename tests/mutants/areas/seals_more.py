"""Signatures that leave something out, keys that stay, and messages from the wrong place."""

from tests.mutants.mutant import Mutant

SIGNED = ("tests/result/test_signature.py", "tests/result/test_signed_result.py")
FACTS = "src/splitmeans/result/signed.py"
SECRECY = "tests/attacks/test_secrecy.py"

MUTANTS = [
    Mutant(
        file="src/splitmeans/run/post.py",
        old="to = pinned.sealing_key if is_first else self._sealing[receiver]",
        new="to = pinned.sealing_key",
        breaks="messages are sealed to identities, not to keys of the run",
        tests=(SECRECY,),
    ),
    Mutant(
        file="src/splitmeans/run/post.py",
        old=" or kind_of(message) != kind:",
        new=":",
        breaks="a message is taken in the place of one of another kind",
        tests=("tests/attacks/test_replays.py",),
    ),
    Mutant(
        file="src/splitmeans/wire/slot.py",
        old='len(part.encode()).to_bytes(4, "little") + part.encode()',
        new="part.encode()",
        breaks="two slots have the same bytes",
        tests=("tests/wire/test_slot.py",),
    ),
    Mutant(
        file="src/splitmeans/run/drive.py",
        old="reason=reason)\n        erase_key(self.journal.folder, self.key)\n",
        new="reason=reason)\n",
        breaks="the key of a run that failed stays on disk",
        tests=(f"{SECRECY}::test_keys_of_ended_runs_looked_for_on_disk",),
    ),
    Mutant(
        file=FACTS,
        old="if value is not None}",
        new='if value is not None and name != "privacy"}',
        breaks="the server's signature does not cover the privacy facts",
        tests=SIGNED,
    ),
    Mutant(
        file=FACTS,
        old="presence=presence_hash(presence) if len(presence) else None,",
        new="presence=None,",
        breaks="the server's signature does not cover who is at which parties",
        tests=SIGNED,
    ),
    Mutant(
        file=FACTS,
        old='return _arrays_hash((centres, "<f8"), (sizes, "<f8"))',
        new='return _arrays_hash((centres, "<f8"))',
        breaks="the server's signature does not cover the sizes of segments",
        tests=SIGNED,
    ),
    Mutant(
        file=FACTS,
        old="return rounded_hash(PrivacyFacts.of(plan, secure_noise=secure_noise).to_mapping())",
        new="return rounded_hash({})",
        breaks="parties release though the server has other privacy facts",
        tests=("tests/result/test_signature.py",),
    ),
    Mutant(
        file=FACTS,
        old="_DIGITS = 6",
        new="_DIGITS = 1",
        breaks="figures that differ by some per cent have one signature",
        tests=SIGNED,
    ),
    Mutant(
        file="src/splitmeans/party/check_result.py",
        old="if key is None or session.simulated:",
        new="if key is None or session.simulated or not result.signature:",
        breaks="a party takes a result without a signature",
        tests=("tests/protocol/test_check_result.py", "tests/attacks/test_results.py"),
    ),
    Mutant(
        file="src/splitmeans/result/files.py",
        old="    if study.server_key is None:\n        if signature:",
        new="    if study.server_key is None or not signature:\n        if signature:",
        breaks="a folder whose signature was taken away is read",
        tests=SIGNED,
    ),
    Mutant(
        file="src/splitmeans/result/contents.py",
        old="        if found != data:\n",
        new='        if name != "transcript.json" and found != data:\n',
        breaks="a changed transcript of a result is read",
        tests=("tests/result/test_every_field.py",),
    ),
    Mutant(
        file="src/splitmeans/party/session.py",
        old="            self.run,\n            plan.fingerprint,\n",
        new="            plan.fingerprint,\n",
        breaks="the run key does not depend on the name of the run",
        tests=("tests/protocol/test_confirm.py",),
    ),
    Mutant(
        file="src/splitmeans/mailbox/request_signature.py",
        old="parts = (method, study, path, body_hash, str(time), nonce, participant)",
        new="parts = (method, study, path, str(time), nonce, participant)",
        breaks="a request to the relay is signed without its body",
        tests=("tests/relay/test_app.py",),
    ),
    Mutant(
        file="src/splitmeans/relay/access.py",
        old="oldest = now - 2 * self._limits.clock_seconds",
        new="oldest = now - self._limits.clock_seconds",
        breaks="the relay forgets requests that can still be repeated",
        tests=("tests/relay/test_app.py",),
    ),
    Mutant(
        file="src/splitmeans/relay/access.py",
        old='owners = {place.sender} if method == "PUT" else {place.sender, place.receiver}',
        new="owners = {place.sender, place.receiver, caller.participant}",
        breaks="the relay lets any participant send and fetch any message",
        tests=("tests/relay/test_app.py",),
    ),
    Mutant(
        file="src/splitmeans/relay/gate.py",
        old="IPv6Network((int(address), 64), strict=False)",
        new="IPv6Network((int(address), 128), strict=False)",
        breaks="one customer keeps others from the relay by many addresses",
        tests=("tests/relay/test_gate.py",),
    ),
    Mutant(
        file="src/splitmeans/relay/gate.py",
        old="own = [key for key, one in self._signed.items() if one.caller == caller]",
        new="own = list[Any]()",
        breaks="one participant keeps others from the relay by many idle connections",
        tests=("tests/relay/test_gate.py",),
    ),
    Mutant(
        file="src/splitmeans/wire/key_change.py",
        old="if not (old.verify(signed, one) and new.verify(signed, two)) or old == new:",
        new="if not (new.verify(signed, one) or new.verify(signed, two)) or old == new:",
        breaks="anybody can renew another's key",
        tests=("tests/wire/test_key_change.py",),
    ),
    Mutant(
        file="src/splitmeans/run/journal.py",
        old="            elif rows[0][0] != sha256:\n",
        new="            elif False:\n",
        breaks="after a restart another message is taken from a slot",
        tests=("tests/run/test_journal.py",),
    ),
]
