"""TLS on the gateway: `cert_file` and `key_file`, new certificates without dropping connections, clients that dawdle."""

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess

import pytest

from harness.certificates import make, trusting
from harness.martlet_up import MartletUp
from harness.waiting import until


@pytest.fixture
def tls(tmp_path):
    """`martlet up` with a certificate of its own."""
    up = SecureUp(tmp_path / "up", tmp_path / "tls")
    yield up
    up.stop()


class SecureUp(MartletUp):
    def __init__(self, root, folder):
        self.certificate, self.key = make(folder)
        super().__init__(root, arguments=["--tls-cert", self.certificate, "--tls-key", self.key])

    @property
    def auth_url(self):
        return f"https://127.0.0.1:{self.port}/auth/v1.0"

    def connect(self, context=None):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context or trusting(self.certificate), timeout=60)

    def presented(self):
        """The certificate that a new connection is shown."""
        return ssl.get_server_certificate(("127.0.0.1", self.port), timeout=60)


def ask(connection, method, path, **headers):
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    return response, response.read()


def test_clients_speak_tls(tls):
    tls.start()
    connection = tls.connect()
    login, _ = ask(connection, "GET", "/auth/v1.0", **{"X-Auth-User": "test:tester", "X-Auth-Key": "testing"})
    assert login.headers["X-Storage-Url"] == f"https://127.0.0.1:{tls.port}/v1/AUTH_test"
    token = {"X-Auth-Token": login.headers["X-Auth-Token"]}
    assert ask(connection, "PUT", "/v1/AUTH_test/c", **token)[0].status == 201
    big = os.urandom(3_000_000)
    connection.request("PUT", "/v1/AUTH_test/c/big", body=big, headers=token)
    reply = connection.getresponse()
    reply.read()
    assert reply.status == 201
    assert ask(connection, "GET", "/v1/AUTH_test/c/big", **token)[1] == big
    assert connection.sock.version() == "TLSv1.3"
    older = trusting(tls.certificate)
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    assert ask(tls.connect(older), "GET", "/healthcheck")[1] == b"OK"
    curl = subprocess.run(["curl", "-sS", "--cacert", tls.certificate, f"https://127.0.0.1:{tls.port}/info"], capture_output=True, text=True)
    assert json.loads(curl.stdout)["swift"], curl.stderr


def test_a_later_start_serves_tls_too(tls):
    tls.start()
    assert tls.stop() == 0
    again = SecureUp.__new__(SecureUp)
    again.__dict__.update(tls.__dict__)
    again.arguments = []
    again.start()
    again.stop()


def test_new_certificates_are_taken_and_bad_ones_are_not(tls, tmp_path):
    tls.start()
    old = tls.presented()
    lasting = tls.connect()
    assert ask(lasting, "GET", "/healthcheck")[1] == b"OK"
    context = trusting(tls.certificate)
    certificate, key = make(tmp_path / "new", "new.test")

    tls.certificate.write_text("nonsense")
    tls.process.signal(signal.SIGHUP)
    until(lambda: "stays in force" in tls.log())
    tls.process.await_text("there is no certificate in it", str(tls.certificate))
    shutil.copy(certificate, tls.certificate)  # with the old key
    until(lambda: "certificate and key cannot be used" in tls.log())
    assert tls.presented() == old

    shutil.copy(key, tls.key)
    new = certificate.read_text()
    until(lambda: tls.presented() == new)
    assert ask(lasting, "GET", "/healthcheck")[1] == b"OK"  # over the old one still
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(tls.connect(context), "GET", "/healthcheck")
    assert "PRIVATE KEY" not in tls.log()


def test_a_client_without_tls_delays_no_other(tls):
    tls.start()
    silent = [socket.create_connection(("127.0.0.1", tls.port)) for _ in range(50)]
    for number, connection in enumerate(silent):
        connection.sendall(b"\x16\x03\x01"[:number % 4])
    with socket.create_connection(("127.0.0.1", tls.port), timeout=60) as plain:
        plain.sendall(b"GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n")
        assert not plain.recv(100).startswith(b"HTTP")
    assert ask(tls.connect(), "GET", "/healthcheck")[1] == b"OK"
    assert tls.stop(within=45.0) == 0  # without waiting for them, as for requests: a minute
    for connection in silent:
        connection.close()


@pytest.mark.parametrize("fault, expected", [("missing", "cert.pem"), ("mismatch", "certificate and key cannot be used"), ("garbage", "no certificate in it")])
def test_a_bad_certificate_is_refused_at_start(tls, tmp_path, fault, expected):
    other, _ = make(tmp_path / "other")
    {"missing": tls.certificate.unlink, "mismatch": lambda: shutil.copy(other, tls.certificate),
     "garbage": lambda: tls.certificate.write_text("x")}[fault]()
    tls.launch()
    until(lambda: not tls.alive())
    assert expected in tls.log() and "ready" not in tls.log()
