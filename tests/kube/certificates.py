"""A certificate authority for one control plane, and the certificates that its parts know each other by."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from portal.embedded.folder import write_private

_LIFE = timedelta(days=7)
_USES = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])


class Authority:
    """Writes `NAME.crt` and `NAME.key` (0600) into its folder; `ca.crt` is its own certificate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = _name("muster-kube-ca", "")
        built = _builder(name, name, self._key.public_key())
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        built = built.add_extension(_key_usage(signs=True), critical=True)
        self._certificate = built.sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(Encoding.PEM).decode()
        (folder / "ca.crt").write_text(self.pem)

    def issue(self, file: str, user: str, *, group: str = "") -> None:
        """Make a certificate of a user of the API server, which serves on the loopback interface as well."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = _builder(_name(user, group), self._certificate.subject, key.public_key())
        names = [x509.DNSName("localhost"), x509.DNSName("kubernetes.default.svc")]
        addresses = [x509.IPAddress(ipaddress.ip_address(each)) for each in ("127.0.0.1", "10.0.0.1")]
        built = built.add_extension(x509.SubjectAlternativeName([*names, *addresses]), critical=False)
        built = built.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        built = built.add_extension(_key_usage(signs=False), critical=True).add_extension(_USES, critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        built = built.add_extension(issuer, critical=False)
        certificate = built.sign(self._key, hashes.SHA256())
        (self.folder / f"{file}.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
        write_private(self.folder / f"{file}.key", _pem(key))

    def make_key_pair(self, file: str) -> None:
        """Make the pair that service account tokens are signed and checked with."""
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(self.folder / f"{file}.key", _pem(key))
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (self.folder / f"{file}.pub").write_bytes(public)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
        # OpenSSL's strict mode, which Python turns on, wants both.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(user: str, group: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    return x509.Name([*parts, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else parts)


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
