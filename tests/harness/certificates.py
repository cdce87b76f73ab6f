"""Certificates for tests, made by the `openssl` command: a key and what it signs for itself."""

import datetime
import ipaddress
import ssl
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


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


class Authority:
    """A certificate authority of one's own, and what it issues for 127.0.0.1."""

    def __init__(self, folder, name="the authority"):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.name, self.key = folder, x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]), ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._write("ca", self._sign(self.name, self.key, 2, x509.BasicConstraints(ca=True, path_length=None)), self.key)[0]

    def issue(self, name, *, days=1, addresses=("127.0.0.1",)):
        """Paths of a certificate that ends in `days`, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address)) for address in addresses] + [x509.DNSName(name)])
        return self._write(name, self._sign(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]), key, days, names), key)

    def _sign(self, subject, key, days, extension):
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(self.name, subject, key.public_key(), x509.random_serial_number(), now - datetime.timedelta(days=9),
                                          now + datetime.timedelta(days=days))
        return builder.add_extension(extension, critical=False).sign(self.key, hashes.SHA256())

    def _write(self, name, certificate, key):
        paths = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        return paths
