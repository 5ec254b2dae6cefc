"""Certificates for tests, valid and invalid ones, from an authority made for the tests."""

import base64
import datetime
import hashlib
import pathlib
import ssl
import subprocess
import tempfile

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization


class TLS:
    """A certificate authority with one server certificate.

    expired: the certificate was valid until yesterday.
    asks_clients: clients must send a certificate of this authority.
    newest: the newest TLS version that the server supports.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        *names: str,
        expired: bool = False,
        asks_clients: bool = False,
        newest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
    ) -> None:
        self.authority = trustme.CA()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tls-", dir=folder))
        day = datetime.timedelta(days=1)
        now = datetime.datetime.now(datetime.timezone.utc)
        self.server = self.authority.issue_cert(
            *names, not_before=now - 2 * day, not_after=now - day if expired else now + day
        )
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.maximum_version = newest
        self.server.configure_cert(self.context)
        if asks_clients:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.authority.configure_trust(self.context)
        # Names that clients sent by SNI (RFC 6066 §3).
        self.names_asked: list[str | None] = []
        self.context.sni_callback = lambda _socket, name, _context: self.names_asked.append(name)
        self.ca_file = self.folder / "ca.pem"
        self.authority.cert_pem.write_to_path(str(self.ca_file))

    def ca_folder(self) -> pathlib.Path:
        """A folder with the authority's certificate under the name that OpenSSL looks for."""
        folder = self.folder / "authorities"
        folder.mkdir()
        self.authority.cert_pem.write_to_path(str(folder / "authority.pem"))
        subprocess.run(["openssl", "rehash", str(folder)], check=True)
        return folder

    def pin(self) -> str:
        """The pin of the server's public key, RFC 7469 §2.4."""
        return pin(self.server)

    def client(self, password: str = "") -> tuple[pathlib.Path, pathlib.Path]:
        """The files of a client certificate and of its key, encrypted by the password."""
        leaf = self.authority.issue_cert("client@example.org")
        certificate, key = self.folder / "client.pem", self.folder / "client.key"
        leaf.cert_chain_pems[0].write_to_path(str(certificate))
        private = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
        pem = serialization.PrivateFormat.PKCS8
        key.write_bytes(private.private_bytes(serialization.Encoding.PEM, pem, encryption))
        return certificate, key


def pin(leaf: trustme.LeafCert) -> str:
    certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    info = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return "sha256//" + base64.b64encode(hashlib.sha256(info).digest()).decode()
