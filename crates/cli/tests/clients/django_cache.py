"""Django's cache on a Tremula server, by Django's own backend for Redis: python django_cache.py PORT.

Ends with status 0 and the word "passed" if everything is as it should be. Where the server has to be
started again, it prints "restart", and waits for a line.
"""

import sys
import threading
import time

from django.conf import settings

PORT = int(sys.argv[1])


def backend(**options) -> dict:
    """The settings of one cache."""
    return {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": f"redis://127.0.0.1:{PORT}",
        "OPTIONS": {"socket_timeout": 60, "socket_connect_timeout": 60, **options},
    }


settings.configure(
    CACHES={
        "default": backend(),
        "other": {**backend(db=3), "KEY_PREFIX": "other", "TIMEOUT": None},
    },
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    USE_TZ=True,
)

# Django wants its settings first.
from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402
from django.core.cache import cache, caches  # noqa: E402


def check_values() -> None:
    """What is stored comes back, of any type and of any length."""
    cache.clear()
    assert cache.get("missing") is None and cache.get("missing", 7) == 7
    long = "x" * 3_000_000
    for value in [1, -5, 2.5, "text", b"bytes", None, True, {"a": [1, 2]}, long]:
        cache.set("value", value)
        assert cache.get("value", "nothing") == value
    assert "value" in cache and "missing" not in cache
    assert cache.delete("value") and not cache.delete("value")
    assert cache.get_or_set("made", lambda: 42) == 42
    assert cache.get_or_set("made", lambda: 43) == 42


def check_many() -> None:
    """Many keys at once, in a pipeline."""
    many = {f"k{number}": number for number in range(2_000)}
    assert cache.set_many(many, timeout=100) == []
    assert cache.get_many(many) == many
    cache.delete_many(list(many)[:1_500])
    assert len(cache.get_many(many)) == 500


def check_counters() -> None:
    """Threads count together, and nothing is lost."""
    assert cache.add("n", 1) and not cache.add("n", 5)
    assert cache.incr("n") == 2 and cache.decr("n", 5) == -3 and cache.incr("n", 13) == 10
    try:
        cache.incr("missing")
    except ValueError:
        pass
    else:
        raise AssertionError("what is not there cannot be counted")

    def count() -> None:
        for _ in range(200):
            cache.incr("n")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.get("n") == 810


def wait_until(condition) -> None:
    """Waits for what the clock brings."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def check_times() -> None:
    """Keys expire, when they should and not before, and others never."""
    begun = time.monotonic()
    cache.set("soon", 1, timeout=1)
    wait_until(lambda: cache.get("soon") is None)
    assert time.monotonic() - begun >= 1.0, "it has expired early"
    cache.set("gone", 1, timeout=0)
    assert cache.get("gone") is None
    cache.set("later", 1, timeout=1)
    assert cache.touch("later", 1_000) and not cache.touch("missing", 1_000)
    cache.set("never", 1, timeout=None)
    assert cache.add("once", 1, timeout=1) and not cache.add("once", 2)
    wait_until(lambda: cache.add("once", 2))
    assert cache.get("later") == 1 and cache.get("never") == 1 and cache.get("once") == 2


def check_spaces() -> None:
    """Caches with other databases, prefixes and versions do not see each other's keys."""
    other = caches["other"]
    other.clear()
    cache.set("same", "default")
    other.set("same", "other")
    cache.set("same", "second", version=2)
    assert [cache.get("same"), other.get("same")] == ["default", "other"]
    assert cache.get("same", version=2) == "second"
    assert cache.incr_version("same") == 2 and cache.get("same") is None
    assert cache.get("same", version=2) == "default"
    other.clear()
    assert other.get("same") is None and cache.get("same", version=2) == "default"


def check_sessions() -> None:
    """Sessions of users live in the cache."""
    session = SessionStore()
    session["user"] = "ada"
    session.set_expiry(1_000)
    session.save()
    again = SessionStore(session_key=session.session_key)
    assert again["user"] == "ada"
    again.cycle_key()
    assert not SessionStore().exists(session.session_key) and again.exists(again.session_key)
    again.flush()


def check_restart() -> None:
    """The cache goes on when the server has been started again."""
    cache.set("before", 1)
    print("restart", flush=True)
    sys.stdin.readline()

    def goes_on() -> bool:
        try:
            return cache.get("before", "empty") == "empty"
        except OSError:
            return False
        except Exception as error:  # of the client: a connection that was cut
            assert "onnection" in type(error).__name__, error
            return False

    wait_until(goes_on)
    cache.set("after", 1)
    assert cache.get("after") == 1


for check in [
    check_values,
    check_many,
    check_counters,
    check_times,
    check_spaces,
    check_sessions,
    check_restart,
]:
    check()
print("passed")
