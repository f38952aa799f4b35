"""The Python client `redis` against a Tremula server: python redis_py.py PORT.

Ends with status 0 and the word "passed" if everything is as it should be.
"""

import sys
import threading

import redis

PORT = int(sys.argv[1])


def check(protocol: int) -> None:
    """Uses the client as a program would, in one version of the protocol."""
    client = redis.Redis(port=PORT, protocol=protocol, decode_responses=True, client_name="py")
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
    try:
        client.set("a", "b", ex=10)
    except redis.ResponseError as error:
        assert "SET option EX is not supported" in str(error), error
    else:
        raise AssertionError("keys do not expire yet")

    # The default pipeline is a transaction. It is refused, and nothing of it is done.
    with client.pipeline() as pipeline:
        pipeline.set("tx", "written")
        try:
            pipeline.execute()
        except redis.ResponseError as error:
            assert "MULTI is not supported" in str(error), error
        else:
            raise AssertionError("there are no transactions yet")
    assert client.get("tx") is None

    other = redis.Redis(port=PORT, db=3, protocol=protocol, decode_responses=True)
    assert other.get("greeting") is None
    assert len(client.client_list()) >= 2
    client.close()
    other.close()


def check_threads() -> None:
    """Many connections at once add up."""
    client = redis.Redis(port=PORT)
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


check(2)
check(3)
check_threads()
print("passed")
