#!/usr/bin/env python3
"""Starts `tremula serve` where the test suite of Redis starts `redis-server`.

    redis-server CONFIGURATION [--NAME VALUE ...]

Turns the suite's configuration into flags, and becomes the server: the suite signals this process.
`TREMULA` names the binary. A setting that is in none of the tables below ends the start.
"""

import os
import re
import shlex
import socket
import sys

# Settings that are flags here.
FLAGS = {
    "acl-pubsub-default": "--acl-pubsub-default",
    "bind": "--bind",
    "enable-debug-command": "--enable-debug-command",
    "latency-monitor-threshold": "--latency-monitor-threshold",
    "maxclients": "--max-clients",
    "notify-keyspace-events": "--notify-keyspace-events",
    "port": "--port",
    "protected-mode": "--protected-mode",
    "slowlog-log-slower-than": "--slowlog-log-slower-than",
    "timeout": "--timeout",
    "unixsocket": "--unix-socket",
}

# Levels of the log.
LEVELS = {"debug": "debug", "verbose": "info", "notice": "info", "warning": "warn"}

# Settings that have no effect, and why the suite can do without them.
IGNORED = {
    "activerehashing": "no hash tables that are rehashed",
    "always-show-logo": "no logo; the line with the process id is printed below",
    "appendfsync": "nothing is written to disk",
    "appendfilename": "nothing is written to disk",
    "appendonly": "nothing is written to disk",
    "daemonize": "the server stays in the foreground, as the suite wants",
    "databases": "always 16, as the suite wants",
    "dbfilename": "nothing is written to disk",
    "enable-module-command": "no modules",
    "enable-protected-configs": "no settings of files that clients may change",
    "logfile": "the suite reads the standard output",
    "no-appendfsync-on-rewrite": "nothing is written to disk",
    "pidfile": "no file of the process id",
    "propagation-error-behavior": "no replicas",
    "rdbcompression": "nothing is written to disk",
    "repl-diskless-sync-delay": "no replicas",
    "save": "nothing is written to disk",
    "slave-serve-stale-data": "no replicas",
}

# What Redis does without being asked. The suite starts many servers on the same ports, each empty.
AS_REDIS = ["--reserved-clients", "0", "--max-memory", "0", "--memory-only"]


def fail(why):
    """Ends the start, and lets the test know at once: the suite would wait for the server."""
    with open(os.environ["TREMULA_PROBLEM"], "w", encoding="utf-8") as file:
        file.write(f"redis-server.py: {why}")
    sys.exit(f"redis-server: {why}")


def settings(arguments):
    """The settings of the file and of the command line, in order, as pairs of name and values."""
    file, *rest = arguments
    with open(file, encoding="utf-8") as lines:
        words = [shlex.split(line) for line in lines]
    while rest:
        name, rest = rest[0].removeprefix("--"), rest[1:]
        values = []
        while rest and not rest[0].startswith("--"):
            values, rest = [*values, rest[0]], rest[1:]
        words.append([name, *values])
    return [(name, values) for name, *values in filter(None, words)]


def flags(pairs):
    """The flags of `tremula serve`."""
    last = dict(pairs)
    directory = last.get("dir", ["."])[0]
    result = list(AS_REDIS)
    users = []
    for name, values in last.items():
        if name in FLAGS:
            result += [FLAGS[name], " ".join(values)]
        elif name == "loglevel":
            result += ["--log-level", LEVELS[values[0]]]
        elif name == "requirepass":
            result += ["--password-file", write(directory, "password", values[0])]
        elif name == "aclfile":
            result += ["--acl-file", os.path.join(directory, values[0])]
        elif name == "user":
            users = [" ".join(["user", *values]) for key, values in pairs if key == "user"]
        elif name == "dir" or name in IGNORED:
            pass
        else:
            fail(f"the setting {name!r} is in none of the tables")
    if users:
        result += ["--acl-file", write(directory, "users.acl", "\n".join(users))]
    return result


def write(directory, name, text):
    """Writes a file beside the server's own, and returns its path."""
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    return path


# What the server is told before the suite may come, each with its reply.
PREPARATION = [
    # Without any password AUTH is refused for all users, a meant difference. So there is a user with
    # one, whom the unit acl wants anyway: it makes him in a case that needs scripts.
    b"ACL SETUSER antirez on >foo +set ~object:1234\r\n",
    # Redis knows under every policy when a key was used; here only a policy that needs it does. What
    # it needs is made for the limit of that moment. Then there is none, and nothing is evicted.
    b"CONFIG SET maxmemory 11mb maxmemory-policy allkeys-lru\r\n",
    b"CONFIG SET maxmemory 0\r\n",
]


def prepare(port):
    """Tells the server what it is told before the suite may come."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for command in PREPARATION:
            connection.sendall(command)
            answer = connection.recv(100)
            if answer != b"+OK\r\n":
                fail(f"{command} is answered with {answer}")


def relay(output, server, has_users):
    """Passes the server's output on, with the lines that the suite waits for."""
    is_ready = False
    for line in output:
        print(line, end="")
        if ready := re.match(r"tremula \S+ ready on [\d.]+:(\d+) ", line):
            is_ready = True
            if not has_users:
                prepare(int(ready[1]))
            print(f" PID: {server}\nReady to accept connections")
        sys.stdout.flush()
    if not is_ready:
        fail("the server does not start; its errors are in the suite's folder tests/tmp")


def main():
    """Becomes the server."""
    pairs = settings(sys.argv[1:])
    given = flags(pairs)
    has_users = any(name in ("aclfile", "requirepass", "user") for name, _ in pairs)
    read, write_end = os.pipe()
    server = os.getpid()
    if os.fork() == 0:
        os.close(write_end)
        with open(read, encoding="utf-8") as output:
            relay(output, server, has_users)
    else:
        os.dup2(write_end, 1)
        tremula = os.environ["TREMULA"]
        os.execv(tremula, [tremula, "serve", *given])


main()
