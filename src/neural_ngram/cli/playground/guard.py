"""Requests that did not come from the page itself are refused.

Any page in the same browser can send requests to this machine, and a foreign name can be made to
point here (DNS rebinding). The Host and Origin headers that browsers send reveal both.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["Guard"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Guard:
    """ASGI middleware in front of an application served at `port` of this machine only."""

    def __init__(self, app: App, port: int) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self.origins = {b"http://" + host for host in self.hosts}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on what comes from the page; status 403 for other requests and websockets."""
        if scope["type"] == "lifespan" or self._is_own(scope["headers"]):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            body = b"open this page at the address that the terminal shows\n"
            headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    def _is_own(self, headers: list[tuple[bytes, bytes]]) -> bool:
        given = {b"host": set[bytes](), b"origin": set[bytes]()}
        for name, value in headers:
            if name in given:
                given[name].add(value.lower())
        return len(given[b"host"]) == 1 and (
            given[b"host"] <= self.hosts and given[b"origin"] <= self.origins
        )
