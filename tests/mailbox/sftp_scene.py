"""An SFTP server in this process, for tests that cannot count on an sshd."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
from paramiko.sftp import CMD_EXTENDED, CMD_EXTENDED_REPLY


class Door(paramiko.ServerInterface):
    def check_channel_request(self, kind: str, _: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_auth_password(self, username: str, password: str) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def get_allowed_auths(self, username: str) -> str:
        return "password"


class KeyDoor(Door):
    """Opens to one key, and lets in nobody who shows another one first."""

    def __init__(self, key: paramiko.PKey) -> None:
        self._key = key
        self._n_tried = 0

    def check_auth_password(self, username: str, password: str) -> int:
        return paramiko.AUTH_FAILED

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self._n_tried += 1
        is_first = self._n_tried == 1
        return paramiko.AUTH_SUCCESSFUL if is_first and key == self._key else paramiko.AUTH_FAILED

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"


class Handle(paramiko.SFTPHandle):
    def stat(self) -> Any:
        return paramiko.SFTPAttributes.from_stat(os.fstat(self.readfile.fileno()))


class Files(paramiko.SFTPServerInterface):
    """The files of this machine, under a umask that lets nobody else in."""

    umask = 0o077

    def _try(self, action: Any) -> Any:
        try:
            return action()
        except OSError as problem:
            return paramiko.SFTPServer.convert_errno(problem.errno)

    def _done(self, action: Any) -> Any:
        return self._try(lambda: (action(), paramiko.SFTP_OK)[1])

    def stat(self, path: str) -> Any:
        return self._try(lambda: paramiko.SFTPAttributes.from_stat(os.stat(path)))

    def lstat(self, path: str) -> Any:
        return self._try(lambda: paramiko.SFTPAttributes.from_stat(os.lstat(path)))

    def mkdir(self, path: str, attr: Any) -> Any:
        return self._done(lambda: os.mkdir(path, 0o777 & ~self.umask))

    def remove(self, path: str) -> Any:
        return self._done(lambda: os.remove(path))

    def rename(self, oldpath: str, newpath: str) -> Any:
        # As OpenSSH does it: a hard link, which fails if the new name is taken.
        def renamed() -> None:
            os.link(oldpath, newpath, follow_symlinks=False)
            os.unlink(oldpath)

        return self._done(renamed)

    def posix_rename(self, oldpath: str, newpath: str) -> Any:
        return self._done(lambda: os.replace(oldpath, newpath))

    def chattr(self, path: str, attr: Any) -> Any:
        return self._done(lambda: paramiko.SFTPServer.set_file_attr(path, attr))

    def open(self, path: str, flags: int, attr: Any) -> Any:
        def opened() -> Handle:
            handle = Handle(flags)
            mode = "rb" if flags & 3 == os.O_RDONLY else "wb"
            file = os.fdopen(os.open(path, flags, 0o666 & ~self.umask), mode)
            handle.readfile = handle.writefile = file
            return handle

        return self._try(opened)


class ReplacingFiles(Files):
    """A server that breaks the protocol: its rename replaces, as that of some gateways does."""

    def rename(self, oldpath: str, newpath: str) -> Any:
        return self.posix_rename(oldpath, newpath)


class WithRoom(paramiko.SFTPServer):
    """A server that has OpenSSH's extension, with figures that are easy to know again."""

    def _process(self, kind: int, number: int, message: Any) -> None:
        if kind == CMD_EXTENDED:
            start = message.packet.tell()
            if message.get_text() == "statvfs@openssh.com":
                # Block and fragment size; blocks, free, available; inodes three times; the rest.
                figures = (4096, 512, 1000, 400, 300, 9, 9, 9, 0, 0, 255)
                answer = paramiko.Message()
                answer.add_int(number)
                for figure in figures:
                    answer.add_int64(figure)
                self._send_packet(CMD_EXTENDED_REPLY, answer)
                return
            message.packet.seek(start)
        super()._process(kind, number, message)


@contextlib.contextmanager
def serve_sftp(
    known_hosts: Path,
    *,
    kind: type = WithRoom,
    files: type[Files] = Files,
    key: paramiko.PKey | None = None,
) -> Iterator[int]:
    """Serve this machine's files; yields the port, after the host's key was written to a file.

    Without `key` every password is right.
    """
    own = paramiko.ECDSAKey.generate()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    known_hosts.write_text(f"[127.0.0.1]:{port} {own.get_name()} {own.get_base64()}\n")
    transports = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                transport = paramiko.Transport(connection)
                transports.append(transport)
                transport.add_server_key(own)
                transport.set_subsystem_handler("sftp", kind, files)
                try:
                    transport.start_server(server=Door() if key is None else KeyDoor(key))
                except (paramiko.SSHException, EOFError, OSError):  # this client went away
                    transport.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20)
        for transport in transports:
            transport.close()
