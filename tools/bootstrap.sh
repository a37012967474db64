#!/bin/sh
# Makes this folder ready to work: .venv with everything, and git, bubblewrap and RabbitMQ from the system's packages
# where that is allowed (root, or sudo without a password). Says what is missing where it is not. Quick the second time.
#
# RabbitMQ's service is never started, and not enabled: Rolecall runs a node of its own, as the user, on 127.0.0.1.
set -eu

cd "$(dirname "$0")/.."
venv=.venv
stamp=$venv/.rolecall-installed
policy=${ROLECALL_POLICY_FILE:-/usr/sbin/policy-rc.d}

say() { printf '%s\n' "bootstrap: $*"; }
fail() { printf '%s\n' "bootstrap: $*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# ---- the system's packages -------------------------------------------------------------------------------------------

have_rabbitmq() {
    have rabbitmq-server || [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || [ -x /usr/sbin/rabbitmq-server ] ||
        [ -x /opt/homebrew/opt/rabbitmq/sbin/rabbitmq-server ]
}

wanted() {
    have git || printf 'git '
    have bwrap || [ "$(uname)" != Linux ] || printf 'bubblewrap '
    have_rabbitmq || printf 'rabbitmq-server '
}

# Prints what to put before a command that needs root: nothing, or sudo. Fails where neither is to be had.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        :
    elif have sudo && sudo -n true 2>/dev/null; then
        printf 'sudo -n '
    else
        return 1
    fi
}

# A policy that denies every start of a service while packages are installed, whatever policy stood there before.
deny_services() {
    if [ -e "$policy" ]; then
        ${root}mv "$policy" "$policy.before-rolecall"
    fi
    printf '#!/bin/sh\nexit 101\n' | ${root}tee "$policy" >/dev/null
    ${root}chmod 755 "$policy"
}

allow_services() {
    ${root}rm -f "$policy"
    if [ -e "$policy.before-rolecall" ]; then
        ${root}mv "$policy.before-rolecall" "$policy"
    fi
}

install_with_apt() {
    trap allow_services EXIT
    trap 'exit 130' INT TERM
    deny_services
    if ${root}env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
        ${root}env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; then
        installed=0
    else
        installed=1
    fi
    allow_services
    trap - EXIT INT TERM
    # Installing also arranges a start at the next boot; nobody asked for that.
    case " $* " in
    *" rabbitmq-server "*)
        if have systemctl; then ${root}systemctl disable rabbitmq-server >/dev/null 2>&1 || :; fi
        ;;
    esac
    return $installed
}

install_packages() {
    missing=$(wanted)
    [ -n "$missing" ] || return 0
    # shellcheck disable=SC2086  # a list of words
    if have apt-get; then
        root=$(as_root) || { explain "apt-get install $missing" "it needs root"; return 0; }
        say "installing $missing(the service of RabbitMQ is not started)"
        install_with_apt $missing || explain "apt-get install $missing" "apt-get failed; is this machine offline?"
    elif have brew; then
        say "installing $missing"
        brew install $(printf '%s' "$missing" | sed 's/rabbitmq-server/rabbitmq/') ||
            explain "brew install $missing" "brew failed; is this machine offline?"
    else
        explain "your system's package manager" "no apt-get and no brew here"
    fi
}

explain() {
    say "missing: $(wanted)($2)"
    say "  get it with: $1"
    case "$(wanted)" in
    *git*) fail "nothing works without git." ;;
    esac
    say "  without bubblewrap no tests run (or set ROLECALL_SANDBOX=none); without RabbitMQ everything runs in one process"
}

# ---- Python ----------------------------------------------------------------------------------------------------------

find_python() {
    for name in python3.13 python3.12 python3.11 python3.14 python3 python; do
        if have "$name" && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s' "$name"
            return 0
        fi
    done
    return 1
}

install_python() {
    if [ ! -x "$venv/bin/python" ]; then
        python=$(find_python) || fail "Python 3.11 or newer is needed, and none was found."
        say "creating $venv with $("$python" --version)"
        "$python" -m venv "$venv" ||
            fail "$python cannot make a virtual environment (Debian, Ubuntu: apt-get install python3-venv)."
    fi
    [ "$(cat "$stamp" 2>/dev/null)" = "$(cksum <pyproject.toml)" ] && return 0
    say "installing the Python packages"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev]' ||
        fail "pip could not install them. Offline? Then this works once a package index is reachable (or PIP_INDEX_URL names one)."
    cksum <pyproject.toml >"$stamp"
}

install_packages
install_python
