"""SHA-256 of bytes, without what importing hashlib costs.

hashlib loads OpenSSL, three milliseconds of each start; the interpreter has the same function of its own.
"""


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    try:
        from _sha2 import sha256 as function  # type: ignore[import-not-found,unused-ignore]  # from Python 3.12 on
    except ImportError:
        try:
            from _sha256 import sha256 as function  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            from hashlib import sha256 as function
    digest: str = function(data).hexdigest()
    return digest
