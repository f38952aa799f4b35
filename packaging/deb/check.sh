#!/bin/bash
# Run by `cargo xtask test --only dist` inside a fresh Debian that has two versions of the package in
# /packages: install, upgrade, remove and purge, with a server that keeps a key meanwhile.
set -eu

old=$(echo /packages/*-1_*.deb)
new=$(echo /packages/*-2_*.deb)
settings=/etc/tremula/tremula.toml
data=/var/lib/tremula
wanted=/etc/systemd/system/multi-user.target.wants/tremula.service

fail() {
    echo "FAILED: $*"
    exit 1
}

is() {
    [ "$2" = "$3" ] || fail "$1: '$2' instead of '$3'"
}

# Starts the server as its user, on a free port, sends a line, and prints the last line of the reply.
ask() {
    coproc server {
        exec setpriv --reuid=tremula --regid=tremula --clear-groups \
            tremula serve --config "$settings" --port 0
    }
    local pid=$server_PID line port reply
    read -r -t 60 line <&"${server[0]}" || fail "the server does not start"
    port=$(echo "$line" | sed -n 's/.* ready on 127\.0\.0\.1:\([0-9]*\) .*/\1/p')
    [ -n "$port" ] || fail "the server says: $line"
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf '%s\r\nQUIT\r\n' "$1" >&3
    reply=$(tr -d '\r' <&3 | sed '$d' | tail -n 1)
    exec 3>&-
    kill -TERM "$pid"
    wait "$pid" || fail "the server does not end in order"
    echo "$reply"
}

echo "== install $old"
dpkg --install "$old"
is "the user" "$(getent passwd tremula | cut -d: -f6-)" "$data:/usr/sbin/nologin"
is "the settings" "$(stat -c '%U:%G %a' $settings)" "root:tremula 640"
is "the data" "$(stat -c '%U:%G %a' $data)" "tremula:tremula 700"
is "the program" "$(stat -c '%U:%G %a' /usr/bin/tremula)" "root:root 755"
[ -L "$wanted" ] || fail "the service is not enabled"
[ -s /usr/share/man/man1/tremula-serve.1.gz ] || fail "no manual page"
[ -s /usr/share/bash-completion/completions/tremula ] || fail "no completions"
[ -s /usr/share/doc/tremula/copyright ] || fail "no licences"
tremula --version
tremula config check $settings
is "a write" "$(ask 'SET kept yes')" "+OK"

echo "== upgrade to $new"
echo 'log-level = "warn"' >>$settings
dpkg --install "$new"
is "the version" "$(dpkg-query --show --showformat '${Version}' tremula | sed 's/.*-//')" 2
is "the administrator's line" "$(tail -n 1 $settings)" 'log-level = "warn"'
is "the settings" "$(stat -c '%U:%G %a' $settings)" "root:tremula 640"
is "a read" "$(ask 'GET kept')" "yes"

echo "== downgrade, and upgrade again"
dpkg --install "$old"
dpkg --install "$new"

echo "== remove"
dpkg --remove tremula
[ ! -e /usr/bin/tremula ] || fail "the program is still there"
[ -e $settings ] || fail "the settings are gone"
[ -n "$(ls $data)" ] || fail "the data is gone"

echo "== install again"
dpkg --install "$new"
[ -L "$wanted" ] || fail "the service is not enabled"
is "a read" "$(ask 'GET kept')" "yes"

echo "== purge"
dpkg --purge tremula
[ ! -e /etc/tremula ] || fail "the settings are still there"
[ ! -L "$wanted" ] || fail "the service is still enabled"
[ -n "$(ls $data)" ] || fail "the data is gone, which nobody has asked for"
find / -xdev -name '*tremula*' -not -path '/packages/*' -not -path '/proc/*' -not -path "$data*" | sort >/left
is "what is left" "$(grep -v '^/var/lib/systemd/' /left || true)" ""

echo "== install and purge without data"
rm -rf "$data"
dpkg --install "$new"
dpkg --purge tremula
[ ! -e "$data" ] || fail "an empty directory of data is still there"
echo "ALL PASSED"
