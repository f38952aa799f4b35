"""The Python client `redis` against a Tremula server: python redis_py.py PORT [TLS_PORT CERTIFICATE].

Ends with status 0 and the word "passed" if everything is as it should be. Where the server has to be
started again, it prints "restart", and waits for a line.
"""

import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

PORT = int(sys.argv[1])

# Commands of a large pipeline, of each kind.
PIPELINE = 10_000


def connect(port: int = PORT, **options) -> redis.Redis:
    """A client that is patient: the machine may be busy."""
    return redis.Redis(port=port, socket_timeout=60, socket_connect_timeout=60, **options)


def check(protocol: int) -> None:
    """Uses the client as a program would, in one version of the protocol."""
    client = connect(protocol=protocol, decode_responses=True, client_name="py")
    assert client.ping()
    client.flushall()
    assert client.client_getname() == "py"
    assert client.info("server")["redis_version"].startswith("7.")
    assert client.config_get("databases")["databases"] == "16"

    assert client.set("greeting", "hello")
    assert client.get("greeting") == "hello"
    assert client.set("greeting", "x", nx=True) is None
    assert client.set("greeting", "hi", get=True) == "hello"
    assert client.append("greeting", "!") == 3
    assert client.getrange("greeting", 0, 1) == "hi"
    assert client.strlen("greeting") == 3
    assert client.incr("n", 5) == 5
    assert client.incrbyfloat("f", 0.1) == 0.1
    assert client.mset({"a": "1", "b": "2", "c": "3"})
    assert client.mget("a", "missing", "c") == ["1", None, "3"]
    assert client.exists("a", "b", "missing") == 2
    assert client.type("a") == "string"
    assert client.delete("a", "missing") == 1
    assert client.getdel("b") == "2"

    with client.pipeline(transaction=False) as pipeline:
        for number in range(5_000):
            pipeline.set(f"key:{number:05}", number)
        assert all(pipeline.execute())
    assert len(set(client.scan_iter(match="key:*", count=100))) == 5_000
    assert client.dbsize() == len(client.keys())

    page = client.execute_command("RANGE", "[key:00010", "(key:00020", "LIMIT", 3)
    assert page == ["key:00010", "key:00011", "key:00012"], page
    assert client.execute_command("NEXT", "key:00010") == ["key:00011", "11"]
    assert client.execute_command("PREV", "") is None
    assert client.execute_command("DELRANGE", "[key:", "(key;") == 5_000
    assert client.execute_command("SHAPE")

    try:
        client.incr("greeting")
    except redis.ResponseError as error:
        assert "not an integer" in str(error), error
    else:
        raise AssertionError("greeting is no number")
    assert client.set("brief", "b", px=50) is True
    assert client.set("long", "b", ex=1000) is True
    assert 990 < client.ttl("long") <= 1000
    assert client.expire("long", 2000, gt=True) == 1
    assert client.getex("long", persist=True) == client.get("long")
    assert client.ttl("long") == -1
    deadline = time.monotonic() + 60
    while client.exists("brief"):
        assert time.monotonic() < deadline, "the key stays"
        time.sleep(0.01)
    assert client.ttl("brief") == -2

    # The default pipeline is a transaction.
    with client.pipeline() as pipeline:
        assert pipeline.set("tx", 1).incr("tx").get("tx").execute() == [True, 2, "2"]
        pipeline.set("tx", "lost").execute_command("NOSUCH")
        try:
            pipeline.execute()
        except redis.ResponseError as error:
            assert "unknown command" in str(error), error
        else:
            raise AssertionError("a command that is not known spoils its transaction")
    assert client.get("tx") == "2"

    # What has changed since it was read is read again.
    attempts = []

    def add(pipeline: redis.client.Pipeline) -> None:
        before = int(pipeline.get("tx"))
        if not attempts:
            client.set("tx", 10)
        attempts.append(before)
        pipeline.multi()
        pipeline.set("tx", before + 1)

    assert client.transaction(add, "tx") == [True]
    assert attempts == [2, 10] and client.get("tx") == "11"

    other = connect(db=3, protocol=protocol, decode_responses=True)
    assert other.get("greeting") is None
    assert len(client.client_list()) >= 2
    client.close()
    other.close()


def check_threads() -> None:
    """Many connections at once add up."""
    client = connect()
    client.delete("total")

    def add() -> None:
        for _ in range(300):
            client.incr("total")

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(client.get("total")) == 8 * 300


def check_users(admin: redis.Redis, protocol: int) -> None:
    """A user may do what his rules say, and nobody comes in with a wrong password."""
    rules = {"categories": ["+@all", "-@dangerous"], "keys": ["app:*"], "passwords": ["+secret"]}
    assert admin.acl_setuser("app", enabled=True, reset=True, **rules)
    app = connect(protocol=protocol, username="app", password="secret")
    assert app.set("app:1", "mine")
    assert app.get("app:1") == b"mine"
    assert app.acl_whoami() in ("app", b"app")
    for refused in (lambda: app.get("other"), app.flushall):
        try:
            refused()
        except redis.exceptions.NoPermissionError as error:
            assert "no permissions" in str(error), error
        else:
            raise AssertionError("the user may not do this")
    app.close()

    # By itself it would try again many times.
    once = Retry(NoBackoff(), 0)
    wrong = connect(protocol=protocol, username="app", password="wrong", retry=once)
    try:
        wrong.get("app:1")
    except redis.exceptions.AuthenticationError as error:
        assert "password" in str(error), error
    else:
        raise AssertionError("the password is wrong")
    wrong.close()


def check_pipelines(client: redis.Redis) -> None:
    """Replies of a large pipeline come in its order."""
    with client.pipeline(transaction=False) as pipeline:
        for number in range(PIPELINE):
            pipeline.set(f"key:{number}", number).incr("sum").get(f"key:{number}")
        replies = pipeline.execute()
    expected = [
        reply
        for number in range(PIPELINE)
        for reply in (True, number + 1, str(number).encode())
    ]
    assert replies == expected

    # A command that fails does not disturb its neighbours.
    with client.pipeline(transaction=False) as pipeline:
        replies = pipeline.set("n", "x").incr("n").get("n").execute(raise_on_error=False)
    assert replies[0] and replies[2] == b"x", replies
    assert "not an integer" in str(replies[1]), replies


def check_reconnects(admin: redis.Redis, protocol: int) -> None:
    """A client goes on when its connection or the server has ended."""
    app = connect(protocol=protocol, username="app", password="secret")
    before = app.client_id()
    assert admin.client_kill_filter(_id=before) == 1
    assert app.set("app:2", "again")
    assert app.client_id() > before, "it is a new connection"
    assert app.acl_whoami() in ("app", b"app"), "it has proved again who it is"
    app.close()

    assert admin.set("gone", "with the process")
    print("restart", flush=True)
    assert sys.stdin.readline(), "nobody has started the server again"
    assert admin.get("gone") is None


def check_tls(port: int, certificate: str) -> None:
    """The same over TLS, and not with a server that proves nothing."""
    client = connect(port, host="localhost", ssl=True, ssl_ca_certs=certificate)
    client.flushall()
    check_pipelines(client)
    client.close()
    suspicious = connect(port, host="localhost", ssl=True, retry=Retry(NoBackoff(), 0))
    try:
        suspicious.ping()
    except redis.ConnectionError as error:
        assert "CERTIFICATE_VERIFY_FAILED" in str(error), error
    else:
        raise AssertionError("the certificate is nobody's")


for version in (2, 3):
    check(version)
    operator = connect(protocol=version)
    operator.flushall()
    check_users(operator, version)
    check_pipelines(operator)
    check_reconnects(operator, version)
    operator.close()
check_threads()
if len(sys.argv) > 2:
    check_tls(int(sys.argv[2]), sys.argv[3])
print("passed")
