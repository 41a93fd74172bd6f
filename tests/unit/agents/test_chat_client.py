import socket

import pytest

from agentrl.agents.chat_client import ChatClient, TooLong
from agentrl.errors import EndpointError
from tests.unit.agents.server import Reply, serving

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "seed": 3}
KEY = "sk-very-secret"


def waiting(waits: list[float], **settings: object) -> dict[str, object]:
    """Settings of a client that notes how long it would have slept."""
    return {"sleep": waits.append, "timeout_s": 20.0, **settings}


def test_a_completion_is_what_the_server_sent():
    with serving(lambda body: "hi there") as server:
        found = ChatClient(server.url, KEY).complete(BODY)
    assert found["choices"][0]["message"]["content"] == "hi there"
    assert (server.asked, server.keys) == ([BODY], [f"Bearer {KEY}"])
    assert server.paths == ["/v1/chat/completions"]


def test_the_whole_address_may_be_given_and_no_key_is_sent_when_there_is_none():
    with serving(lambda body: "hi") as server:
        ChatClient(f"{server.url}/chat/completions/").complete(BODY)
    assert (server.paths, server.keys) == (["/v1/chat/completions"], [None])


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 0])
def test_what_may_pass_is_tried_again_after_waits_that_double(status):
    answers = iter([Reply(status=status)] * 3 + [Reply("at last")])
    waits: list[float] = []
    with serving(lambda body: next(answers)) as server:
        found = ChatClient(server.url, **waiting(waits)).complete(BODY)  # pyright: ignore[reportArgumentType]
    assert found["choices"][0]["message"]["content"] == "at last"
    assert len(server.asked) == 4
    assert len(waits) == 3
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, (1, 2, 4), strict=True))


def test_a_server_that_says_how_long_to_wait_is_obeyed_up_to_a_minute():
    answers = iter([Reply(status=429, headers={"Retry-After": text}) for text in ("7", "900", "soon")] + [Reply("ok")])
    waits: list[float] = []
    with serving(lambda body: next(answers)) as server:
        ChatClient(server.url, **waiting(waits)).complete(BODY)  # pyright: ignore[reportArgumentType]
    assert waits[:2] == [7, 60]
    assert 2 <= waits[2] <= 4


def test_after_its_tries_a_failure_is_told_with_the_last_reason():
    waits: list[float] = []
    failing = Reply(status=503, body={"error": {"message": "overloaded"}})
    with serving(lambda body: failing) as server:
        client = ChatClient(server.url, **waiting(waits, max_tries=3))  # pyright: ignore[reportArgumentType]
        with pytest.raises(EndpointError, match=r"no answer in 3 tries; the last: 503 overloaded") as caught:
            client.complete(BODY)
    assert server.url in str(caught.value)
    assert (len(server.asked), len(waits)) == (3, 2)


def test_a_server_that_is_not_there_and_one_that_is_silent_are_told_apart_from_refusals():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(EndpointError, match=r"TimeoutError.*is the server up"):
            ChatClient(url, timeout_s=0.2, max_tries=1).complete(BODY)
    with pytest.raises(EndpointError, match=r"refused.*is the server up"):
        ChatClient(url, max_tries=1).complete(BODY)


@pytest.mark.parametrize(
    ("status", "hint"),
    [(401, "key_env"), (403, "may not use this model"), (404, "has the model 'm'"), (400, "see its message")],
)
def test_a_refusal_is_told_at_once_with_what_to_do(status, hint):
    refusal = Reply(status=status, body={"error": {"message": "no, because", "code": "because"}})
    with serving(lambda body: refusal) as server, pytest.raises(EndpointError, match=hint) as caught:
        ChatClient(server.url, sleep=lambda s: pytest.fail("waited")).complete(BODY)
    assert f"refuses with {status}: no, because because;" in str(caught.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "text", ["This model's maximum context length is 100 tokens", {"error": {"code": "context_length_exceeded"}}]
)
def test_a_request_that_does_not_fit_is_an_error_of_its_own(text):
    with serving(lambda body: Reply(status=400, body=text)) as server, pytest.raises(TooLong):
        ChatClient(server.url).complete(BODY)


def test_the_key_is_never_shown_even_where_the_server_repeats_it():
    for status in (401, 503):
        echo = Reply(status=status, body={"error": {"message": f"Incorrect API key provided: {KEY}"}})
        with serving(lambda body, echo=echo: echo) as server, pytest.raises(EndpointError) as caught:
            ChatClient(server.url, KEY, max_tries=1).complete(BODY)
        assert "key provided: ***" in str(caught.value)
        assert KEY not in str(caught.value)
        assert KEY not in repr(caught.getrepr())
    assert KEY not in repr(ChatClient("http://localhost/v1", KEY))


def test_a_key_is_not_carried_to_where_a_server_redirects():
    with serving(lambda body: "stolen") as other:
        redirect = Reply(status=307, headers={"Location": f"{other.url}/chat/completions"})
        with serving(lambda body: redirect) as server, pytest.raises(EndpointError, match="307: redirects to http"):
            ChatClient(server.url, KEY).complete(BODY)
    assert other.asked == []


@pytest.mark.parametrize("body", ["<html>hello</html>", {"choices": []}, [1], {"object": "error"}])
def test_an_answer_that_is_no_completion_is_refused(body):
    with serving(lambda asked: Reply(body=body)) as server, pytest.raises(EndpointError):
        ChatClient(server.url, max_tries=1).complete(BODY)


def test_urls_and_keys_that_cannot_be_are_refused_before_anything_is_sent():
    with pytest.raises(EndpointError, match="no http:// or https:// address"):
        ChatClient("localhost:8000/v1")
    with pytest.raises(EndpointError, match="characters that no key has") as caught:
        ChatClient("http://localhost:8000/v1", "sk-a\nb")
    assert "sk-a" not in str(caught.value)
