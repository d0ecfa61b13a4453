"""Push and pull a policy as the folder of a model hub (weights, card, README), locally or at an fsspec address."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from muster.errors import InputError, MusterError
from muster.evaluation.card import RUN_CARD, make_card, read_card, write_card
from muster.evaluation.card_markdown import as_markdown
from muster.policy.files import BEST
from muster.policy.learned import LearnedPolicy
from muster.policy.names import load
from muster.storage import make_folder, write_atomically

PAGE = "README.md"
FILES = (BEST, RUN_CARD, PAGE)


def push(policy: str | Path | LearnedPolicy, address: str | Path, force: bool = False) -> None:
    """Write the folder of a policy, as an object or by name, to a path or to an address such as s3://bucket/name.

    It holds best.safetensors, card.json and README.md, the card as a page; `muster.load` reads such a folder. Another
    policy at the address is replaced only with `force`.
    """
    learned = policy if isinstance(policy, LearnedPolicy) else load(policy)
    card = make_card(learned.name, learned) if isinstance(policy, LearnedPolicy) else read_card(str(policy))
    with tempfile.TemporaryDirectory() as temporary:
        local = Path(temporary)
        learned.save(local / BEST)
        write_card(local / RUN_CARD, card)
        (local / PAGE).write_text(as_markdown(card | {"latency_ms": {}}) + "\n", encoding="utf-8")
        own = (local / BEST).read_bytes()

        def refuse(found: bytes) -> None:
            if found != own and not force:
                raise InputError(f"{address} has another policy; give another address, or force=True to replace it")

        if "://" not in str(address):
            make_folder(Path(address))
            if (Path(address) / BEST).exists():
                refuse((Path(address) / BEST).read_bytes())
            for name in FILES:
                write_atomically(Path(address) / name, (local / name).read_bytes())
            return
        files, root = _remote(str(address))
        try:
            files.makedirs(root, exist_ok=True)
            if files.exists(f"{root}/{BEST}"):
                refuse(files.cat_file(f"{root}/{BEST}"))
            for name in FILES:
                files.put_file(str(local / name), f"{root}/{name}")
        except OSError as error:
            raise MusterError(f"cannot write to {address}: {error}") from None


def pull(address: str | Path, folder: str | Path) -> LearnedPolicy:
    """Copy a folder that `push` wrote at an address into a local folder, and load the policy."""
    if "://" not in str(address):
        push(address, folder, force=True)
        return load(folder)
    files, root = _remote(str(address))
    try:
        for name in FILES:
            write_atomically(Path(folder) / name, files.cat_file(f"{root}/{name}"))
    except OSError as error:
        raise InputError(f"no folder of a policy at {address}: {error}") from None
    return load(folder)


def _remote(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MusterError(f"{address} needs fsspec; install it with: pip install fsspec") from None
    try:
        files, root = url_to_fs(address)
    except (ValueError, ImportError) as error:
        raise InputError(f"{address} is no address that fsspec can open: {error}") from None
    return files, str(root).rstrip("/")
