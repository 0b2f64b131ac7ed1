# Sourced by the other scripts: changes to the project's root and sets up .venv there.
# The installation is repeated only after a change of pyproject.toml or of the Python version.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    echo "error: $*" >&2
    exit 1
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
        [[ -n $candidate ]] || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer is needed (set PYTHON=/path/to/python3 if it is not on the PATH)"
}

has() {
    command -v "$1" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null  # not on Debian's PATH
}

# Installs a package of Debian or Ubuntu, and adds the output to a log. Usage: apt_install PACKAGE LOG
apt_updated=
apt_install() {
    local sudo
    command -v apt-get >/dev/null || return 1
    sudo=$([[ $EUID -eq 0 ]] || command -v sudo || true)
    echo "Installing $1 (once) ..." >&2
    [[ -n $apt_updated ]] || $sudo apt-get update >>"$2" 2>&1 || true
    apt_updated=1
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$1" >>"$2" 2>&1
}

# Some platforms need a real browser. Debian has a package of Chromium without windows, whose pages need less processor
# time. Ubuntu has a package of Chromium. Elsewhere, playwright downloads its own.
ensure_chromium() {
    local name log
    for name in chromium-headless-shell chromium chromium-browser google-chrome-stable google-chrome; do
        has "$name" && return
    done
    log=$(mktemp)
    for name in chromium-headless-shell chromium; do
        apt_install "$name" "$log" && return
    done
    echo "Downloading playwright's chromium (once) ..." >&2
    if ! playwright install chromium >>"$log" 2>&1; then
        tail -n 5 "$log" >&2
        fail "Chromium is not installed, and its installation failed; the output is in $log
(on Debian and Ubuntu: apt-get install chromium; elsewhere: any Chromium on the PATH)"
    fi
}

# Installs programs that some tests start. Adds to "missing" what cannot be installed: its tests are skipped.
# Usage: ensure_programs PROGRAM:PACKAGE ...
missing=()
ensure_programs() {
    local each log
    log=$(mktemp)
    for each in "$@"; do
        has "${each%:*}" || apt_install "${each#*:}" "$log" || missing+=("${each%:*}")
    done
}

setup() {
    local python stamp expected log
    python=$(find_python)
    stamp=.venv/.installed
    expected=$("$python" -c 'import hashlib, pathlib, sys
print(sys.version_info[:2], hashlib.sha256(pathlib.Path("pyproject.toml").read_bytes()).hexdigest())')
    if [[ ! -f $stamp || $(cat "$stamp") != "$expected" ]]; then
        echo "Setting up .venv (once; a minute or two) ..." >&2
        log=$(mktemp)
        # Debian and Ubuntu ship Python without venv.
        "$python" -c 'import ensurepip, venv' 2>/dev/null || apt_install "${python##*/}-venv" "$log" || true
        if ! { "$python" -m venv .venv &&
            .venv/bin/python -m pip install --disable-pip-version-check -e '.[dev]'; } >>"$log" 2>&1; then
            tail -n 30 "$log" >&2
            fail "the setup failed; its output is in $log
(on Debian and Ubuntu: apt-get install python3-venv; after a change of Python: remove .venv and retry)"
        fi
        rm -f "$log"
        echo "$expected" >"$stamp"
    fi
    export PATH="$PWD/.venv/bin:$PATH"
}

setup
