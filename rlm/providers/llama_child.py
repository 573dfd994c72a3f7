"""The process that holds llama.cpp: a model behind an OpenAI-compatible server on a free loopback port.

Run as a script by ``rlm.providers.llama``, never imported by it. The first line of standard input is the options
as JSON; the only line on standard output is the answer, ``{"address": url, "window": tokens, "takes_tools": bool}`` or
``{"error": text}``. The end of standard input ends this process; it comes with every end of the
parent. Everything that llama.cpp prints goes to standard error.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from typing import Any

ERRORS_ONLY = 1


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    options = json.loads(sys.stdin.readline())
    sys.path.append(options["site"])
    try:
        server = started(options)
        address = server.listening_address
        answer = {"address": address, **properties_of(address, options["key"])}
    except Exception as problem:  # noqa: BLE001 - the parent reports any error
        answer = {"error": str(problem) or type(problem).__name__}
    print(json.dumps(answer), file=answers, flush=True)
    if "address" in answer:
        sys.stdin.read()
    os._exit(0)  # no clean-up is required, and a busy model would delay it


def started(options: dict[str, Any]) -> Any:
    """Return a listening server with a loaded model."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options["model"]
    required_settings = {
        "port": 0,
        "api_keys": [options["key"]],
        "n_ctx": options["window"],
        "n_parallel": options["parallel"],
    }
    optional_settings = {  # one release of xllamacpp has settings that another has not
        "hostnames": ["127.0.0.1"],
        "model_alias": {options["alias"]},
        "kv_unified": True,  # one pool of tokens: a request alone may use the whole window
        "cache_ram_mib": 0,  # the default keeps up to 8 GiB of old prompts
        "warmup": False,
        "ui": False,
        "endpoint_slots": False,  # it shows other requests' prompts
        "verbosity": ERRORS_ONLY,  # above it prompts are printed
    }
    for name, value in required_settings.items():
        setattr(params, name, value)
    for name, value in optional_settings.items():
        if hasattr(params, name):
            setattr(params, name, value)
    for cores in (params.cpuparams, params.cpuparams_batch):
        for name, value in (("n_threads", options["threads"]), ("poll", 0)):  # spinning starves shared cores
            setattr(cores, name, value)
    return xllamacpp.Server(params)


def properties_of(address: str, key: str) -> dict[str, Any]:
    """Return ``window`` and ``takes_tools`` of a server.

    ``window`` is the tokens of one request: the option's, or less if the model was trained with less. ``takes_tools``
    is true if the model's chat template has a place for native tools.
    """
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)
    connection.request("GET", "/props", headers={"Authorization": f"Bearer {key}"})
    props = json.loads(connection.getresponse().read())
    connection.close()
    caps = props.get("chat_template_caps")  # not in every release
    takes_tools = caps["supports_tools"] if caps else "tools" in props["chat_template"]
    return {"window": int(props["default_generation_settings"]["n_ctx"]), "takes_tools": bool(takes_tools)}


if __name__ == "__main__":
    main()
