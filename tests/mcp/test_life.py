"""From opening to the end: changes, crashes, reconnecting, secrets, and nothing left behind."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError, ToolError
from tests.mcp.support import ALLOW, PATIENCE, QUICK, Changes, bad, called, ends, good, kill, kind, web

SECRET = "sk-0123456789abcdef"


# -- changes ----------------------------------------------------------------------------------------


def test_a_list_that_changes_changes_the_catalog(fresh: rlm.Catalog) -> None:
    catalog = fresh
    client = catalog._clients[0]
    changes = Changes(client)
    held = catalog.registry.lookup("picture")
    before = catalog.revision
    assert called(catalog, "change", gone="picture", new="later").ok
    changes.until(lambda: "mcp_tool:t/later" in catalog and "mcp_tool:t/picture" not in catalog)
    assert catalog.revision > before
    assert called(catalog, "later", word="x").value == "later: x"
    assert "picture" not in catalog.registry
    assert kind(_outcome(held)) == "tool_removed"


def test_a_tool_that_was_changed_is_not_called_as_the_old_one(stdio: rlm.Catalog) -> None:
    changes = Changes(stdio._clients[0])
    assert called(stdio, "change", new="later", description="Harmless.").ok
    changes.until(lambda: "mcp_tool:t/later" in stdio)
    held = stdio.registry.lookup("later")
    assert called(stdio, "change", gone="later", new="later", description="Deletes everything.").ok
    changes.until(lambda: stdio["mcp_tool:t/later"].description == "Deletes everything.")
    assert kind(_outcome(held, word="x")) == "tool_changed"
    assert called(stdio, "later", word="x").ok


def _outcome(tool: rlm.Tool, **arguments: Any) -> rlm.ToolOutcome:
    import anyio

    from rlm.tools.execute import execute

    async def call() -> rlm.ToolOutcome:
        return await execute(tool, arguments, ALLOW, deadline=anyio.current_time() + PATIENCE)

    return anyio.run(call)


def test_what_the_host_took_out_or_replaced_stays_so(stdio: rlm.Catalog) -> None:
    changes = Changes(stdio._clients[0])
    mine = stdio["mcp_tool:t/shout"].model_copy(update={"description": "the host's own words"})
    stdio.add(mine, replace=True)
    stdio.remove("mcp_tool:t/fails")
    assert called(stdio, "change", new="later").ok
    changes.until(lambda: "mcp_tool:t/later" in stdio)
    assert stdio["mcp_tool:t/shout"].description == "the host's own words"
    assert "mcp_tool:t/fails" not in stdio
    assert "fails" not in stdio.registry


def test_a_refresh_is_had_on_demand(stdio: rlm.Catalog) -> None:
    assert "weather" in stdio._clients[0].refresh().tools


# -- crashes ----------------------------------------------------------------------------------------


def test_a_crash_makes_units_unavailable_until_the_server_is_back(stdio: rlm.Catalog) -> None:
    client = stdio._clients[0]
    seen: list[bool] = []
    client.on_change(lambda _: seen.append(stdio["mcp_tool:t/weather"].available))
    changes = Changes(client)  # last: it is told when the other listeners have been
    assert kind(called(stdio, "dies")) == "connection_lost"
    changes.until(lambda: len(seen) >= 2)
    assert seen[:2] == [False, True]
    assert called(stdio, "weather", city="Ulm").ok


def test_while_a_server_is_gone_its_units_are_explained_as_unavailable(tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o700)
    with rlm.Catalog() as catalog:
        client = catalog.add_mcp({"t": {**good(), "command": str(program)}}, limits=QUICK)["t"]
        changes = Changes(client)
        program.unlink()  # it cannot be started again
        assert kind(called(catalog, "dies")) == "connection_lost"
        changes.until(lambda: not catalog["mcp_tool:t/weather"].available)
        policy = rlm.Policy(capabilities={"mcp_tool:t/*"}, selected={"mcp_tool:t/weather"})
        view = rlm.compile(catalog, "how warm is it?", policy=policy)
        assert "mcp_tool:t/weather" not in view.active
        assert view.explain("mcp_tool:t/weather").reasons[0].kind == "unavailable"
        limits = client.limits.model_copy(update={"reconnect_seconds": 0.2})
        client._connection.limits = limits  # type: ignore[union-attr]
        outcome = called(catalog, "weather", city="Ulm")
        assert kind(outcome) == "not_connected"
        assert "was not found" in str(outcome.error)


def test_a_call_waits_for_the_connection_within_its_deadline() -> None:
    with web() as (url, process), rlm.Catalog() as catalog:
        client = catalog.add_mcp({"t": {"url": url}}, limits=QUICK)["t"]
        changes = Changes(client)
        port = int(url.rpartition(":")[2].partition("/")[0])
        kill(process)
        changes.until(lambda: not client.connected)
        with web(port=port):
            assert called(catalog, "weather", city="Ulm").ok
            assert catalog["mcp_tool:t/weather"].available


@pytest.mark.parametrize("age", ["", "legacy"])
def test_a_restarted_server_is_used_again_without_a_failure(age: str) -> None:
    limits = QUICK.model_copy(update={"ping_seconds": 600.0})  # nobody notices before the call does
    with web(*age.split()) as (url, process), rlm.Catalog() as catalog:
        catalog.add_mcp({"t": {"url": url}}, limits=limits)
        kill(process)
        with web(*age.split(), port=int(url.rpartition(":")[2].partition("/")[0])):
            assert called(catalog, "weather", city="Ulm").ok


@pytest.mark.parametrize("wire", ["stdio", "http"])
def test_a_write_that_was_under_way_is_never_sent_twice(wire: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with web() as (url, _), rlm.Catalog() as catalog:
        catalog.add_mcp({"t": good() if wire == "stdio" else {"url": url}}, limits=QUICK)
        assert kind(called(catalog, "dies", mark=str(mark))) == "connection_lost"
        assert mark.read_text() == "called\n"


def test_a_read_is_sent_again_once(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"t": good()}, limits=QUICK, tools={"effects": {"dies": "read"}})
        assert kind(called(catalog, "dies", mark=str(mark))) == "connection_lost"
        assert mark.read_text() == "called\ncalled\n"


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("hangs", "no answer within 0.5 s"),
        ("exits", "status 3; its standard error ends: no such model"),
        ("babbles", "lines to its output that are not messages"),
    ],
)
def test_a_server_that_cannot_be_spoken_to_is_an_error_that_says_why(what: str, said: str) -> None:
    limits = rlm.MCPLimits(connect_seconds=0.5 if what == "hangs" else 20, close_seconds=0.2)
    with pytest.raises(ToolError) as caught:
        rlm.MCPClient("b", bad(what), limits=limits).open()
    assert caught.value.kind == "not_connected"
    assert said in caught.value.message


@pytest.mark.parametrize("what", ["greets", "shouts"])
def test_noise_beside_the_messages_does_no_harm(what: str) -> None:
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"b": bad(what)}, limits=QUICK)
        assert called(catalog, "fine").value == "fine"


def test_a_server_that_answers_the_newer_handshake_too_late_is_asked_again() -> None:
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"b": bad("late")}, limits=QUICK.model_copy(update={"answer_seconds": 3.0}))
        assert "mcp_tool:b/fine" in catalog


def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(ToolError, match="no-such-program was not found"):
        rlm.MCPClient("x", {"command": "no-such-program"}).open()


def test_an_address_where_nobody_listens_is_an_error() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(ToolError, match="ConnectError"):
            rlm.MCPClient("x", {"url": f"http://127.0.0.1:{held.getsockname()[1]}/mcp"}).open()


# -- the end ----------------------------------------------------------------------------------------


LEAVES = """
import gc, json, sys, threading
import rlm
from tests.mcp.support import QUICK, called, good, open_files, web

with web() as (url, _):
    with rlm.Catalog() as warm:  # what is loaded once stays
        warm.add_mcp({"t": good(), "w": {"url": url}}, limits=QUICK)
        called(warm, "mcp_tool:t/shout", text="hi")
        called(warm, "mcp_tool:w/shout", text="hi")
    gc.collect()
    files, threads = open_files(), set(threading.enumerate())
    for _ in range(3):
        with rlm.Catalog() as catalog:
            clients = catalog.add_mcp({"t": good(), "w": {"url": url}}, limits=QUICK)
            pid = clients["t"]._connection._session.line.pid
            called(catalog, "mcp_tool:w/shout", text="hi")
            called(catalog, "mcp_tool:t/begets", mark=sys.argv[1])
    gc.collect()
    print(json.dumps({
        "files": sorted(open_files() - files),
        "threads": [thread.name for thread in set(threading.enumerate()) - threads if "rlm" in thread.name],
        "connected": [client.connected for client in clients.values()],
        "server": pid,
    }))
"""


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    mark = tmp_path / "grandchild"
    command = [sys.executable, "-c", LEAVES, str(mark)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    left = json.loads(done.stdout)
    assert (left["files"], left["threads"], left["connected"]) == ([], [], [False, False])
    assert ends(left["server"])
    assert ends(int(mark.read_text()))


def test_a_server_that_will_not_end_is_killed_within_its_grace() -> None:
    limits = QUICK.model_copy(update={"close_seconds": 0.2})
    client = rlm.MCPClient("b", bad("deaf"), limits=limits)
    client.open()
    pid = client._connection._session.line.pid  # type: ignore[union-attr]
    client.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_catalog_that_nobody_holds_lets_its_servers_go() -> None:
    catalog = rlm.Catalog()
    client = catalog.add_mcp({"t": good()}, limits=QUICK)["t"]
    pid = client._connection._session.line.pid  # type: ignore[union-attr]
    freed = threading.Event()  # a look at the lists that is under way holds it for a moment
    gone = weakref.ref(catalog, lambda _: freed.set())
    del catalog
    gc.collect()
    assert freed.wait(PATIENCE)
    assert gone() is None
    assert ends(pid)


def test_a_client_of_the_hosts_outlives_the_catalog_and_may_be_opened_again() -> None:
    client = rlm.MCPClient("t", good(), limits=QUICK)
    with client:
        with rlm.Catalog() as catalog:
            catalog.add_mcp(client)
            assert called(catalog, "shout", text="a").value == "A"
        assert client.connected
        other = rlm.Catalog()
        other.add_mcp(client)
    assert not other["mcp_tool:t/shout"].available
    assert kind(called(other, "shout", text="a")) == "not_connected"
    with client:
        assert other["mcp_tool:t/shout"].available
        assert called(other, "shout", text="b").value == "B"
    other.destroy()


@pytest.mark.anyio
async def test_it_is_an_async_context_manager_too() -> None:
    async with rlm.MCPClient("t", good(), limits=QUICK) as client:
        with rlm.Catalog() as catalog:
            await catalog.aadd_mcp(client)
            assert await client.aprompt("review", {"language": "C"})


@pytest.mark.parametrize("how", ["exit", "exception", "kill"])
def test_the_end_of_the_process_is_the_end_of_its_servers(how: str, tmp_path: Path) -> None:
    ending = {"exit": "", "exception": "raise SystemExit(3)", "kill": "os.kill(os.getpid(), 9)"}[how]
    code = f"""
import os, sys
import rlm
catalog = rlm.Catalog()
client = catalog.add_mcp({{"t": {good()!r}}})["t"]
print(client._connection._session.line.pid, flush=True)
{ending}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=Path.cwd())
    assert done.returncode == {"exit": 0, "exception": 3, "kill": -signal.SIGKILL}[how], done.stderr
    assert ends(int(done.stdout))
    assert "Traceback" not in done.stderr


def test_a_forked_child_does_not_use_the_parents_connection(stdio: rlm.Catalog) -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:  # in the child nothing of pytest may run
        import asyncio

        try:
            asyncio.run(stdio._clients[0].aprompt("review", {"language": "C"}))
        except ToolError as problem:
            os.write(writer, problem.message.encode())
        finally:
            os._exit(0)
    os.close(writer)
    said = os.read(reader, 1000).decode()
    os.close(reader)
    os.waitpid(pid, 0)
    assert "forked" in said
    assert called(stdio, "shout", text="parent").value == "PARENT"


# -- configuration and secrets ----------------------------------------------------------------------


def test_the_environment_is_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"t": good(env={"LEVEL": "given by the host"})}, limits=QUICK)
        said = called(catalog, "environment").value
    assert SECRET not in said
    assert "LEVEL=given by the host" in said
    assert "PATH=" in said


def test_headers_are_sent_and_stand_nowhere_else() -> None:
    with web(RLM_TEST_TOKEN=SECRET) as (url, _), rlm.Catalog() as catalog:
        headers = {"Authorization": f"Bearer {SECRET}"}
        client = catalog.add_mcp({"t": {"url": url, "headers": headers}}, limits=QUICK)["t"]
        assert called(catalog, "shout", text="let in").value == "LET IN"
        shown = called(catalog, "environment").value  # the server has it in its environment, and tells
        assert "RLM_TEST_TOKEN=[redacted]" in shown
        for text in (repr(client), repr(client._server), str(client._server), repr(vars(client)), client.problem):
            assert SECRET not in text
        assert SECRET not in client._server.model_dump_json()
        wrong = {"Authorization": f"Bearer {SECRET}-wrong"}
        with pytest.raises(ToolError, match="HTTP status 401") as caught:
            rlm.MCPClient("w", {"url": url, "headers": wrong}).open()
        assert SECRET not in str(caught.value.to_dict())


def test_headers_may_come_from_a_callable_anew_each_time() -> None:
    asked: list[int] = []

    def headers() -> dict[str, str]:
        asked.append(1)
        return {"Authorization": f"Bearer {SECRET}"}

    with web(RLM_TEST_TOKEN=SECRET) as (url, _), rlm.Catalog() as catalog:
        catalog.add_mcp({"t": {"url": url, "headers": headers}}, limits=QUICK)
        before = len(asked)
        assert called(catalog, "shout", text="a").ok
        assert len(asked) > before


def test_a_secret_in_the_environment_is_scrubbed_from_the_reason_of_the_end() -> None:
    with pytest.raises(ToolError) as caught:
        rlm.MCPClient("b", bad("exits", env={"API_KEY": SECRET})).open()
    assert "my key is [redacted]" in caught.value.message


def test_a_url_is_shown_without_what_may_be_secret_in_it() -> None:
    client = rlm.MCPClient("x", {"url": f"https://user:{SECRET}@mcp.example:8443/mcp?key={SECRET}"})
    assert "https://mcp.example:8443/mcp" in repr(client)
    assert SECRET not in repr(client) + repr(client._server)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({}, "either 'command' or 'url'"),
        ({"command": "a", "url": "http://b"}, "either 'command' or 'url'"),
        ({"comand": "a"}, "did you mean 'command'"),
        ({"command": "a", "args": "-y x"}, "'args' is a list of strings, not one string"),
        ({"command": "a", "args": ["-p", 80]}, "a number is written in quotes"),
        ({"command": "a", "args": {"x": 1}}, "'args' is a list of strings, not a dict"),
        ({"command": "a", "arg": []}, "did you mean 'args'"),
        ({"url": "ftp://a"}, "begins with http"),
        ({"url": "http://a", "type": "sse"}, "type 'sse'"),
        ({"command": "a", "env": {"A": 1}}, "'env' is an object whose values are strings .'A' is none"),
        ({"command": "a", "env": ["A=1"]}, "'env' is an object"),
        ("npx server", "a mapping"),
    ],
)
def test_a_wrong_configuration_is_an_error_before_anything_starts(server: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        rlm.MCPClient("x", server)


@pytest.mark.parametrize("name", ["", "a/b", "a b", "-a", "x" * 65, 3])
def test_a_servers_name_is_a_plain_word(name: Any) -> None:
    with pytest.raises(ConfigurationError):
        rlm.MCPClient(name, {"command": "a"})


def test_a_configuration_needs_a_name_of_the_hosts() -> None:
    with pytest.raises(ConfigurationError, match="a server needs a name"):
        rlm.Catalog().add_mcp({"command": "a", "args": []})


def test_a_file_in_the_common_form_is_read_and_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_FOR_TEST", SECRET)
    path = tmp_path / "mcp.json"
    servers = {
        "t": {**good(), "autoApprove": ["weather"]},
        "web": {
            "type": "http",
            "url": "http://127.0.0.1:9/mcp",
            "headers": {"Authorization": "Bearer ${TOKEN_FOR_TEST}"},
        },
        "off": {"command": "never", "disabled": True},
        "default": {"command": "${NO_SUCH_VARIABLE:-fallback}"},
    }
    path.write_text(json.dumps({"mcpServers": servers, "other": 1}))
    found = rlm.load_mcp_config(path)
    assert list(found) == ["t", "web", "default"]
    assert found["web"].headers["Authorization"].get_secret_value() == f"Bearer {SECRET}"  # type: ignore[union-attr,index]
    assert found["default"].place == "fallback"
    assert SECRET not in repr(found)
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"t": found["t"]}, limits=QUICK)
        assert catalog.registry.lookup("weather").effect == "write"
    path.write_text('{"mcpServers": {"a": {"command": "${NO_SUCH_VARIABLE}"}}}')
    with pytest.raises(ConfigurationError, match="NO_SUCH_VARIABLE"):
        rlm.load_mcp_config(path)
    path.write_text("{")
    with pytest.raises(ConfigurationError, match=r"mcp\.json"):
        rlm.load_mcp_config(path)


def test_without_the_extra_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["mcp"] = None
import rlm
try:
    rlm.Catalog().add_mcp({"t": {"command": "x"}})
except rlm.errors.ConfigurationError as problem:
    print(problem.kind, problem.message)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=Path.cwd())
    assert done.stdout == "mcp_missing MCP servers need the extra 'mcp': pip install 'prolog-rlm[mcp]'\n", done.stderr


def test_naming_a_client_loads_no_sdk() -> None:
    code = """
import sys, rlm
rlm.Catalog, rlm.MCPClient, rlm.MCPLimits, rlm.MCPTools, rlm.load_mcp_config
rlm.MCPClient("t", {"command": "x"})
print(sorted({"mcp", "mcp_types", "httpx2", "jsonschema"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=Path.cwd())
    assert done.stdout == "[]\n", done.stderr


# -- hostile addresses ------------------------------------------------------------------------------


@contextmanager
def answering(write: Any) -> Iterator[str]:
    """A bare HTTP server that answers every request by a function of its handler."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            write(self, json.loads(self.rfile.read(length)))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()


def test_an_answer_that_unpacks_to_more_than_the_limit_is_refused() -> None:
    import gzip

    def bomb(handler: BaseHTTPRequestHandler, request: Any) -> None:
        body = gzip.compress(b"0" * 50_000_000)
        handler.send_response(200)
        for name, value in (("Content-Type", "application/json"), ("Content-Encoding", "gzip")):
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with answering(bomb) as url, pytest.raises(ToolError, match="when unpacked"):
        rlm.MCPClient("x", {"url": url}).open()


def test_an_endless_body_ends_at_the_limit() -> None:
    def endless(handler: BaseHTTPRequestHandler, request: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b" " * 65_536)
        except OSError:
            pass

    with answering(endless) as url, pytest.raises(ToolError, match="an answer of over"):
        rlm.MCPClient("x", {"url": url}).open()


def test_headers_are_not_taken_to_another_address() -> None:
    visits: list[Any] = []

    def remember(handler: BaseHTTPRequestHandler, request: Any) -> None:
        visits.append(dict(handler.headers))
        handler.send_response(500)
        handler.end_headers()

    with answering(remember) as elsewhere:

        def redirect(handler: BaseHTTPRequestHandler, request: Any) -> None:
            handler.send_response(307)
            handler.send_header("Location", elsewhere)
            handler.end_headers()

        with answering(redirect) as url, pytest.raises(ToolError, match="not followed"):
            rlm.MCPClient("x", {"url": url, "headers": {"Authorization": f"Bearer {SECRET}"}}).open()
    assert visits == []


def test_a_server_that_says_nothing_over_http_is_an_error_in_time() -> None:
    released = threading.Event()

    def silent(handler: BaseHTTPRequestHandler, request: Any) -> None:
        released.wait(20)

    with answering(silent) as url:
        with pytest.raises(ToolError, match=r"no answer within 0\.5 s"):
            rlm.MCPClient("x", {"url": url}, limits=rlm.MCPLimits(connect_seconds=0.5)).open()
        released.set()
