"""The client that replaces a provider when judgekit is offline."""

from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies

from judgekit.errors import OfflineError
from judgekit.judges.request import Reply, Request
from judgekit.locations import Url


class OfflineClient:
    """A client that refuses every request."""

    async def complete(self, request: Request, /) -> Reply:
        """Raise an error.

        Raises:
            OfflineError: Always.
        """
        where = request.base_url or "its own address"
        rule = "offline mode only allows this machine (localhost, 127.0.0.1, ::1), without a proxy"
        raise OfflineError(f"{request.judge} at {where}: {rule}; cached replies are still used")

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""


def check_storage_offline(url: Url) -> None:
    """Check that an object is in storage on this machine.

    Raises:
        OfflineError: It is not, or nobody can say so without asking others for credentials.
    """
    if not is_local_address(url.endpoint):
        raise OfflineError(
            f"{url}: offline mode only allows storage on this machine: an S3 server at an AWS_ENDPOINT_URL such as "
            "http://127.0.0.1:9000, with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )


def is_local_address(url: str) -> bool:
    """Return whether requests to an address stay on this machine, without a proxy. No name is resolved for it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        is_loopback = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
    proxies = getproxies()
    direct = {name.strip() for name in proxies.get("no", "").split(",")}  # HTTP clients differ on other patterns
    return is_loopback and (not proxies.keys() & {parts.scheme, "all"} or host in direct or direct == {"*"})
