"""The error table of §5.4 as a peer sees it, and one exception for all three bindings."""

from __future__ import annotations

from dataclasses import dataclass, field

ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo'
BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest'
DOMAIN = 'a2a-protocol.org'


@dataclass(frozen=True)
class Row:
    """One error's numbers: JSON-RPC code, HTTP status, gRPC status."""

    json_rpc: int
    http: int
    grpc: str


# §5.4; the last is the binding's own error for an invalid argument (§3.3.2, §9.5, §10.6, §11.6).
TABLE = {
    'TASK_NOT_FOUND': Row(-32001, 404, 'NOT_FOUND'),
    'TASK_NOT_CANCELABLE': Row(-32002, 400, 'FAILED_PRECONDITION'),
    'PUSH_NOTIFICATION_NOT_SUPPORTED': Row(-32003, 400, 'FAILED_PRECONDITION'),
    'UNSUPPORTED_OPERATION': Row(-32004, 400, 'FAILED_PRECONDITION'),
    'CONTENT_TYPE_NOT_SUPPORTED': Row(-32005, 400, 'INVALID_ARGUMENT'),
    'INVALID_AGENT_RESPONSE': Row(-32006, 500, 'INTERNAL'),
    'EXTENDED_AGENT_CARD_NOT_CONFIGURED': Row(-32007, 400, 'FAILED_PRECONDITION'),
    'EXTENSION_SUPPORT_REQUIRED': Row(-32008, 400, 'FAILED_PRECONDITION'),
    'VERSION_NOT_SUPPORTED': Row(-32009, 400, 'FAILED_PRECONDITION'),
    'INVALID_PARAMS': Row(-32602, 400, 'INVALID_ARGUMENT'),
}


@dataclass
class ApiError(Exception):
    """An error answer, as one binding wrote it."""

    binding: str
    message: str
    details: list[dict] = field(default_factory=list)
    json_rpc: int | None = None
    http: int | None = None
    grpc: str | None = None
    body: object = None

    def __str__(self) -> str:
        numbers = [n for n in (self.json_rpc, self.http, self.grpc) if n is not None]
        return f'{self.binding} {numbers} {self.message!r} {self.details}'

    @property
    def info(self) -> dict | None:
        """The answer's `ErrorInfo`."""
        return next((d for d in self.details if d.get('@type') == ERROR_INFO), None)

    @property
    def reason(self) -> str | None:
        return self.info.get('reason') if self.info else None

    @property
    def fields(self) -> list[str]:
        """The names in the answer's `BadRequest`, in order."""
        return [
            violation.get('field', '')
            for detail in self.details
            if detail.get('@type') == BAD_REQUEST
            for violation in detail.get('fieldViolations', [])
        ]

    def check(self, reason: str) -> ApiError:
        """Fails unless this is that error, with all its numbers right for the binding."""
        row = TABLE[reason]
        if self.binding == 'JSONRPC':
            assert self.json_rpc == row.json_rpc, f'expected {reason}: {self}'
            assert self.http == 200, f'a JSON-RPC error comes with HTTP 200: {self}'
        elif self.binding == 'HTTP+JSON':
            assert (self.http, self.grpc) == (row.http, row.grpc), f'expected {reason}: {self}'
        else:
            assert self.grpc == row.grpc, f'expected {reason}: {self}'
        assert self.message, f'an error says what is wrong: {self}'
        if reason == 'INVALID_PARAMS':
            assert self.reason not in TABLE.keys() - {reason}, f'expected {reason}: {self}'
        else:
            assert self.reason == reason, f'expected {reason}: {self}'
            assert self.info['domain'] == DOMAIN, f'wrong domain: {self}'
        return self


async def refused(call, reason: str) -> ApiError:
    """Awaits a call that has to be refused with that error, and returns the error."""
    try:
        answer = await call
    except ApiError as error:
        return error.check(reason)
    raise AssertionError(f'expected {reason}, was answered {answer!r}')
