"""What ``dnnlib rank`` and ``fuzz`` write and say alike: pages, pictures, what was left out."""

import io
from collections.abc import Callable, Mapping, Sized
from pathlib import Path

SKIPPED = 3  # exit code of what worked, except that images or folders could not be read
LISTED = 10  # images that are named on the terminal; tables have all


def gallery_page(page: Path, wanted: str, make: Callable[[], bytes]) -> list[str]:
    from dnnlib import files

    if wanted == "none":
        return []
    files.write_atomically(page, content := make())
    return [f"wrote {page}, {len(content) / 1e6:.1f} MB: open it in a browser"]


def save(sheet, path: Path) -> None:
    from PIL.PngImagePlugin import PngInfo

    from dnnlib import files

    (made := PngInfo()).add_text("Software", "dnnlib")  # so that it is never taken for a photo
    sheet.save(picture := io.BytesIO(), format="PNG", pnginfo=made)
    files.write_atomically(path, picture.getvalue())


def many(photos, unread: Sized = ()) -> str:
    """How many images of which shape; ``unread``: those that failed once they were read."""
    return f"{len(photos.paths) - len(unread):,} images of {' x '.join(map(str, photos.shape))}"


def left_out(folder: str, photos, unread: Mapping[str, str] = {},
             what: str = "images") -> list[str]:
    """What of a folder was not used; ``unread``: what only a look at the whole file showed."""
    lines: list[str] = []
    skipped = (photos.skipped if photos is not None else {}) | dict(unread)
    if photos is not None and photos.others:
        lines.append(f"files in {folder} that are not images by their ending: {photos.others:,}")
    if photos is not None and photos.empty:
        lines.append(f"folders in {folder} without an image: {', '.join(photos.empty)}")
    if photos is not None and photos.litter:
        more = f", and {len(photos.litter) - 3:,} more" if len(photos.litter) > 3 else ""
        lines.append(f"left by programs in {folder}, no data: "
                     f"{', '.join(photos.litter[:3])}{more}")
    if skipped:
        lines += [f"{what} in {folder} that were skipped: {len(skipped):,}",
                  *(f"  {name} {reason}" for name, reason in [*skipped.items()][:LISTED])]
    if len(skipped) > LISTED:
        lines.append(f"  ... and {len(skipped) - LISTED:,} more")
    return lines


def duration(seconds: float) -> str:
    return (f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
            if seconds < 7200 else f"{seconds / 3600:.1f} h")
