# Sourced by the other scripts: prints a script's help, changes to the project's root and sets up .venv there.
# A script that only runs the project sets environment=run first. All others also get the tools of developers.
# The installation is repeated only after a change of the dependencies or of the Python version.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

PROGRESS_SECONDS=3

fail() {
    echo "error: $*" >&2
    exit 1
}

# Prints the comment at the top of a script.
print_help() {
    local line
    while IFS= read -r line; do
        case $line in
            '#!'*) ;;
            '#'*) line=${line#\#} && echo "${line# }" ;;
            *) return ;;
        esac
    done <"$1"
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

# Prints a title, runs a command, and prints its last line of output every few seconds.
# Adds all output to a log. Usage: with_progress TITLE LOG COMMAND ...
with_progress() {
    local title=$1 log=$2
    shift 2
    echo "$title" >&2
    "$@" 2>&1 | tee -a "$log" | print_progress >&2
}

print_progress() {
    local line="" next code
    local printed=$SECONDS
    while true; do
        code=0
        IFS= read -r -t 1 next || code=$?
        if ((code == 0)); then
            line=$next
        elif ((code <= 128)); then  # the end of the output, not a timeout
            break
        fi
        if ((SECONDS - printed >= PROGRESS_SECONDS)); then
            printed=$SECONDS
            printf '  %3d s  %.100s\n' "$SECONDS" "${line# }"
        fi
    done
    cat >/dev/null  # bash 3 does not distinguish a timeout from the end of the output
}

# Installs a package of Debian or Ubuntu, and adds the output to a log. Usage: apt_install PACKAGE LOG
apt_updated=
apt_install() {
    local sudo=
    command -v apt-get >/dev/null || return 1
    if [[ $EUID -ne 0 ]]; then
        sudo=$(command -v sudo) || return 1
    fi
    if [[ -z $apt_updated ]]; then
        with_progress "Updating the list of packages ..." "$2" $sudo apt-get update || true
        apt_updated=1
    fi
    with_progress "Installing $1 (once) ..." "$2" \
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$1"
}

# Some platforms need a real browser. Debian has a package of Chromium without windows, whose pages need less processor
# time. Ubuntu has a package of Chromium. Elsewhere, playwright downloads its own. Playwright's driver is a Node.js that
# needs a library which minimal installations of Debian lack.
ensure_chromium() {
    local log
    log=$(mktemp)
    if ! has_chromium && ! apt_install chromium-headless-shell "$log" && ! apt_install chromium "$log" &&
        ! with_progress "Downloading playwright's chromium (once) ..." "$log" playwright install chromium; then
        tail -n 5 "$log" >&2
        fail "Chromium is not installed, and its installation failed; the output is in $log
(on Debian and Ubuntu: apt-get install chromium; elsewhere: any Chromium on the PATH)"
    fi
    if has playwright && ! playwright --version >>"$log" 2>&1; then
        apt_install libatomic1 "$log" || true
    fi
    rm -f "$log"
}

has_chromium() {
    local name
    for name in chromium-headless-shell chromium chromium-browser google-chrome-stable google-chrome; do
        has "$name" && return
    done
    return 1
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

# Installs the packages of docs/clients.md (the TypeScript compiler, the generator of types and the client) and the
# verifier of webhooks from the npm registry, once. Fails where npm is missing.
typescript=.venv/typescript
ensure_typescript() {
    local log packages
    read -ra packages < <(sed -n 's/^npm install //p' docs/clients.md)
    packages=(standardwebhooks@1.1.1 "${packages[@]}")
    [[ $(cat $typescript/.installed 2>/dev/null) != "${packages[*]}" ]] || return 0
    log=$(mktemp)
    has npm || apt_install npm "$log" || return 1
    mkdir -p $typescript
    # Install scripts only download optional parts, from other hosts.
    with_progress "Installing the TypeScript compiler (once) ..." "$log" \
        npm install --prefix $typescript --ignore-scripts --no-audit --no-fund "${packages[@]}" || return 1
    echo "${packages[*]}" >$typescript/.installed
    rm -f "$log"
}

# Creates .venv. Debian and Ubuntu ship Python without ensurepip, which venv needs to install pip. Where Python has pip,
# this pip installs into .venv, which also saves the time of ensurepip.
create_environment() {
    local python=$1 log=$2
    [[ ! -L .venv ]] || rm .venv  # --clear would empty the environment of another folder
    if "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m venv --clear --without-pip .venv >>"$log" 2>&1 || return 1
        install=("$python" -m pip --python .venv/bin/python install pip)
    else
        "$python" -c 'import ensurepip, venv' 2>/dev/null || apt_install "${python##*/}-venv" "$log" || true
        "$python" -m venv --clear .venv >>"$log" 2>&1 || return 1
        install=(.venv/bin/python -m pip install)
    fi
}

# Sets up .venv. Usage: setup run|locked|dev
#   run      what running needs
#   locked   the same, in the exact versions of requirements.lock, whose hashes pip checks
#   dev      also the tools of developers: for tests, checks and benchmarks
setup() {
    local python expected folder log title install=(.venv/bin/python -m pip install)
    python=$(find_python)
    expected=$("$python" -c 'import hashlib, pathlib, sys
names = ["requirements.lock"] if sys.argv[1] == "locked" else ["pyproject.toml", "requirements.txt"]
files = b"".join(pathlib.Path(name).read_bytes() for name in names)
print(sys.version_info[:2], hashlib.sha256(files).hexdigest())' "$1")
    # The programs in .venv/bin contain the path of .venv: they do not run after the project's folder has moved.
    folder=$(cat .venv/.folder 2>/dev/null || echo "$PWD")
    if [[ $folder == "$PWD" ]]; then
        [[ $(cat .venv/.installed-dev 2>/dev/null) != "$expected" ]] || return 0
        [[ $(cat ".venv/.installed-$1" 2>/dev/null) != "$expected" ]] || return 0
    fi
    [[ -w . ]] || fail "the folder $PWD is read-only: .venv cannot be created in it"
    [[ ! -e /etc/alpine-release ]] || fail "Playwright cannot be installed on Alpine Linux: use deploy/Dockerfile, or Debian"
    log=$(mktemp)
    if [[ $folder != "$PWD" ||
        $(.venv/bin/python -c 'import sys, pip; print(sys.version_info[:2])' 2>/dev/null) != "${expected% *}" ]]; then
        echo "Creating .venv with $python ..." >&2
        create_environment "$python" "$log" || setup_failed "$log"
    fi
    # Modules are compiled when they are first imported: the installation is faster, and .venv is smaller.
    install+=(--disable-pip-version-check --no-compile --progress-bar off)
    if [[ $1 == run ]]; then
        title="Installing the dependencies (once; half a minute) ..."
        install+=(-r requirements.txt)
    elif [[ $1 == locked ]]; then
        title="Installing the locked dependencies (once; half a minute) ..."
        install+=(--require-hashes --no-deps -r requirements.lock)
    else
        title="Installing the dependencies and the tools of developers (once; two minutes) ..."
        install+=(-e '.[dev]')
    fi
    with_progress "$title" "$log" "${install[@]}" || setup_failed "$log"
    rm -f "$log" .venv/.installed-*  # another installation may have changed the versions
    echo "$PWD" >.venv/.folder
    echo "$expected" >".venv/.installed-$1"
}

setup_failed() {
    tail -n 30 "$1" >&2
    fail "the setup failed; its output is in $1
(on Debian and Ubuntu: apt-get install python3-venv; after a change of Python: remove .venv and retry)"
}

for argument in "$@"; do
    case $argument in
        -h | --help)
            print_help "scripts/${0##*/}"
            exit ;;
    esac
done
[[ ${BASH_SOURCE[0]} != "$0" ]] || fail "scripts/common.sh is sourced by the other scripts"
setup "${environment:-dev}"
export PATH="$PWD/.venv/bin:$PATH"
# Without bytecode, each process would compile the project and its dependencies again.
unset PYTHONDONTWRITEBYTECODE
