"""Which files are likely to hold secrets, and so stay out of a corpus."""

from __future__ import annotations

import re

SECRET_REASON = "may hold secrets"

_NAMES = frozenset(
    (
        ".env",
        ".envrc",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".git-credentials",
        ".dockercfg",
        ".htpasswd",
        ".vault-token",
        "credentials.json",
        "client_secret.json",
        "service-account.json",
        "service_account.json",
        "application_default_credentials.json",
        "secrets.json",
        "secrets.yml",
        "secrets.yaml",
        "secrets.toml",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "id_ecdsa_sk",
        "id_ed25519_sk",
    )
)
_PATHS = (".aws/credentials", ".docker/config.json", ".kube/config", ".config/gcloud/")
_SUFFIXES = (".env", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk")
_KEY_SUFFIXES = (".pem", ".key", ".crt", ".p8")
_LONGEST_SUFFIX = max(map(len, _KEY_SUFFIXES))
_EXAMPLE = re.compile(r"\.(example|sample|template|dist|tmpl|defaults?)$")
_PRIVATE_KEY = b"PRIVATE KEY"


def may_hold_secrets(path: str) -> bool:
    """Tell by its path alone; `.env.example` and its like are no secrets."""
    name = path[path.rfind("/") + 1 :].lower()
    if name in _NAMES or name.startswith(".env.") or name.endswith(_SUFFIXES):
        return _EXAMPLE.search(name) is None
    if not path.startswith(".") and "/." not in path:
        return False
    return any(f"/{place}" in f"/{path}" for place in _PATHS)


def holds_private_key(path: str, head: bytes) -> bool:
    """Tell by the start of a file that is named like a key."""
    return path[-_LONGEST_SUFFIX:].lower().endswith(_KEY_SUFFIXES) and _PRIVATE_KEY in head
