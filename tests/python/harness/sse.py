"""Server-sent events, read as the WHATWG standard says."""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

LINE_END = re.compile(r'\r\n|\n|\r')


@dataclass(frozen=True)
class Comment:
    """A line that keeps the connection alive and says nothing."""

    text: str


@dataclass(frozen=True)
class Item:
    """One dispatched event."""

    event: str
    data: str
    id: str | None


async def read_items(chunks: AsyncIterator[bytes]) -> AsyncIterator[Item | Comment]:
    """Turns the bytes of a body into its items and comments, in order."""
    decode = codecs.getincrementaldecoder('utf-8-sig')().decode
    pending = ''
    event, data, last_id = '', [], None
    async for chunk in chunks:
        pending += decode(chunk)
        # A carriage return at the end may be half of a line end.
        keep = pending[-1:] == '\r'
        text, pending = (pending[:-1], '\r') if keep else (pending, '')
        *lines, rest = LINE_END.split(text)
        pending = rest + pending
        for line in lines:
            if line == '':
                if data:
                    yield Item(event or 'message', '\n'.join(data), last_id)
                event, data = '', []
            elif line.startswith(':'):
                yield Comment(line[1:])
            else:
                name, _, value = line.partition(':')
                value = value.removeprefix(' ')
                if name == 'data':
                    data.append(value)
                elif name == 'event':
                    event = value
                elif name == 'id':
                    last_id = value
