"""An object store in a thread: what Arrow's S3 file system asks of one, and nothing more.

Objects appear whole when their upload ends and there are no directories; every answer reflects
all writes that were answered before.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    objects: dict[str, tuple[bytes, datetime]]
    uploads: dict[str, dict[int, bytes]]
    lock: threading.Lock

    def log_message(self, *arguments: object) -> None:
        pass

    def handle_any(self) -> None:
        split = urlsplit(self.path)
        key = unquote(split.path).lstrip("/")
        query = {k: v[0] for k, v in parse_qs(split.query, keep_blank_values=True).items()}
        with self.lock:
            getattr(self, f"on_{self.command.lower()}")(key, query)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            read = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                read += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
        else:
            read = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            return self.unchunk(read)
        return read

    @staticmethod
    def unchunk(read: bytes) -> bytes:
        content = b""
        while read:
            line, _, read = read.partition(b"\r\n")
            size = int(line.split(b";")[0] or b"0", 16)
            if size == 0:
                return content
            content, read = content + read[:size], read[size + 2 :]
        return content

    def on_get(self, key: str, query: dict[str, str]) -> None:
        if "list-type" in query:
            self.list(key.split("/", maxsplit=1)[0], query)
            return
        if key not in self.objects:
            self.missing()
            return
        content, _ = self.objects[key]
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            self.answer(200, content, **self.described(key))
            return
        begin = int(wanted[1])
        end = min(int(wanted[2] or len(content)), len(content) - 1)
        shown = {"Content_Range": f"bytes {begin}-{end}/{len(content)}"}
        self.answer(206, content[begin : end + 1], **self.described(key), **shown)

    def on_head(self, key: str, query: dict[str, str]) -> None:
        if key in self.objects:
            size = str(len(self.objects[key][0]))
            self.answer(200, Content_Length=size, **self.described(key))
        else:
            self.answer(200 if "/" not in key else 404)

    def on_put(self, key: str, query: dict[str, str]) -> None:
        content = self.body()
        if "partNumber" in query:
            self.uploads[query["uploadId"]][int(query["partNumber"])] = content
        elif "/" in key:
            self.objects[key] = (content, datetime.now(UTC))
        self.answer(200, ETag='"0"')

    def on_post(self, key: str, query: dict[str, str]) -> None:
        body = self.body()
        if "delete" in query:
            bucket = key.split("/", maxsplit=1)[0]
            for name in re.findall(rb"<Key>(.*?)</Key>", body):
                self.objects.pop(f"{bucket}/{name.decode()}", None)
            self.xml("<DeleteResult></DeleteResult>")
        elif "uploads" in query:
            upload = secrets.token_hex(8)
            self.uploads[upload] = {}
            self.xml(
                f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId>"
                "</InitiateMultipartUploadResult>"
            )
        else:
            pieces = self.uploads.pop(query["uploadId"])
            content = b"".join(pieces[number] for number in sorted(pieces))
            self.objects[key] = (content, datetime.now(UTC))
            self.xml("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    def on_delete(self, key: str, query: dict[str, str]) -> None:
        self.objects.pop(key, None)
        self.answer(204)

    def list(self, bucket: str, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        rows, folders = [], set()
        for name, (content, changed_at) in sorted(self.objects.items()):
            key = name.removeprefix(f"{bucket}/")
            if key == name or not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
                continue
            moment = changed_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            rows.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size>"
                f"<LastModified>{moment}</LastModified></Contents>"
            )
        rows += [
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        ]
        message = f"<IsTruncated>false</IsTruncated><KeyCount>{len(rows)}</KeyCount>{''.join(rows)}"
        self.xml(f"<ListBucketResult>{message}</ListBucketResult>")

    def described(self, key: str) -> dict[str, str]:
        moment = self.objects[key][1].strftime("%a, %d %b %Y %H:%M:%S GMT")
        return {"Last_Modified": moment, "ETag": '"0"', "Accept_Ranges": "bytes"}

    def missing(self) -> None:
        self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>", Content_Type="application/xml")

    def xml(self, body: str) -> None:
        self.answer(200, f"<?xml version='1.0'?>{body}".encode(), Content_Type="application/xml")


@pytest.fixture
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of an empty folder in an object store."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    state = {"objects": {}, "uploads": {}, "lock": threading.Lock()}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), state))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    place = f"127.0.0.1:{server.server_port}"
    yield f"s3://key:secret@bucket/index?endpoint_override={place}&scheme=http&region=eu-north-1"
    server.shutdown()
    server.server_close()
    thread.join()
