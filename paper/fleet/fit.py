"""Fit our own cities to the training days of the published trips, and write muster/envs/fleet/cities/*.json.

    python -m paper.fleet.fit [../shared/fleet]

Only these numbers are shipped, never the trips. Source: tumBAIS/HybridMADRL-AMoD (MIT licence).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from muster.envs.fleet.city import load_trips, shortest_hops

CITIES = Path(__file__).parents[2] / "muster/envs/fleet/cities"
SOURCE = (
    "Fitted to the training days of the trips published with Enders, Harrison, Pavone, Schiffer, 'Hybrid Multi-agent "
    "Deep Reinforcement Learning for Autonomous Mobility on Demand Systems' (L4DC 2023), tumBAIS/HybridMADRL-AMoD, "
    "MIT licence, Copyright (c) 2022 Professorship of Business Analytics and Intelligent Systems at TUM; made from "
    "New York City's public taxi records."
)
KINDS = {"small": ("11-zones", 24, 24), "large": ("38-zones", 100, 20)}


def main(root: Path) -> None:
    """Fit both cities."""
    for name, (folder, vehicles, limit) in KINDS.items():
        city = load_trips(str(root / folder)).city
        cells = np.stack([city.places[:, 0] * 2, city.places[:, 1] / np.sqrt(0.75)], axis=1).round().astype(int)
        hops = shortest_hops(cells)
        one = hops == 1
        hop_metres, hop_minutes = float(city.metres[one][0]), int(city.minutes[one][0])
        assert (city.metres == hops * hop_metres).all()
        assert (city.minutes == hops * hop_minutes).all()
        assert np.allclose(city.fares, np.round(0.005 * city.metres, 2), atol=0.0051)
        data = {
            "source": SOURCE,
            "vehicles": vehicles,
            "limit": limit,
            "hop_metres": hop_metres,
            "hop_minutes": hop_minutes,
            "fare_per_metre": 0.005,
            "zones": cells.tolist(),
            "busyness": city.busyness.round(3).tolist(),
            "profile": city.profile.round(4).tolist(),
            "hourly": city.hourly.round(3).tolist(),
        }
        text = ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in data.items())
        (CITIES / f"{name}.json").write_text(f"{{\n{text}\n}}\n".replace("], [", "],\n["), encoding="utf-8")
        print(f"{name}: {city.hourly.sum():.1f} requests an hour, {len(cells)} zones")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / "../shared/fleet"))
