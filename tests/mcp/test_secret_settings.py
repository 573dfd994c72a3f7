"""What of a server's own settings stands in no error: also where only the value tells that it is secret."""

from __future__ import annotations

import pytest

from rlm.tools.mcp.config import StdioServer


@pytest.mark.parametrize(
    ("settings", "secret"),
    [
        ({"env": {"DATABASE_URL": "postgres://app:hunter2hunter2@db/x"}}, "hunter2hunter2"),
        ({"env": {"DATABASE_URL": "postgres://app:p%40ssw0rd12@db/x"}}, "p@ssw0rd12"),
        ({"env": {"STORE": "amqp://u:longpassword@q"}}, "amqp://u:longpassword@q"),
        ({"env": {"SENTRY_DSN": "https://abcdef@sentry"}}, "https://abcdef@sentry"),
        ({"env": {"GITHUB_PAT": "ghp_0123456789"}}, "ghp_0123456789"),
        ({"env": {"DB_PWD": "correct horse"}}, "correct horse"),
        ({"args": ("--api-key=abcdefghij",)}, "abcdefghij"),
        ({"args": ("--token", "abcdefghij")}, "abcdefghij"),
        ({"args": ("postgresql://me:abcdefghij@db:5432/x",)}, "abcdefghij"),
    ],
)
def test_a_password_is_secret_wherever_the_settings_hold_it(settings: dict[str, object], secret: str) -> None:
    assert secret in StdioServer.model_validate({"command": "x", **settings}).secrets


def test_ordinary_settings_are_no_secrets() -> None:
    settings = {
        "NODE_ENV": "production",
        "LANG": "en_US.UTF-8",
        "URL": "https://example.com:8080/a@b",
        "PATH": "/usr/bin",
    }
    server = StdioServer.model_validate({"command": "x", "args": ("-y", "@a/server", "/tmp"), "env": settings})
    assert server.secrets == ()
