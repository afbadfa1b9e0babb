"""Peak memory and CPU of reading objects of a bucket, beside the same files, for several sizes.

Each is read by a process of its own; the S3 server is moto's, on this machine.

python benchmarks/objects.py
"""

import gzip
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MEGABYTES = (1, 100, 300)
SCRIPT = Path(__file__).absolute()


def read_all(location: str) -> None:
    """Read recordings, and print the conversations, the peak memory in MB and the CPU seconds."""
    from judgekit.formats.reading import read

    start = time.process_time()
    number = sum(1 for _ in read(location))
    status = Path("/proc/self/status").read_text()  # getrusage counts the process that started this one as well
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    print(f"{location:<30} {number:>8,} {peak // 1024:>6,} {time.process_time() - start:>7.2f}", flush=True)


def main() -> None:
    """Start the server, fill a bucket, and read it."""
    from botocore.session import get_session
    from moto.server import ThreadedMotoServer

    from judgekit.traces.message import AIMessage, HumanMessage
    from judgekit.traces.sample import Sample

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    client = get_session().create_client("s3")
    client.create_bucket(Bucket="bucket")
    line = Sample.of([HumanMessage("Hi " * 3000), AIMessage("x" * 1000)], id="s").model_dump_json().encode() + b"\n"
    print(f"{'':<30} {'samples':>8} {'MB':>6} {'CPU s':>7}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for size in MEGABYTES:
            content = line * (size * 1_000_000 // len(line))
            name = f"{size}-mb.jsonl"
            Path(name).write_bytes(content)
            client.put_object(Bucket="bucket", Key=name, Body=content)
            client.put_object(Bucket="bucket", Key=f"{name}.gz", Body=gzip.compress(content, 1))
            for location in (name, f"s3://bucket/{name}", f"s3://bucket/{name}.gz"):
                subprocess.run([sys.executable, SCRIPT, location], check=True)
    server.stop()


if __name__ == "__main__":
    read_all(sys.argv[1]) if len(sys.argv) > 1 else main()
