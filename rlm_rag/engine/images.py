"""Images of a question, as the data URLs that models take."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path

from rlm_rag.errors import UsageError
from rlm_rag.models.prices import ModelFacts

# What the largest of the providers takes; the others say so themselves when a file is too large.
MAX_IMAGE_BYTES = 20 * 1024 * 1024
MAX_IMAGES = 20
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def read_images(files: Iterable[str | Path], *, model: str, facts: ModelFacts) -> tuple[str, ...]:
    """Return the data URLs of image files, in order.

    A model of which nothing is known is taken to accept images: its server says otherwise.

    Raises:
        UsageError: the model takes no images, or a file is no PNG, JPEG, GIF or WebP of at
            most `MAX_IMAGE_BYTES`.
    """
    paths = [Path(file) for file in files]
    if not paths:
        return ()
    if facts.takes_images is False:
        raise UsageError(
            f"the model {model} takes no images",
            hint="name one that does with --model, or leave --image out",
        )
    if len(paths) > MAX_IMAGES:
        raise UsageError(f"{len(paths)} images are more than {MAX_IMAGES}")
    return tuple(_data_url(path) for path in paths)


def _data_url(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_IMAGE_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"the image {path} cannot be read: {error.strerror}", hint="--image names a file"
        ) from error
    if len(data) > MAX_IMAGE_BYTES:
        raise UsageError(
            f"the image {path} is larger than {MAX_IMAGE_BYTES >> 20} MiB",
            hint="models shrink images anyway: make it smaller",
        )
    return f"data:{_media_type(path, data)};base64,{base64.b64encode(data).decode()}"


def _media_type(path: Path, data: bytes) -> str:
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    raise UsageError(
        f"the file {path} is no image that models take",
        hint="convert it to PNG, JPEG, GIF or WebP",
    )
