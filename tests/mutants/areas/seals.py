"""Seals and signatures that accept what they must refuse."""

from tests.mutants.mutant import Mutant

SEALED = "tests/wire/test_sealed.py"

MUTANTS = [
    Mutant(
        file="src/splitmeans/wire/sealed.py",
        old="    if not sender.verify(_to_sign(info, header, ciphertext), ",
        new="    if False and not sender.verify(_to_sign(info, header, ciphertext), ",
        breaks="signatures are not looked at",
        tests=(SEALED,),
    ),
    Mutant(
        file="src/splitmeans/wire/sealed.py",
        old="return _INFO + slot.text + keys + sealed_to",
        new="return _INFO + keys + sealed_to",
        breaks="a seal is not bound to its slot",
        tests=(SEALED,),
    ),
    Mutant(
        file="src/splitmeans/wire/sealed.py",
        old="keys = sender.signing + sender.sealing + receiver.signing + receiver.sealing",
        new="keys = sender.signing + sender.sealing",
        breaks="a seal is not bound to its receiver",
        tests=(SEALED,),
    ),
    Mutant(
        file="src/splitmeans/wire/sealed.py",
        old="for part in (info, header, ciphertext):",
        new="for part in (info, ciphertext):",
        breaks="a signature leaves the header out",
        tests=(SEALED,),
    ),
    Mutant(
        file="src/splitmeans/wire/sealing.py",
        old="        _refuse_weak_point(self.data[-32:])\n",
        new="",
        breaks="a sealing key that anyone can open is accepted",
        tests=("tests/wire/test_identity.py", SEALED),
    ),
]
