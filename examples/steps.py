#!/usr/bin/env python3
"""Works in steps. Run again after it was cut off, it goes on behind the last step that is stored."""
import json
import sys

STEPS = 5


def say(kind, **members):
    print(json.dumps({"type": kind, **members}), flush=True)


def main():
    turn = json.loads(sys.stdin.readline())
    done = turn.get("checkpoint", {"steps": 0})["steps"]
    if done:
        say("progress", text=f"attempt {turn['attempt']} goes on behind step {done}")
    for step in range(done + 1, STEPS + 1):
        # The result first: a step whose checkpoint is lost is done again, and its artifact has a new version.
        say("artifact", artifactId=f"step-{step}", text=f"result {step}\n", lastChunk=True)
        say("checkpoint", data={"steps": step})
    say("complete", text=f"{STEPS} steps")


if __name__ == "__main__":
    main()
