"""A port whose requests go to servers that are drawn by lot."""

from __future__ import annotations

import random
import socket
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

HEAD_BYTES_MAX = 64 * 1024
PIECE_BYTES = 64 * 1024
END_OF_HEAD = b'\r\n\r\n'
HTTP2 = b'PRI * HTTP/2.0'


class Balancer:
    """Listens on a free port of this machine, and passes connections on.

    Each connection goes to one server. One of HTTP/1.1 is closed behind its first answer, so that
    each request draws anew; one of HTTP/2 stays where it is. `taken` counts them for each server.
    """

    def __init__(self, seed: int) -> None:
        self.targets: Sequence[int] = ()
        self.taken: Counter[int] = Counter()
        self._dice = random.Random(seed)
        self._listener = socket.create_server(('127.0.0.1', 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Takes no further connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            target = self._dice.choice(self.targets)
            self.taken[target] += 1
            threading.Thread(target=self._serve, args=(near, target), daemon=True).start()

    def _serve(self, near: socket.socket, target: int) -> None:
        with near, suppress(OSError):
            head = read_head(near)
            if not head:
                return
            with socket.create_connection(('127.0.0.1', target)) as far:
                for one in (near, far):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                far.sendall(head if head.startswith(HTTP2) else last_on_its_connection(head))
                back = threading.Thread(target=pump, args=(far, near), daemon=True)
                back.start()
                pump(near, far)
                back.join()


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Passes on what comes, then ends both: half of a connection is of no use to HTTP."""
    with suppress(OSError):
        while piece := source.recv(PIECE_BYTES):
            sink.sendall(piece)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def read_head(near: socket.socket) -> bytes:
    """What was sent up to the end of the first head, and perhaps more."""
    head = b''
    while END_OF_HEAD not in head and len(head) < HEAD_BYTES_MAX:
        piece = near.recv(PIECE_BYTES)
        if not piece:
            return b''
        head += piece
    return head


def last_on_its_connection(request: bytes) -> bytes:
    """Asks the server to close the connection behind its answer, and to tell the client so."""
    head, _, body = request.partition(END_OF_HEAD)
    lines = [line for line in head.split(b'\r\n') if not line.lower().startswith(b'connection:')]
    return b'\r\n'.join([*lines, b'Connection: close']) + END_OF_HEAD + body
