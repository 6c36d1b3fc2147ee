# Installs what `./test` needs and a fresh Debian or Ubuntu lacks. Sourced, not run.

die() {
    printf '%s\n' "$@" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif has sudo; then
        sudo "$@"
    else
        die "cannot install packages: neither root nor sudo" "hint: run as root: $*"
    fi
}

apt_updated=false

# Installs Debian packages.
packages() {
    has apt-get || die "cannot install $*: there is no apt-get" "hint: install them and run ./test again"
    printf 'installing %s\n' "$*"
    if [ "$apt_updated" = false ]; then
        as_root apt-get -qq update
        apt_updated=true
    fi
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq install --yes --no-install-recommends "$@" >"$WORK/logs/apt.log" 2>&1 ||
        { cat "$WORK/logs/apt.log" >&2; die "cannot install $*"; }
}

install_rust_needs() {
    if ! has cargo && [ -f "$HOME/.cargo/env" ]; then
        # shellcheck source=/dev/null
        . "$HOME/.cargo/env"
    fi
    has cargo || die "there is no cargo" "hint: install Rust with rustup"
    local missing=()
    has cc || missing+=(gcc)
    has git || missing+=(git)
    [ -e /etc/ssl/certs/ca-certificates.crt ] || missing+=(ca-certificates)
    if ! { has cc && printf '#include <stdlib.h>\n' | cc -E - >/dev/null 2>&1; }; then
        missing+=(libc6-dev)
    fi
    # The tests set a server's clock with it.
    compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || missing+=(faketime)
    [ "${#missing[@]}" -eq 0 ] || packages "${missing[@]}"
    local component
    for component in fmt clippy; do
        cargo "$component" --version >/dev/null 2>&1 && continue
        has rustup || die "there is no cargo $component, and no rustup to get it with"
        rustup component add "${component/#fmt/rustfmt}"
    done
}

has_postgres() {
    has postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null ||
        { has pg_config && [ -x "$(pg_config --bindir)/postgres" ]; }
}

# Installs a PostgreSQL server, with pgbench. Whether its version will do is for longhaul-pgtest to say.
install_postgres_needs() {
    has_postgres && return
    # The package would make a cluster for the system and start it. Nothing here uses that.
    local setting=/etc/postgresql-common/createcluster.d/longhaul-test.conf
    as_root mkdir -p "$(dirname "$setting")"
    printf 'create_main_cluster = false\n' | as_root tee "$setting" >/dev/null
    packages postgresql
    as_root rm -f "$setting"
}

# Makes the Python environments of the lock files, unless they are there already.
install_python_needs() {
    if ! has python3 || ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
        packages python3 python3-venv
    fi
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        die "Python 3.10 or later is needed, this is $(python3 --version)"
    python_packages tests/python/requirements.lock "$WORK/venv"
}

# The official client and server of v0.3 have an environment of their own: the package has the name of its successor.
install_old_python_needs() {
    python_packages tests/python_v03/requirements.lock "$WORK/venv-v03"
}

python_packages() {
    local lock=$1 folder=$2 wanted
    wanted=$({ python3 -c 'import sys; print(sys.prefix, sys.version)'; cat "$lock"; } | sha256sum)
    if [ "$(cat "$folder/stamp" 2>/dev/null || true)" != "$wanted" ]; then
        printf 'installing the Python packages of %s\n' "$lock"
        rm -rf "$folder"
        python3 -m venv "$folder"
        "$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$lock"
        printf '%s' "$wanted" >"$folder/stamp"
    fi
}

# Unpacks nginx, for the tests of deploy/, unless the machine has one. Installed as a package it would start a web server.
install_nginx_needs() {
    if has nginx || [ -x "$WORK/nginx/usr/sbin/nginx" ]; then return; fi
    has apt-get || die "cannot get nginx: there is no apt-get" "hint: install it and run ./test again"
    printf 'unpacking nginx\n'
    rm -rf "$WORK/nginx"
    mkdir "$WORK/nginx"
    if [ "$apt_updated" = false ]; then
        as_root apt-get -qq update
        apt_updated=true
    fi
    (cd "$WORK/nginx" && apt-get -qq download nginx && dpkg --extract nginx_*.deb .) >"$WORK/logs/apt.log" 2>&1 ||
        { cat "$WORK/logs/apt.log" >&2; die "cannot get nginx"; }
    "$WORK/nginx/usr/sbin/nginx" -v 2>/dev/null || die "the nginx that was unpacked does not run here"
}

node_is_new_enough() {
    has node && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ]
}

# Installs the packages of tests/js/package-lock.json, and a Node 20 where the machine's is older.
install_js_needs() {
    has node || packages nodejs
    has npm || packages npm
    if ! node_is_new_enough; then
        npm_packages tests/js/node20
        local folder
        for folder in "$PWD"/tests/js/node20/node_modules/node-linux-*/bin; do
            PATH=$folder:$PATH
        done
        node_is_new_enough || die "Node 20 or later is needed, this is $(node --version)"
    fi
    npm_packages tests/js
}

# The official client of v0.3. Its successor beside it is that of tests/js.
install_old_js_needs() {
    npm_packages tests/js_v03
}

npm_packages() {
    local folder=$1 wanted
    wanted=$(sha256sum <"$folder/package-lock.json")
    if [ "$(cat "$folder/node_modules/.stamp" 2>/dev/null || true)" != "$wanted" ]; then
        printf 'installing the Node packages of %s\n' "$folder"
        (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
        printf '%s' "$wanted" >"$folder/node_modules/.stamp"
    fi
}
