"""What an object store refuses, in words that name the place and the fix.

Stores answer with codes, which the drivers wrap in errors of Python or of their own; the code is
looked for along the chain of causes. Nothing of the driver's own text is passed on for a known
code: it may hold the account, a request's signature, or a page of XML.
"""

from collections.abc import Iterator
from typing import Literal, overload

from splitmeans.errors import MailboxError, MailboxUnavailable

_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted"}
_CREDENTIALS = {
    "AuthenticationFailed",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "NoAuthenticationInformation",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
}
_DENIED = {
    "403",
    "AccessDenied",
    "AccountProblem",
    "AllAccessDisabled",
    "AuthorizationFailure",
    "AuthorizationPermissionMismatch",
    "Forbidden",
    "InsufficientAccountPermissions",
}
_REGION = {
    "301",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "PermanentRedirect",
}
_PASSING = {
    "429",
    "500",
    "502",
    "503",
    "504",
    "BadGateway",
    "InternalError",
    "OperationTimedOut",
    "RequestTimeout",
    "ServerBusy",
    "ServiceUnavailable",
    "SlowDown",
}
_CLOCK = {"RequestTimeTooSkewed", "RequestExpired"}

# What each call of the driver needs, in words that an administrator of the store knows.
_RIGHTS = {
    "info": "read and list (S3: s3:GetObject and s3:ListBucket, without which absent objects look "
    "denied; Azure: Storage Blob Data Contributor)",
    "cat_file": "read (S3: s3:GetObject; Azure: Storage Blob Data Contributor)",
    "pipe_file": "write (S3: s3:PutObject; Azure: Storage Blob Data Contributor)",
}
_ACTS = {"info": "look at", "cat_file": "read", "pipe_file": "write", "rm_file": "remove"}

_GOES_ON = "nothing is lost: when that is mended, the same command goes on"
# Names of errors of the drivers that mean the same without a code of the store.
_NO_CREDENTIALS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "ClientAuthenticationError",
    "CredentialUnavailableError",
)
_NO_CONNECTION = (
    "EndpointConnectionError",
    "ConnectTimeoutError",
    "ConnectionClosedError",
    "ServiceRequestError",
    "ServiceRequestTimeoutError",
    "ServiceResponseError",
    "ClientConnectorError",
)


@overload
def explain(problem: Exception, *, place: str, act: str) -> MailboxError: ...


@overload
def explain(
    problem: Exception, *, place: str, act: str, only_known: Literal[True]
) -> MailboxError | None: ...


def explain(
    problem: Exception, *, place: str, act: str, only_known: bool = False
) -> MailboxError | None:
    """Return an error in words for what a store refused.

    Args:
        problem: What the driver raised.
        place: The mailbox's URL, as it may be shown.
        act: The driver's call.
        only_known: Return None for what has no words here.
    """
    codes = set(_codes(problem))
    names = {type(cause).__name__ for cause in _chain(problem)}
    opening = f"mailbox {place}: "
    if codes & _NO_BUCKET:
        return MailboxError(
            f"{opening}there is no such bucket or container; make it first, or check its name, the "
            "account and the region"
        )
    if codes & _CREDENTIALS:
        return MailboxError(
            f"{opening}the store refuses the credentials ({_shown(codes & _CREDENTIALS)}); check "
            "the key or token that its driver finds (S3: AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, a profile or a role; Azure: AZURE_STORAGE_CONNECTION_STRING, "
            f"or account name and key); {_GOES_ON}"
        )
    if codes & _DENIED:
        # An answer without a body has a number only.
        said = _shown(codes & _DENIED - {"403"}) or "403, as for a wrong key"
        return MailboxError(
            f"{opening}these credentials may not {_ACTS.get(act, 'use')} objects there "
            f"({said}); ask the store's administrator for the right to "
            f"{_RIGHTS.get(act, 'read, list and write')}, or give other credentials; {_GOES_ON}"
        )
    if codes & _REGION:
        return MailboxError(
            f"{opening}the bucket is in another region; name it (S3: AWS_DEFAULT_REGION)"
        )
    if codes & _CLOCK:
        return MailboxError(f"{opening}this machine's clock is off; set it")
    if codes & _PASSING:
        return MailboxUnavailable(f"{opening}the store is busy ({_shown(codes & _PASSING)})")
    if names & set(_NO_CREDENTIALS):
        return MailboxError(
            f"{opening}no credentials that the store takes; give them as its driver finds them "
            "(S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role; Azure: "
            f"AZURE_STORAGE_CONNECTION_STRING, or account name and key); {_GOES_ON}"
        )
    if names & set(_NO_CONNECTION):
        return MailboxUnavailable(
            f"{opening}no connection; check the network and the address (S3: AWS_ENDPOINT_URL, if "
            "the store is not Amazon's; Azure: BlobEndpoint)"
        )
    if act == "connect":
        # Of settings: an error of Azure's driver, say, when it has nothing to log in with.
        return None if only_known else MailboxError(f"{opening}{_settings(problem)}")
    return None if only_known else MailboxError(f"{opening}{type(problem).__name__}")


def _settings(problem: Exception) -> str:
    return (
        f"its driver cannot be set up ({type(problem).__name__}); check its settings and "
        "credentials (S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role; Azure: "
        "AZURE_STORAGE_CONNECTION_STRING, or account name and key)"
    )


def _chain(problem: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came from."""
    seen: set[int] = set()
    cause: BaseException | None = problem
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _codes(problem: BaseException) -> Iterator[str]:
    """Yield the store's codes: botocore has them in a response, Azure as `error_code`."""
    for cause in _chain(problem):
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            yield str(response.get("Error", {}).get("Code"))
        code = getattr(cause, "error_code", None) or getattr(cause, "code", None)
        if code is not None:
            yield str(getattr(code, "value", code))
        status = getattr(cause, "status_code", None)
        if status is not None:
            yield str(status)


def _shown(codes: set[str]) -> str:
    return ", ".join(sorted(codes))
