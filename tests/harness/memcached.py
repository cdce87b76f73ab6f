"""A real memcached, and one that answers nonsense."""

import socketserver
import tempfile
import threading
from pathlib import Path

from harness.process import Process
from harness.waiting import free_port, listening


class Memcached:
    """memcached from Debian on a loopback port."""

    def __init__(self, port=None):
        self.port = port or free_port()
        self.process = None

    def start(self):
        log = Path(tempfile.gettempdir()) / f"memcached-{self.port}.log"
        self.process = Process(["memcached", "-l", "127.0.0.1", "-p", self.port, "-u", "nobody", "-m", "64"], log)
        self.process.wait_for(lambda: listening(self.port))
        return self

    def stop(self):
        if self.process:
            self.process.stop()
            self.process.log.unlink(missing_ok=True)


class RubbishMemcached:
    """Accepts every connection and answers each line with bytes that are no memcached reply."""

    ANSWERS = [b"VALUE x 0 -5\r\n\x80\x02cos\nsystem\n\r\nEND\r\n", b"\xff\xfe\x00\r\n", b"VALUE\r\n",
               b"VALUE k 2 99999999999\r\n", b"ERROR\r\n", b"SERVER_ERROR out of memory\r\n", b"END END\r\n\r\n"]

    def __init__(self, port):
        answers = self.ANSWERS
        self.asked = 0
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                while self.rfile.readline():
                    outer.asked += 1
                    self.wfile.write(answers[outer.asked % len(answers)])

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

            def handle_error(self, request, address):
                """A client that hangs up on nonsense is right to."""

        self.server = Server(("127.0.0.1", port), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
