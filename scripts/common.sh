# Sourced by the other scripts: where things are, and uv, which installs everything else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
uv=$root/.venv-tools/bin/uv
python=$root/.venv/bin/python
# The machine's certificates, as pip and apt use them: a proxy of the house is then no surprise.
export UV_SYSTEM_CERTS=1
certificates=/etc/ssl/certs/ca-certificates.crt
if [ -r "$certificates" ]; then export NODE_EXTRA_CA_CERTS=${NODE_EXTRA_CA_CERTS:-$certificates}; fi
# The tests start thousands of Python processes: what they import is compiled once, not by each.
unset PYTHONDONTWRITEBYTECODE
UV_VERSION=0.13.8

say() { printf '\n== %s\n' "$*" >&2; }

is_root() { [ "$(id -u)" = 0 ]; }

# Install the Debian packages named in the files given; 1 if some are missing and cannot be had.
debian_packages() {
  local missing=() name
  for name in $(sed 's/#.*//' "$@"); do
    dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done
  [ ${#missing[@]} = 0 ] && return 0
  if ! is_root || ! command -v apt-get >/dev/null; then
    say "Missing Debian packages: ${missing[*]} (as root: apt-get install ${missing[*]})"
    return 1
  fi
  say "Installing Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2 && without_services apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# Run a command that installs packages: programs are what we want of them, and no service is to start.
without_services() {
  local policy=/usr/sbin/policy-rc.d status=0
  [ -e "$policy" ] && { "$@"; return; }
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
  "$@" || status=$?
  rm -f "$policy"
  return "$status"
}

# uv in an environment of its own.
ensure_uv() {
  if "$uv" --version 2>/dev/null | grep -q " $UV_VERSION\b"; then return; fi
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    debian_packages <(echo python3-venv) || exit 1
  fi
  say "Installing uv $UV_VERSION"
  rm -rf .venv-tools
  python3 -m venv .venv-tools
  .venv-tools/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION"
}
