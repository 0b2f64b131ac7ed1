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

# Some platforms need a real browser. Debian and Ubuntu have a package; elsewhere playwright downloads its own.
ensure_chromium() {
    local name sudo log
    for name in chromium chromium-browser google-chrome-stable google-chrome; do
        command -v "$name" >/dev/null && return
    done
    log=$(mktemp)
    if command -v apt-get >/dev/null; then
        echo "Installing chromium (once) ..." >&2
        sudo=$([[ $EUID -eq 0 ]] || command -v sudo || true)
        { $sudo apt-get update &&
            $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes chromium; } >"$log" 2>&1 && return
    fi
    echo "Downloading playwright's chromium (once) ..." >&2
    if ! playwright install chromium >>"$log" 2>&1; then
        tail -n 5 "$log" >&2
        fail "Chromium is not installed, and its installation failed; the output is in $log
(on Debian and Ubuntu: apt-get install chromium; elsewhere: any Chromium on the PATH)"
    fi
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
        if ! { "$python" -m venv .venv &&
            .venv/bin/python -m pip install --disable-pip-version-check -e '.[dev]'; } >"$log" 2>&1; then
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
