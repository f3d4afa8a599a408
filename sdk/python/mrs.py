"""A client of the agent that runs on this machine, in one file without dependencies.

    import mrs

    mesh = mrs.Mesh()
    job = mesh.submit(
        ["sh", "-c", "wc -w < words.txt > count.txt"],
        inputs={"words.txt": mesh.put(b"one two three")},
        outputs=["count.txt"],
    )
    mesh.wait(job)
    print(mesh.output(job, "count.txt"))

Python 3.8 or newer. Where Python has no unix sockets, give the address of api.listen.
"""

import http.client
import json
import os
import posixpath
import socket
import time
import urllib.parse
import uuid

HOME = "/work"  # of a command: relative paths begin there
ENDED = ("done", "failed", "cancelled", "refused", "over", "lost", "released")


class Problem(Exception):
    """What the agent refuses, or cannot do.

    status is that of HTTP, field the part of the request that is wrong, remedy what to do; the
    last two may be empty.
    """

    def __init__(self, status, detail, field="", remedy=""):
        super().__init__("; ".join(part for part in (detail, remedy) if part))
        self.status, self.field, self.remedy = status, field, remedy


class Failed(Exception):
    """A job that ended otherwise than done. job is its status."""

    def __init__(self, job):
        super().__init__(f"job {job['id']}: {job['phase']}")
        self.job = job


class _Socket(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


def _place(env):
    """Where the agent listens, as submit finds it."""
    if env.get("MRS_ADDR"):
        return env["MRS_ADDR"]
    if env.get("XDG_RUNTIME_DIR"):
        return os.path.join(env["XDG_RUNTIME_DIR"], "mrs.sock")
    return os.path.join(env.get("TMPDIR", "/tmp"), f"mrs-{os.getuid()}", "mrs.sock")


class Mesh:
    """The agent on this machine. Its methods raise Problem for what it refuses, and OSError if it
    cannot be reached."""

    def __init__(self, addr=None, token=None):
        """addr is the path of a socket, or http://HOST:PORT, which wants the token of the file
        api.token in the agent's state directory. By default they are those of MRS_ADDR and
        MRS_TOKEN, or the socket of this user's agent."""
        self._addr = addr or _place(os.environ)
        if not self._addr.startswith(("/", "unix:/", "http://")):
            raise ValueError(f"address {self._addr}: want a socket's path or http://HOST:PORT")
        self._token = token or os.environ.get("MRS_TOKEN", "")

    def submit(self, command, inputs=None, outputs=(), *, runtime=60, cpus=1, memory=128 << 20,
               disk=64 << 20, env=None, name="", count=1, wasm=None, **more):
        """Submit a job and return its ID.

        command is the list of the program and its arguments, or with wasm the arguments of that
        module, which put has stored. inputs are what put has stored, by their paths; outputs are
        paths of what is kept. Paths that do not begin with / are below /work, where commands
        start. runtime is an estimate in seconds; memory and disk are bytes. With count many tasks
        run, in whose command and paths {{index}} is the number of each, from 0. more are other
        fields of JobSpec in the agent's OpenAPI document, such as deadline or after.
        """
        spec = {
            "kind": "wasm" if wasm else "command", "args": list(command), "count": count,
            "need": {
                "milli_cpus": round(cpus * 1000), "memory_bytes": memory, "disk_bytes": disk,
            },
            "runtime_seconds": runtime, "ttl_seconds": 1,
            "inputs": [dict(_input(data), path=_path(at)) for at, data in (inputs or {}).items()],
            "outputs": [{"path": _path(at), "to": at.lstrip("/")} for at in outputs],
            "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
        }
        if wasm:
            spec["module"] = dict(_input(wasm), path="/module.wasm")
        if name:
            spec["name"] = name
        spec.update(more)
        key = {"Idempotency-Key": str(uuid.uuid4())}
        return self._ask("POST", "/jobs", spec, header=key)["id"]

    def job(self, job):
        """A job's status, as a dictionary; its phase is one of ENDED at the end."""
        return self._ask("GET", "/jobs/{id}", id=job)["status"]

    def jobs(self, limit=1000):
        """The newest own jobs."""
        return self._ask("GET", "/jobs", query={"limit": limit})

    def tasks(self, job):
        """The tasks of a job, by index."""
        found = []
        while True:
            page = self._ask("GET", "/jobs/{id}/tasks", id=job, query={"from": len(found)})
            if not page:
                return found
            found += page

    def why(self, job):
        """How the sites answered a job's last announcement."""
        return self._ask("GET", "/jobs/{id}/offers", id=job)

    def wait(self, job, timeout=None):
        """Wait for a job's end and return its status. Failed tells of one that is not done,
        TimeoutError of one that goes on after so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = 0.05
        while True:
            status = self.job(job)
            if status["phase"] == "done":
                return status
            if status["phase"] in ENDED:
                raise Failed(status)
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"job {job} is {status['phase']} after {timeout} s")
            time.sleep(pause)
            pause = min(pause * 1.5, 2)

    def cancel(self, job):
        """End a job."""
        self._ask("POST", "/jobs/{id}/cancel", id=job)

    def hold(self, job):
        """Keep a job that has not begun from being placed."""
        self._ask("POST", "/jobs/{id}/hold", id=job)

    def release(self, job):
        """Let a held job be placed."""
        self._ask("POST", "/jobs/{id}/release", id=job)

    def log(self, job, index=0, stream="stdout"):
        """What a task has printed, as bytes."""
        return self._read("GET", "/tasks/{id}/logs", id=f"{job}.{index}", query={"stream": stream})

    def put(self, data, executable=False):
        """Store bytes, or what a file that was opened for reading in binary holds."""
        kind = "x-executable" if executable else "octet-stream"
        header = {"Content-Type": "application/" + kind}
        return json.loads(self._read("PUT", "/data", data, header))

    def get(self, cid):
        """The content of a file, as bytes; a directory is a tar archive."""
        return self._read("GET", "/data/{cid}", cid=cid)

    def output(self, job, path, index=0):
        """What a task has left at a path, as bytes."""
        for left in self.tasks(job)[index].get("outputs", []):
            if left["path"] == _path(path):
                return self.get(left["cid"])
        raise KeyError(f"task {index} of job {job} has left no {path}")

    def sites(self):
        """The sites that the agent knows."""
        found, query = [], {"limit": 1000}
        while True:
            page = self._ask("GET", "/sites", query=query)
            found += page
            if len(page) < query["limit"]:
                return found
            query["after"] = page[-1]["id"]

    def status(self):
        """The state of the agent."""
        return self._ask("GET", "/status")

    def _ask(self, method, path, body=None, header=None, query=None, **parts):
        """Send JSON and return what is answered."""
        text = None if body is None else json.dumps(body).encode()
        header = dict(header or {}, **{"Content-Type": "application/json"})
        answer = self._read(method, path, text, header, query, **parts)
        return json.loads(answer) if answer else None

    def _read(self, method, path, body=None, header=None, query=None, **parts):
        """Send a request and return the body of the answer. parts stand in the path."""
        for part, value in parts.items():
            path = path.replace("{" + part + "}", urllib.parse.quote(value, safe=""))
        if query:
            path += "?" + urllib.parse.urlencode(query)
        header = dict(header or {})
        if self._token:
            header["Authorization"] = "Bearer " + self._token
        link = self._connection()
        try:
            link.request(method, "/api/v1" + path, body, header)
            answer = link.getresponse()
            text = answer.read()
        finally:
            link.close()
        if answer.status < 300:
            return text
        try:
            said = json.loads(text)
        except ValueError:
            said = {"detail": text.decode(errors="replace")[:500]}
        raise Problem(answer.status, said.get("detail") or said.get("title", answer.reason),
                      said.get("field", ""), said.get("remedy", ""))

    def _connection(self):
        if self._addr.startswith("http://"):
            return http.client.HTTPConnection(urllib.parse.urlsplit(self._addr).netloc)
        return _Socket(self._addr[len("unix:"):] if self._addr.startswith("unix:") else self._addr)


def _path(text):
    return posixpath.normpath(posixpath.join(HOME, text))


def _input(data):
    return {key: data[key] for key in ("cid", "bytes", "dir")}
