"""Objects that stand for something in the library, of which there is one."""
from __future__ import annotations

from typing import NoReturn, SupportsIndex


class Handle:
    """Has no copy: copy.copy, copy.deepcopy and pickle raise TypeError, where an alias would look like one."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"a reprise.{type(self).__name__} cannot be copied or pickled: make another one")
