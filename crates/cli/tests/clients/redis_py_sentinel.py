"""The Sentinel class of redis-py against a group: redis_py_sentinel.py PORT PORT PORT.

Ends with status 0 and the word "passed" if everything is as it should be. When the leader is to be
killed, it prints "kill", and waits for a line.
"""

import sys
import time

import redis
from redis.sentinel import MasterNotFoundError, Sentinel

# How long the group may take on a busy machine.
PATIENCE = 60


def eventually(what, attempt):
    """What an attempt returns that does not fail."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return attempt()
        except (redis.RedisError, OSError) as error:
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: {error!r}") from error
            time.sleep(0.05)


nodes = [("127.0.0.1", int(port)) for port in sys.argv[1:]]
sentinel = Sentinel(nodes, socket_timeout=5, min_other_sentinels=2)
first = eventually("a leader", lambda: sentinel.discover_master("main"))
assert first in nodes, first
replicas = sentinel.discover_slaves("main")
assert sorted(replicas) == sorted(node for node in nodes if node != first), replicas
try:
    sentinel.discover_master("other")
except MasterNotFoundError:
    pass
else:
    raise AssertionError("there is no such group")

master = sentinel.master_for("main", socket_timeout=5)
assert master.set("key", "before")
replica = sentinel.slave_for("main", socket_timeout=5)


def shown():
    if replica.get("key") != b"before":
        raise redis.RedisError("not yet")


eventually("a replica shows the key", shown)

listener = redis.Redis(*replicas[0]).pubsub()
listener.subscribe("+switch-master")

print("kill", flush=True)
assert sys.stdin.readline(), "nobody has killed the leader"
survivors = [node for node in nodes if node != first]
sentinel = Sentinel(nodes, socket_timeout=5)


def next_leader():
    address = sentinel.discover_master("main")
    if address == first:
        raise redis.RedisError("it is the old one")
    return address


second = eventually("another leader", next_leader)
assert second in survivors, second
# The client that knew the old leader finds the new one by itself.
assert eventually("a write", lambda: master.set("key", "behind"))
assert master.get("key") == b"behind"

deadline = time.monotonic() + PATIENCE
message = None
while message is None:
    assert time.monotonic() < deadline, "nobody tells of the new leader"
    message = listener.get_message(ignore_subscribe_messages=True, timeout=1)
told = f"main {first[0]} {first[1]} {second[0]} {second[1]}"
assert message["data"].decode() == told, message
print("passed")
