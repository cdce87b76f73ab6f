"""Lets a running `martlet bench` call functions of a race at set times: its commands ask a server of this process."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Control:
    """Functions by name; `words(name)` is the command that calls one and fails when it fails."""

    def __init__(self, functions):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                try:
                    functions[self.path[1:]]()
                    status, text = 200, b""
                except Exception as error:  # it belongs into the report of the run that asked, whatever it is
                    status, text = 500, f"{type(error).__name__}: {error}\n".encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                """The report says what was asked, and when."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def words(self, name):
        return ["curl", "-sS", "--fail-with-body", "-X", "POST", f"http://127.0.0.1:{self.server.server_port}/{name}"]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
