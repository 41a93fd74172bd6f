"""A server of chat completions on a real socket of this machine; what it says is a function of the messages."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What goes over the wire."""

    content: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    """Sent instead of a completion; text is sent as it is."""
    finish_reason: str = "stop"


@dataclass
class Server:
    """A running server and what it was asked."""

    url: str
    asked: list[Body] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def serving(speak: Callable[[Body], Reply | str]) -> Iterator[Server]:
    """Runs a server that answers each request with what `speak` gives for its body."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                server.asked.append(body)
                server.keys.append(self.headers.get("Authorization"))
                server.paths.append(self.path)
            said = speak(body)
            reply = Reply(said) if isinstance(said, str) else said
            if reply.status == 0:  # hangs up
                return
            payload = completion(body, reply) if reply.body is None else reply.body
            data = (payload if isinstance(payload, str) else json.dumps(payload)).encode()
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    http_server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{http_server.server_address[1]}/v1")
    thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http_server.shutdown()
        http_server.server_close()
        thread.join()


def completion(body: Body, reply: Reply) -> Body:
    """A completion as OpenAI writes it; a word counts as a token, and all but the last message as cached."""
    words = [len(message["content"].split()) for message in body["messages"]]
    return {
        "object": "chat.completion",
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply.content},
                "finish_reason": reply.finish_reason,
            }
        ],
        "usage": {
            "prompt_tokens": sum(words),
            "completion_tokens": len(reply.content.split()),
            "prompt_tokens_details": {"cached_tokens": sum(words[:-1])},
        },
    }
