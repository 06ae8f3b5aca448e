"""Three hosts on this machine: network namespaces with an Ethernet of their own, which cannot reach anything else.

All share the disk. Each has its own name, addresses and /etc/hosts.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess

HEAD, NODES = "head", ("node1", "node2")
ADDRESSES = {HEAD: "10.213.7.1", "node1": "10.213.7.2", "node2": "10.213.7.3"}
_BRIDGE = "switch"


def missing():
    """Why there can be no hosts, in a line; None if there can."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    if shutil.which("ip") is None:
        return "needs `ip`: apt-get install iproute2"
    tried = subprocess.run(["ip", "netns", "add", _namespace("tried")], capture_output=True, text=True, check=False)
    _remove("tried")
    return f"network namespaces do not work here: {tried.stderr.strip()}" if tried.returncode else None


def command(host, *words):
    """The command line that runs `words` on a host."""
    # Not `ip netns exec`, which hides the control groups that slurmd looks for.
    enter = ["nsenter", f"--net=/run/netns/{_namespace(host)}", "unshare", "--mount", "--uts"]
    script = f'mount --bind {_hosts_file(host)} /etc/hosts && hostname "$0" && exec "$@"'
    return [*enter, "sh", "-c", script, host, *map(str, words)]


@contextlib.contextmanager
def hosts():
    """The hosts, until the end of the context."""
    try:
        for host in ADDRESSES:
            _remove(host)
            _ip("netns", "add", _namespace(host))
            _on(host, "link", "set", "lo", "up")
            _hosts_file(host).parent.mkdir(parents=True, exist_ok=True)
            lines = [f"{address} {name}" for name, address in ADDRESSES.items()]
            _hosts_file(host).write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        _on(HEAD, "link", "add", _BRIDGE, "type", "bridge")
        _on(HEAD, "address", "add", f"{ADDRESSES[HEAD]}/24", "dev", _BRIDGE)
        _on(HEAD, "link", "set", _BRIDGE, "up")
        for node in NODES:
            ends = ("link", "add", "eth0", "type", "veth", "peer", "name", node)
            _on(node, *ends, "netns", _namespace(HEAD))
            _on(node, "address", "add", f"{ADDRESSES[node]}/24", "dev", "eth0")
            _on(node, "link", "set", "eth0", "up")
            _on(HEAD, "link", "set", node, "master", _BRIDGE, "up")
        yield
    finally:
        for host in ADDRESSES:
            _remove(host)


def cut_off(node):
    """Pull the cable of a node."""
    _on(HEAD, "link", "set", node, "down")


def reconnect(node):
    _on(HEAD, "link", "set", node, "up")


def _namespace(host):
    return f"isotherm-{host}"


def _hosts_file(host):
    return pathlib.Path("/etc/netns") / _namespace(host) / "hosts"


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _on(host, *words):
    _ip("-n", _namespace(host), *words)


def _remove(host):
    """Remove a host that this or an interrupted run made."""
    subprocess.run(["ip", "netns", "delete", _namespace(host)], capture_output=True, check=False)
    shutil.rmtree(_hosts_file(host).parent, ignore_errors=True)
