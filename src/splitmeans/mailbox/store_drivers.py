"""What the drivers of S3 and Azure need beyond fsspec's interface.

fsspec has no word for removing an object on condition, for a driver's own retries, or for a
multipart upload of a few bytes; these call the store's own client through the driver.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from splitmeans.errors import MailboxError
from splitmeans.mailbox.open import public_url, scheme_of
from splitmeans.mailbox.store_errors import explain

PART_BYTES = 8 << 20
"""Of a large object; one of twice that goes in parts."""

_CONNECT_SECONDS = 10

_PACKAGES = {
    "s3": ("splitmeans[s3]",),
    "az": ("splitmeans[azure]",),
    "abfs": ("splitmeans[azure]",),
    "abfss": ("splitmeans[azure]",),
    "gs": ("splitmeans[storage]", "gcsfs"),
    "gcs": ("splitmeans[storage]", "gcsfs"),
}


def open_driver(url: str, *, timeout: float, options: Mapping[str, object]) -> Any:
    """Return fsspec's driver for a URL, which makes one attempt at everything.

    Raises:
        MailboxError: It is not installed, or cannot be set up.
    """
    scheme = scheme_of(url)
    try:
        import fsspec

        kind = fsspec.get_filesystem_class(scheme)
    except ImportError as problem:
        wanted = " ".join(f'"{name}"' for name in _PACKAGES.get(scheme, ("splitmeans[storage]",)))
        raise MailboxError(
            f"mailbox {public_url(url)}: its driver is not installed ({problem}); install it with: "
            f"pip install {wanted}"
        ) from None
    settings = {**kind._get_kwargs_from_urls(url), **options}
    if scheme == "s3" and "config_kwargs" not in fsspec.config.conf.get("s3", {}):
        settings.setdefault("config_kwargs", _one_attempt(timeout))
    try:
        driver = kind(**settings, skip_instance_cache=True)
    except Exception as problem:
        raise explain(problem, place=public_url(url), act="connect") from None
    _without_own_retries(driver)
    return driver


def _one_attempt(timeout: float) -> dict[str, object]:
    return {
        "connect_timeout": min(_CONNECT_SECONDS, timeout),
        "read_timeout": timeout,
        "retries": {"total_max_attempts": 1},
    }


def _without_own_retries(driver: Any) -> None:
    """Leave trying again to us; a driver that hides its setting goes on as it likes."""
    if hasattr(driver, "_call_s3"):
        driver.retries = 1
    with contextlib.suppress(AttributeError):
        azure = driver.service_client._config
        azure.retry_policy.total_retries = 0
        # A broken line costs a block and not the whole message.
        azure.max_single_put_size, azure.max_block_size = 2 * PART_BYTES, PART_BYTES


def takes_parts(driver: Any) -> bool:
    """Tell whether large objects are uploaded in parts of a size that can be chosen (S3)."""
    return hasattr(driver, "_call_s3")


def tag_of_object(info: Mapping[str, Any]) -> str | None:
    """Return the store's tag of an object's content, if the driver tells it."""
    tag = info.get("ETag") or info.get("etag")
    return tag if isinstance(tag, str) else None


async def remove_tagged(driver: Any, target: str, tag: str | None) -> None:
    """Remove an object if it still is the one with this tag, where the store can do that."""
    if tag is not None and hasattr(driver, "_call_s3"):
        bucket, key, _ = driver.split_path(target)
        await driver._call_s3("delete_object", Bucket=bucket, Key=key, IfMatch=tag)
    elif tag is not None and hasattr(driver, "service_client"):
        await _remove_blob(driver, target, tag)
    else:
        await driver._rm_file(target)


async def _remove_blob(driver: Any, target: str, tag: str) -> None:
    from azure.core import MatchConditions

    container, blob, _ = driver.split_path(target)
    async with driver.service_client.get_blob_client(container=container, blob=blob) as client:
        await client.delete_blob(etag=tag, match_condition=MatchConditions.IfNotModified)


async def upload_one_part(driver: Any, target: str, data: bytes) -> None:
    """Upload a few bytes as S3 takes large objects, on condition that there is nothing."""
    bucket, key, _ = driver.split_path(target)
    place = {"Bucket": bucket, "Key": key}
    begun = await driver._call_s3("create_multipart_upload", **place)
    place["UploadId"] = begun["UploadId"]
    try:
        part = await driver._call_s3("upload_part", **place, PartNumber=1, Body=data)
        parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
        await driver._call_s3(
            "complete_multipart_upload", **place, MultipartUpload={"Parts": parts}, IfNoneMatch="*"
        )
    except Exception:
        await driver._call_s3("abort_multipart_upload", **place)
        raise
