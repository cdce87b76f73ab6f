"""HTTP by hand: exact bytes out, the reply as it came. For requests no client library would send."""

import http.client
import socket
from dataclasses import dataclass, field

http.client._MAXHEADERS = 1000  # a reply may carry more metadata than the library expects


def _headers(lines, _class=http.client.HTTPMessage):
    """Headers as they came: the library's own parser stops at names beyond ASCII."""
    found = _class()
    while (line := lines.readline(1 << 17)) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").rstrip("\r\n").partition(":")
        found[name] = value.strip()
    return found


http.client.parse_headers = _headers


@dataclass
class Reply:
    """A reply; `status` 0 means the connection was closed without one."""

    status: int
    reason: str = ""
    headers: list = field(default_factory=list)
    body: bytes = b""

    def header(self, name, default=None):
        return next((value for key, value in self.headers if key.lower() == name.lower()), default)

    def __getitem__(self, name):
        return self.header(name)


def message(method, target, headers=(), body=b""):
    """The bytes of a request. str parts go out as UTF-8 (surrogate escapes as their raw bytes)."""
    def raw(text):
        return text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")
    pairs = list(headers.items() if isinstance(headers, dict) else headers)
    names = {raw(name).lower() for name, _ in pairs}
    if b"host" not in names:
        pairs.insert(0, ("Host", "martlet.test"))
    if body and not {b"content-length", b"transfer-encoding"} & names:
        pairs.append(("Content-Length", len(body)))
    lines = [raw(method) + b" " + raw(target) + b" HTTP/1.1"] + [raw(n) + b": " + raw(v) for n, v in pairs]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(*pieces):
    """A chunked body of these pieces."""
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def exchange(port, payload, *, method="GET", hang_up=False, timeout=60):
    """Send `payload`, read one reply. `hang_up` closes our sending side after it, as a client that died would."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        try:
            connection.sendall(payload)
            if hang_up:
                connection.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the answer may be there although the rest of the request was refused
        return read_reply(connection, method)


def begin_upload(port, target, headers, length, first):
    """An upload that the server has taken up: it has asked for the body, and was sent `first` of it; the open connection."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    headers = {**headers, "Content-Length": length, "Expect": "100-continue"}
    connection.sendall(message("PUT", target, headers))
    asked = b""
    while not asked.endswith(b"\r\n\r\n"):
        part = connection.recv(1)
        assert part, f"refused with {asked!r}"
        asked += part
    assert asked.startswith(b"HTTP/1.1 100 "), asked
    connection.sendall(first)
    return connection


def finish_upload(connection, rest):
    """Its status."""
    with connection:
        connection.sendall(rest)
        return read_reply(connection, "PUT").status


def read_reply(connection, method="GET"):
    """The next reply on an open connection."""
    response = http.client.HTTPResponse(connection, method=method)
    try:
        response.begin()
        body = response.read()
    except http.client.IncompleteRead as short:
        body = short.partial + b"<cut>"
    except (http.client.BadStatusLine, ConnectionResetError):
        return Reply(0)
    return Reply(response.status, response.reason, response.getheaders(), body)


def says_length(method, status):
    """Whether Content-Length in such a reply says something: not where HTTP allows no body, nor of a body left out."""
    return status not in (204, 304) and (method != "HEAD" or status in (200, 206))
