"""SHA-256 of bytes, without what importing hashlib costs.

hashlib loads OpenSSL, three milliseconds of each start; the interpreter has the same function of its own.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256 as _function
else:
    # Once: Python looks through all of its path again for a module that was not there.
    try:
        from _sha2 import sha256 as _function  # from Python 3.12 on
    except ImportError:
        try:
            from _sha256 import sha256 as _function
        except ImportError:
            from hashlib import sha256 as _function


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return _function(data).hexdigest()
