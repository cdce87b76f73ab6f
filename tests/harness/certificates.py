"""Certificates for tests, made by the `openssl` command: a key and what it signs for itself."""

import ssl
import subprocess


def make(folder, name="martlet.test"):
    """Paths of a new certificate for `name` and 127.0.0.1, and of its key."""
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    return certificate, key


def trusting(certificate):
    """What a client needs that trusts this certificate only."""
    return ssl.create_default_context(cafile=str(certificate))
