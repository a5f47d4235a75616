"""Format and size of an encoded image, from its first bytes."""

import io
import struct
import zlib

import PIL.Image
import simplejpeg

_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_BEGINNINGS = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF")
_LARGEST = 50_000_000
"""Pixels; larger pictures are left to Pillow, which refuses those that would fill the memory."""


def measure(data: bytes) -> tuple[str, int, int]:
    """(format as Pillow calls it, width, height) of an encoded image; pixels are not decoded.

    JPEG, PNG and WebP are read here in a tenth of Pillow's time; what is odd in them, and any other format, is left to Pillow.

    Raises:
        Exception: of any kind, as Pillow's readers do on what is no image; :func:`explain_image_error` puts it into words.
    """
    found = _measure_known(data)
    if found and 0 < found[1] * found[2] <= _LARGEST:
        return found
    image = PIL.Image.open(io.BytesIO(data))
    return image.format or "", image.width, image.height


def explain_image_error(error: Exception, data: bytes) -> str:
    """Why an image cannot be read, in words that do not depend on the decoder."""
    if not data:
        return "the member is empty"
    if isinstance(error, PIL.UnidentifiedImageError) and data.startswith(_BEGINNINGS):
        return "it begins like an image, but its header is damaged or cut"
    if isinstance(error, PIL.UnidentifiedImageError):
        return f"no image begins with the bytes {data[:12]!r}"
    return " ".join(str(error).split()) or type(error).__name__


def _measure_known(data: bytes) -> tuple[str, int, int] | None:
    if data.startswith(b"\xff\xd8\xff"):
        try:
            height, width, _, _ = simplejpeg.decode_jpeg_header(data)
        except ValueError:
            return None
        return "JPEG", width, height
    if data.startswith(_PNG) and len(data) >= 33 and zlib.crc32(data[12:29]) == int.from_bytes(data[29:33]):
        return "PNG", *struct.unpack(">II", data[16:24])
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30 and int.from_bytes(data[4:8], "little") <= len(data) - 8:
        return _measure_webp(data)
    return None


def _measure_webp(data: bytes) -> tuple[str, int, int] | None:
    """RFC 9649, sections 2.5 to 2.7."""
    kind = data[12:16]
    if kind == b"VP8X":
        return "WEBP", 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return "WEBP", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", data[26:30])
        return "WEBP", width & 0x3FFF, height & 0x3FFF
    return None
