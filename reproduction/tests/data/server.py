"""An HTTP server on this computer that can misbehave in the ways that real ones do."""

import contextlib
import dataclasses
import http.server
import threading


@dataclasses.dataclass
class Behavior:
    """What the server sends, and what it has been asked."""

    files: dict[str, bytes]
    cut_after: int | None = None
    status: int | None = None
    location: str = ""
    knows_ranges: bool = True
    content_range: str | None = None
    tells_length: bool = True
    seen: list[tuple[str, str | None]] = dataclasses.field(default_factory=list)

    @property
    def ranges(self) -> list[str | None]:
        return [asked for _, asked in self.seen]


@contextlib.contextmanager
def serve(behavior: Behavior):
    """The address of a server that behaves so."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers["Range"]
            behavior.seen.append((self.path, asked))
            body = behavior.files.get(self.path.rpartition("/")[2])
            if behavior.status is not None or body is None:
                self.send_response(behavior.status or 404)
                if behavior.location:
                    self.send_header("Location", behavior.location)
                self.end_headers()
                return
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and behavior.knows_ranges else 0
            if start >= len(body):
                self.send_response(416)
                self.send_header("Content-Range", behavior.content_range or f"bytes */{len(body)}")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                usual = f"bytes {start}-{len(body) - 1}/{len(body)}"
                self.send_header("Content-Range", behavior.content_range or usual)
            if behavior.tells_length:
                self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            self.wfile.write(body[start : None if behavior.cut_after is None else start + behavior.cut_after])

        def log_message(self, format, *args):  # noqa: A002
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
