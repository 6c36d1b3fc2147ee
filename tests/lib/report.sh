# Headings, times and counts for `./test`. Sourced, not run.

passed=0
failed=0
failures=()
step_number=0

# What ran is told apart from what it printed by its colour only where somebody looks at it.
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

# Prints a heading, runs a command, and leaves its output in $log and its exit code in $code.
run() {
    local name=$1
    shift
    step_number=$((step_number + 1))
    log=$WORK/logs/$(printf '%02d' "$step_number").log
    printf '\n%s== %s: %s%s\n' "$bold" "$name" "$*" "$plain"
    local begun=$SECONDS
    code=0
    "$@" 2>&1 | tee "$log" || code=$?
    local took=$((SECONDS - begun))
    local word=ok
    if [ "$code" -ne 0 ]; then
        word="FAILED with $code"
        failures+=("$name")
    fi
    printf '%s== %s: %s, %d min %02d s%s\n' \
        "$bold" "$name" "$word" $((took / 60)) $((took % 60)) "$plain"
}

# A command that counts as one check.
check() {
    run "$@"
    if [ "$code" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# A test runner that counts for itself: `suite KIND AT_LEAST NAME COMMAND...`, where KIND says how
# to read its closing lines, and fewer passed tests than AT_LEAST are a failure of their own.
suite() {
    local kind=$1 at_least=$2 name=$3
    shift 2
    run "$@"
    local good bad
    good=$("count_$kind" passed <"$log")
    bad=$("count_$kind" failed <"$log")
    if [ "$code" -eq 0 ] && [ "$good" -lt "$at_least" ]; then
        printf 'only %d tests ran, which cannot be right\n' "$good"
        failures+=("$name")
        bad=$((bad + 1))
    elif [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
}

# Adds up the numbers in whatever matches the expression; no match is 0.
sum_of() {
    { grep -oE "$1" || true; } | { grep -oE '[0-9]+' || true; } |
        awk '{ sum += $1 } END { print sum + 0 }'
}

without_colour() {
    sed 's/\x1b\[[0-9;]*m//g'
}

count_nextest() {
    local words='passed'
    [ "$1" = passed ] || words='failed|timed out|exec failed'
    without_colour | { grep -E 'Summary \[' || true; } | tail -1 | sum_of "[0-9]+ ($words)"
}

count_cargo() {
    without_colour | { grep -E '^test result:' || true; } | sum_of "[0-9]+ $1"
}

count_pytest() {
    local words='passed'
    [ "$1" = passed ] || words='failed|errors?'
    without_colour | tail -1 | sum_of "[0-9]+ ($words)"
}

count_node() {
    local words='pass'
    [ "$1" = passed ] || words='(fail|cancelled)'
    without_colour | sum_of "^(#|ℹ) $words [0-9]+\$"
}

# The closing lines, and the exit code of the whole.
finish() {
    if [ "${#failures[@]}" -gt 0 ]; then
        printf '\nfailed:\n'
        printf '  %s\n' "${failures[@]}"
    fi
    printf '\n%d min %02d s\n' $((SECONDS / 60)) $((SECONDS % 60))
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
