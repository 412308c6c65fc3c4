"""A real HTTP server on loopback that speaks the OpenAI chat protocol, well and badly.

    with OpenAIServer() as server:
        server.script(Reply(pieces=("Hello", " there.")), Reply(status=429, headers={"retry-after": "1"}))
        ...                                   # requests take the scripted replies in order, later ones the default
        assert server.requests[0].body["model"] == "test-model"
        assert server.requests[0].disconnected.wait(5)   # the client hung up before the end

The default reply is derived from the prompt, so that it can be wrong when the prompt is: the abstract that shares most words with the
question answers with its first sentence and its number. Nothing shared, nothing answered.
"""

from __future__ import annotations

import json
import re
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

from rag.prompts import CANNOT_ANSWER

Fault = Literal[
    "break",  # the connection closes after the pieces, in mid-stream
    "stall",  # after the pieces nothing more comes, and the connection stays open
    "silent",  # not even a status line comes
    "trickle_head",  # the status line comes a byte at a time, and never ends
    "trickle",  # after the pieces an event comes a byte at a time, and never ends
    "comments_first",  # only comments come, which keep a connection alive, and never a piece
    "html",  # a page instead of a completion, with the reply's status
    "json",  # one JSON object instead of a stream, with status 200
    "empty",  # an event stream without an event
    "garbage",  # an event that is no JSON
    "error_event",  # an error object within the stream, after the pieces
    "no_usage",  # usage is never reported
    "empty_choices",  # chunks with an empty choice list, null choices and none at all between the pieces
    "null_content",  # chunks with null content, null delta and no delta at all between the pieces
    "parts",  # content as a list of typed parts
    "break_at_end",  # the connection closes once the stream has said why it ended
    "no_finish",  # the stream ends in order, but never says why
    "end_without_delta",  # the chunk that says why it ended has no delta
    "refusal",  # the pieces come as a refusal
]


@dataclass(frozen=True)
class Reply:
    """One answer: what to say, how, and what goes wrong. `body` (a dict or text) replaces the completion."""

    pieces: Sequence[str] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | str | None = None
    fault: Fault | None = None
    finish: str = "stop"
    usage: tuple[int, int] = (11, 7)
    delay_s: float = 0.0
    events: Sequence[str] = ()  # exactly these events, in place of a completion's


@dataclass
class Request:
    """What a client sent. `disconnected` is set once the client has hung up before the end of its reply."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float
    disconnected: threading.Event = field(default_factory=threading.Event)

    def text(self, role: str) -> str:
        """The content of the first message of a role."""
        return next((m["content"] for m in self.body.get("messages", ()) if m["role"] in (role, {"system": "developer"}.get(role))), "")


class OpenAIServer:
    """The server; use it in a `with`. `key`: refuse every other one (None: take any). `behaviour`: instead of the default reply."""

    def __init__(
        self, *, key: str | None = None, models: Sequence[str] = ("gpt-5.4-mini", "test-model"), behaviour: Callable[[Request], Reply] | None = None
    ) -> None:
        self.key = key
        self.models = models
        self.behaviour = behaviour or answer_from_prompt
        self.models_reply: Reply | None = None  # instead of the list of models
        self.window: int | None = 32_768  # of every model, told as vLLM does; None: not told
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._script: deque[Reply] = deque()
        self._http = _Http(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def root(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def url(self) -> str:
        """The address of the API."""
        return f"{self.root}/v1"

    @property
    def chats(self) -> list[Request]:
        """The chat requests."""
        return [r for r in self.requests if r.path == "/v1/chat/completions"]

    def script(self, *replies: Reply) -> None:
        """Replies to the next chat requests, in order; the default comes back when they are used up."""
        self._script.extend(replies)

    def reply_to(self, request: Request) -> Reply:
        """The reply to a chat request."""
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            sent = request.headers.get("authorization", "").removeprefix("Bearer ")
            return error_reply(401, f"Incorrect API key provided: {sent}.", code="invalid_api_key")
        if self._script:
            return self._script.popleft()
        model = str(request.body.get("model"))
        if model not in self.models:
            return error_reply(404, f"The model `{model}` does not exist or you do not have access to it.", code="model_not_found")
        if re.match(r"gpt-5|o\d", model):
            for name in {"temperature", "max_tokens"} & request.body.keys():
                return error_reply(400, f"Unsupported parameter: '{name}' is not supported with this model.", code="unsupported_parameter", param=name)
        return self.behaviour(request)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def error_reply(status: int, message: str, *, code: str | None = None, param: str | None = None, headers: Mapping[str, str] | None = None) -> Reply:
    """An error as OpenAI words it."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Reply(status=status, body={"error": error}, headers=headers or {})


def cut(text: str, size: int = 7) -> tuple[str, ...]:
    """A text in pieces that respect nothing: a citation marker is split between two of them."""
    return tuple(text[i : i + size] for i in range(0, len(text), size))


def answer_from_prompt(request: Request) -> Reply:
    """The default: an extract of the abstract nearest to the question, or its question back where a rewrite is asked for."""
    user = request.text("user")
    question = _between(user, r"<question>\n(.*?)\n</question>")
    turns = re.findall(r"<turn>\nQuestion: (.*?)\nAnswer: ", user, re.DOTALL)
    if request.text("system").startswith("You rewrite"):
        points_back = turns and re.search(r"\b(it|its|they|them|that|this|those|these)\b", question, re.IGNORECASE)
        return Reply(pieces=cut(f"{question} ({turns[-1]})" if points_back else question))
    abstracts = re.findall(r"<abstract (\d+)>\n(.*?)\n</abstract \1>", user, re.DOTALL)
    shared = {int(n): len(_words(question) & _words(block)) for n, block in abstracts}
    best = max(shared.values(), default=0)
    if not best:
        return Reply(pieces=cut(CANNOT_ANSWER))
    first = {int(n): re.split(r"(?<=[.!?])\s", _between(block, r"Text: (.*)"))[0].rstrip(".") for n, block in abstracts}
    if "one line a paper" in user:
        chosen = [n for n in sorted(shared, key=lambda n: (-shared[n], n)) if 2 * shared[n] > best]
        return Reply(pieces=cut("\n".join(f"- {first[n]} [{n}]." for n in chosen)))
    n = min(shared, key=lambda n: (-shared[n], n))
    return Reply(pieces=cut(f"{first[n]} [{n}]."))


def _between(text: str, pattern: str) -> str:
    found = re.search(pattern, text, re.DOTALL)
    return found[1] if found else ""


def _words(text: str) -> set[str]:
    """Words that carry meaning, near enough: four letters or more, without the plainest of them."""
    return set(re.findall(r"\w{4,}", text.lower())) - {"what", "which", "with", "that", "this", "does", "from", "have", "paper", "papers", "they", "their"}


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # so that closing the server waits for its handlers
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], owner: OpenAIServer) -> None:
        self.owner = owner
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests; anything else is a fault of this server and must be seen."""
        import sys

        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http
    timeout = 30

    def log_message(self, *_: Any) -> None:
        """Silence."""

    def do_GET(self) -> None:
        self._note({})
        if self.path != "/v1/models":
            return self._send(error_reply(404, f"No route for {self.path}."))
        owner = self.server.owner
        if owner.models_reply is not None:
            return self._send(owner.models_reply)
        if owner.key is not None and self.headers.get("authorization") != f"Bearer {owner.key}":
            return self._send(error_reply(401, "Incorrect API key provided."))
        return self._send(
            Reply(
                body={
                    "object": "list",
                    "data": [{"id": m, "object": "model", **({"max_model_len": owner.window} if owner.window else {})} for m in owner.models],
                }
            )
        )

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = self._note(json.loads(raw))
        if self.path != "/v1/chat/completions":
            return self._send(error_reply(404, f"No route for {self.path}."))
        reply = self.server.owner.reply_to(request)
        if reply.fault == "silent":
            return self._hold(request)
        if reply.fault == "trickle_head":
            return self._hold(request, b"x")
        if reply.fault == "html":
            return self._send(Reply(status=reply.status, body=f"<!DOCTYPE html><html><body><h1>{reply.status} nginx</h1></body></html>", headers=reply.headers))
        if reply.fault == "json":
            return self._send(Reply(body={"note": "not a stream"}))
        if reply.status >= 300 or reply.body is not None:
            return self._send(reply if reply.body is not None else error_reply(reply.status, "It failed.", headers=reply.headers))
        if not request.body.get("stream"):
            message = {"role": "assistant", "content": "".join(reply.pieces)}
            return self._send(
                Reply(body={"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}]})
            )
        try:
            return self._stream(request, reply)
        except ConnectionError:
            request.disconnected.set()
            self.close_connection = True

    def _note(self, body: dict[str, Any]) -> Request:
        request = Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body, time.monotonic())
        self.server.owner.requests.append(request)
        return request

    def _send(self, reply: Reply) -> None:
        """A whole reply."""
        page = isinstance(reply.body, str)
        body = str(reply.body).encode() if page else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("content-type", "text/html" if page else "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, request: Request, reply: Reply) -> None:
        """A completion as server-sent events in chunked encoding, so that an early end can be told from the end."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.fault == "comments_first":
            return self._hold(request, b"9\r\n: alive\n\n\r\n")
        for event in self._events(request, reply):
            self._wait(request, reply.delay_s)
            if request.disconnected.is_set() or self.server.owner.closing.is_set():
                self.close_connection = True
                return
            self._chunk(f"data: {event}\n\n")
        if reply.fault == "stall":
            return self._hold(request)
        if reply.fault == "trickle":
            return self._hold(request, b"1\r\n{\r\n")
        if reply.fault in ("break", "break_at_end"):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if reply.fault != "empty":
            self._chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _events(self, request: Request, reply: Reply) -> list[str]:
        """The events of a completion, with the reply's fault in their midst."""

        def chunk(**choice: Any) -> dict[str, Any]:
            return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": None, **choice}]}

        if reply.events or reply.fault == "empty":
            return list(reply.events)
        key = "refusal" if reply.fault == "refusal" else "content"
        events: list[dict[str, Any]] = [chunk(delta={"role": "assistant", "content": ""})]
        for piece in reply.pieces:
            content: Any = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": piece}] if reply.fault == "parts" else piece
            events.append(chunk(delta={key: content}))
            if reply.fault == "empty_choices":
                events += [{**chunk(), "choices": []}, {**chunk(), "choices": None}, {"id": "1", "object": "chat.completion.chunk"}]
            if reply.fault == "null_content":
                events += [chunk(delta={"content": None}), chunk(delta=None), chunk()]
        if reply.fault in ("break", "stall", "trickle"):
            return [json.dumps(e) for e in events]
        if reply.fault == "garbage":
            return [*(json.dumps(e) for e in events), "{not json"]
        if reply.fault == "error_event":
            return [*(json.dumps(e) for e in events), json.dumps({"error": {"message": "The engine overheated.", "code": 503}})]
        if reply.fault == "end_without_delta":
            events.append(chunk(finish_reason=reply.finish))
        elif reply.fault != "no_finish":
            events.append(chunk(delta={}, finish_reason=reply.finish))
        if request.body.get("stream_options", {}).get("include_usage") and reply.fault != "no_usage":
            usage = {"prompt_tokens": reply.usage[0], "completion_tokens": reply.usage[1], "total_tokens": sum(reply.usage)}
            events.append({**chunk(), "choices": [], "usage": usage})
        return [json.dumps(e) for e in events]

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _hold(self, request: Request, saying: bytes = b"") -> None:
        """Says nothing, or the same few bytes again and again, until the client hangs up or the server closes."""
        self.close_connection = True
        try:
            while not (request.disconnected.is_set() or self.server.owner.closing.is_set()):
                self.wfile.write(saying)
                self._wait(request, 0.05)
        except ConnectionError:
            request.disconnected.set()

    def _wait(self, request: Request, seconds: float) -> None:
        """Waits, but notices a client that hangs up."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            readable, _, _ = select.select([self.connection], [], [], max(0.0, min(left, 0.05)))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                request.disconnected.set()
            if left <= 0 or request.disconnected.is_set() or self.server.owner.closing.is_set():
                return
