# Sourced by the scripts beside it: `ensure_venv run`, `dev` or `site` leaves a `.venv` in which
# the package is installed in place (the last two: with the dependency group of that name), doing
# nothing when that was done before. $python is then the interpreter to call.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$root/.venv
python=$venv/bin/python

fail() {
    printf '%s\n' "$@" >&2
    exit 2
}

is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if is_recent "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is needed and was not found." \
        "On Debian 12 or newer: apt-get install python3 python3-venv" \
        "Elsewhere: install it and name it, as in PYTHON=/path/to/python3.12 $0"
}

can_make_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

# Debian's Python comes without its venv module; root of a bare machine means us to get it.
add_venv_module() {
    if [ "$(id -u 2>/dev/null)" != 0 ] || ! command -v apt-get >/dev/null; then return; fi
    echo "installing python$1-venv with apt-get" >&2
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
        --no-install-recommends "python$1-venv"; } </dev/null >&2 || true
}

create_venv() {
    base=$(find_python)
    if ! can_make_venv "$base"; then
        version=$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        add_venv_module "$version"
    fi
    if ! can_make_venv "$base"; then
        fail "$base cannot create virtual environments: its venv module is missing." \
            "On Debian: apt-get install python3-venv   (or python$version-venv)"
    fi
    echo "creating $venv" >&2
    "$base" -m venv --clear "$venv"
}

# What an installation depends on; when it changes, it is done again.
fingerprint() {
    { printf '%s\n' "$root"; cat "$root/pyproject.toml"; "$python" -V; } | cksum
}

is_installed() {
    for kind in "$@"; do
        stamp=$venv/.rlm-rag-$kind
        if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint)" ]; then
            return 0
        fi
    done
    return 1
}

ensure_venv() {
    case $1 in
        run) enough="run dev site" ;;
        site) enough="site dev" ;;
        *) enough=$1 ;;
    esac
    # shellcheck disable=SC2086 # one word a kind
    if is_recent "$python" && is_installed $enough; then return; fi
    if ! is_recent "$python" || ! "$python" -m pip --version >/dev/null 2>&1; then
        create_venv
    fi
    echo "installing into $venv (a minute or two the first time)" >&2
    # Dependency groups came with pip 25.1.
    quiet_pip install --upgrade 'pip>=25.1'
    if [ "$1" = run ]; then
        quiet_pip install -e "$root"
    else
        (cd "$root" && quiet_pip install -e . --group "$1")
    fi
    fingerprint >"$venv/.rlm-rag-$1"
}

quiet_pip() {
    "$python" -m pip --disable-pip-version-check --no-input -q "$@" >&2
}
