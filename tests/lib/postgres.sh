# The PostgreSQL server that the tests of one run share. Sourced, not run.

# Starts it, and tells the tests where it is. It ends with this shell, also when that is killed: when its standard input
# does, which no other process has an end of.
start_postgres() {
    coproc POSTGRES { exec "${CARGO_TARGET_DIR:-$PWD/target}/debug/longhaul-pgtest"; }
    trap stop_postgres EXIT
    # A coprocess that has ended takes its variables with it.
    local from=${POSTGRES[0]-/dev/null}
    read -r LONGHAUL_TEST_POSTGRES 2>/dev/null <&"$from" || die 'PostgreSQL did not start'
    export LONGHAUL_TEST_POSTGRES
}

stop_postgres() {
    local to=${POSTGRES[1]-} pid=${POSTGRES_PID-}
    [ -n "$pid" ] || return 0
    exec {to}>&-
    wait "$pid" || true
}
