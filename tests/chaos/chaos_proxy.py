# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that misbehaves on command: stands between a service and one that it calls."""

import socket
import threading


class ChaosProxy:
    """Forwards connections to `address` from an address of its own.

    mode "forward"  as a good wire
    mode "cut"      cuts a connection once so many bytes of a reply went through, in the midst of it
    mode "deaf"     accepts nobody; the kernel's queue of connections is full, so that attempts go unanswered
    """

    def __init__(self, address, cut_after=20):
        self.target = address
        self.cut_after = cut_after
        self.mode = "forward"
        self.cuts = 0
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.connections = []
        self.fillers = []
        self.hearing = threading.Event()
        self.hearing.set()
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def set_mode(self, mode):
        """Takes effect on connections that stand, too: "deaf" cuts them, so that they must be made anew."""
        if mode == "deaf":
            with self.lock:
                self.hearing.clear()
            # The accept under way takes one more, which is dropped; after that the queue fills.
            self._connect_once()
        self.mode = mode
        if mode == "deaf":
            self._drop_all()
            self._fill_queue()
        if mode == "forward":
            for filler in self.fillers:
                filler.close()
            self.fillers = []
            self.hearing.set()

    def _connect_once(self):
        host, _, port = self.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=5):
            pass

    def _fill_queue(self):
        """Connects until the kernel does not answer any more."""
        host, _, port = self.address.rpartition(":")
        for _ in range(64):
            filler = socket.socket()
            filler.settimeout(0.3)
            try:
                filler.connect((host, int(port)))
            except OSError:
                filler.close()
                return
            self.fillers.append(filler)
        raise AssertionError("the queue of connections takes no end of them")

    def _drop_all(self):
        with self.lock:
            connections, self.connections = self.connections, []
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            if not self.hearing.is_set():
                client.close()
                self.hearing.wait()
                continue
            host, _, port = self.target.rpartition(":")
            try:
                server = socket.create_connection((host, int(port)), timeout=5)
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                end.settimeout(None)
            with self.lock:
                deaf = not self.hearing.is_set()
                if not deaf:
                    self.connections += [client, server]
            if deaf:  # since it was accepted
                client.close()
                server.close()
                continue
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source, sink, replies):
        passed = 0
        try:
            while data := source.recv(65536):
                if replies and self.mode == "cut":
                    room = self.cut_after - passed
                    if len(data) > room:
                        sink.sendall(data[:max(room, 0)])
                        self.cuts += 1
                        break
                passed += len(data)
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
