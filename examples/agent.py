#!/usr/bin/env python3
"""Asks how often, says how it is getting on, and delivers two artifacts."""
import json
import sys


def say(kind, **members):
    print(json.dumps({"type": kind, **members}), flush=True)


def text_of(message):
    return " ".join(part["text"] for part in message["parts"] if "text" in part)


def main():
    turn = json.loads(sys.stdin.readline())
    if turn["first"]:
        return say("input_required", text="How often shall I repeat it?")
    wanted, answer = text_of(turn["history"][0]), text_of(turn["message"])
    if not answer.isdecimal() or not 1 <= int(answer) <= 1000:
        return say("input_required", text="A number from 1 to 1000, please.")
    times = int(answer)
    say("progress", text=f"repeating {times} times")
    for number in range(1, times + 1):
        say("artifact", artifactId="lines", name="The lines", text=f"{wanted}\n",
            append=number > 1, lastChunk=number == times)
    counts = {"lines": times, "characters": times * len(wanted)}
    say("artifact", artifactId="summary", name="Summary", parts=[{"data": counts}])
    say("complete", text="done")


if __name__ == "__main__":
    main()
