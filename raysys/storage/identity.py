"""Who asks the store, told without what must stay secret."""

import re
from collections.abc import Iterable
from typing import Any

_SIGNED = re.compile(r"\?\S*(?:X-Amz-|Signature=|AWSAccessKeyId=)[^\s'\")]*", re.IGNORECASE)
_LOGIN = re.compile(r"://[^/@\s]+@")


def redacted(text: str, secrets: Iterable[str | None] = ()) -> str:
    """`text` in one line without the queries of signed links, without user and password in URLs, and without `secrets`."""
    for secret in secrets:
        if secret and len(secret) >= 8:  # a shorter one guards nothing, and would tear words apart
            text = text.replace(secret, "…")
    return " ".join(_LOGIN.sub("://…@", _SIGNED.sub("?…", text)).split())


class Identity:
    """The credentials in use.

    Args:
        credentials: botocore's credentials, or None where there are none.
    """

    def __init__(self, credentials: Any):
        self._credentials = credentials

    def __str__(self) -> str:
        """``credentials from env (access key ending in 'WXYZ')``: where they come from, and 4 characters to tell keys apart."""
        if self._credentials is None:
            return "no credentials"
        key = self._frozen[0] or ""
        return f"credentials from {self._credentials.method}" + (f" (access key ending in {key[-4:]!r})" if len(key) >= 8 else "")

    def hide(self, text: str) -> str:
        """`text` without the access key, the secret key and the session token, and as :func:`redacted` leaves it."""
        return redacted(text, self._frozen)

    @property
    def _frozen(self) -> tuple[str | None, ...]:
        """(access key, secret key, token) as they are now; botocore asks no one for new ones here."""
        own = "_" if hasattr(self._credentials, "_access_key") else ""
        return tuple(getattr(self._credentials, own + name, None) for name in ("access_key", "secret_key", "token"))
