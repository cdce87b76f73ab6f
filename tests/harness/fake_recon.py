"""Servers whose `/recon` pages a test sets, each at an address of its own (127.0.0.N, ::1)."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from swift.common.ring import RingBuilder


class SixServer(ThreadingHTTPServer):
    address_family = socket.AF_INET6


class FakeReconServer:
    """`answers` maps paths (and "OPTIONS") to values, functions that give one, or statuses (numbers below 600). Bytes are sent as they are."""

    def __init__(self, answers, ip):
        self.answers, self.ip = answers, ip
        self.http = (SixServer if ":" in ip else ThreadingHTTPServer)((ip, 0), self._handler())
        self.port = self.http.server_port
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def _handler(self):
        answers = self.answers

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def send_response(self, code, message=None):  # without a Server header of its own
                self.send_response_only(code, message)

            def do_GET(self):
                page = answers.get(self.path, 404)
                page = page() if callable(page) else page
                status = page if isinstance(page, int) else 200
                body = b"page" if isinstance(page, int) else page if isinstance(page, bytes) else json.dumps(page).encode()
                self.send_response(status)
                self.send_header("Content-Length", len(body))
                self.end_headers()
                self.wfile.write(body)

            def do_OPTIONS(self):
                page = answers.get("OPTIONS", 200)
                self.send_response(page if isinstance(page, int) else 200)
                if not isinstance(page, int):
                    self.send_header("Server", page)
                self.send_header("Content-Length", 0)
                self.end_headers()

        return Handler

    def stop(self):
        self.http.shutdown()
        self.http.server_close()


def write_rings(etc, places, policies=("gold", "silver")):
    """swift.conf, and rings with a device at each (ip, port); regions and zones differ."""
    etc.mkdir(parents=True, exist_ok=True)
    text = "[swift-hash]\nswift_hash_path_suffix = x\n"
    for index, name in enumerate(policies):
        text += f"[storage-policy:{index}]\nname = {name}\n" + ("default = yes\n" if index == 0 else "")
    (etc / "swift.conf").write_text(text)
    for name in ["account", "container", "object", *(f"object-{index}" for index in range(1, len(policies)))]:
        builder = RingBuilder(4, 1, 1)
        for index, (ip, port) in enumerate(places):
            builder.add_dev({"id": index, "region": 1 + index % 2, "zone": index + 1, "weight": 100.0, "device": f"sd{index}", "ip": ip,
                             "port": port, "replication_ip": ip, "replication_port": port, "meta": ""})
        builder.rebalance(seed=1)
        builder.get_ring().save(str(etc / f"{name}.ring.gz"))
