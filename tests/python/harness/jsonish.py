"""Comparing JSON values without Python's `0 == False`, and folding events into a task."""

from __future__ import annotations

import copy
from collections.abc import Iterable


def same(left: object, right: object) -> bool:
    """Whether two JSON values are the same value; numbers are compared by value."""
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and left == right


def fold(events: Iterable[dict]) -> dict:
    """The task after a stream's items: the first is a snapshot, the others change it."""
    task: dict = {}
    for event in events:
        (kind,) = event
        body = event[kind]
        if kind == 'task':
            task = copy.deepcopy(body)
        elif kind == 'statusUpdate':
            assert body['taskId'] == task['id'], 'an event of another task'
            task['status'] = copy.deepcopy(body['status'])
        elif kind == 'artifactUpdate':
            assert body['taskId'] == task['id'], 'an event of another task'
            _add_artifact(task, body)
    return task


def _add_artifact(task: dict, update: dict) -> None:
    artifacts = task.setdefault('artifacts', [])
    new = copy.deepcopy(update['artifact'])
    for index, old in enumerate(artifacts):
        if old['artifactId'] == new['artifactId']:
            if update.get('append'):
                old['parts'].extend(new['parts'])
            else:
                artifacts[index] = new
            return
    assert not update.get('append'), f'an append to an artifact never seen: {update}'
    artifacts.append(new)


def texts(task: dict) -> dict[str, str]:
    """Each artifact's text parts joined, by artifact id."""
    return {
        artifact['artifactId']: ''.join(part.get('text', '') for part in artifact['parts'])
        for artifact in task.get('artifacts', [])
    }


def state_of(event: dict) -> str | None:
    """The state that a stream's item tells, if it tells one."""
    (kind,) = event
    if kind in ('task', 'statusUpdate'):
        return event[kind]['status']['state']
    return None


def walk(value: object, path: str = ''):
    """Every member of a JSON value with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f'{path}.{key}'.lstrip('.'), inner
            yield from walk(inner, f'{path}.{key}'.lstrip('.'))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield f'{path}[{index}]', inner
            yield from walk(inner, f'{path}[{index}]')
