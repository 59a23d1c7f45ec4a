"""Polyrail beside the best Open MPI: one number per collective and size."""

POLYRAILS = ("polyrail", "polyrail-shared")
RIVAL = "openmpi"


def versus(summary):
    """One row for each Polyrail, collective and size that an Open MPI was also measured at.

    `ratio` is the fastest Open MPI's time through Polyrail's: above 1 Polyrail is faster.
    """
    rows = []
    for own in (each for each in summary if each["peer"] in POLYRAILS):
        rivals = [
            each
            for each in summary
            if each["peer"].startswith(RIVAL) and each["collective"] == own["collective"]
        ]
        for size, cell in own["sizes"].items():
            times = [
                (rival["sizes"][size]["mean_us"]["median"], rival["peer"])
                for rival in rivals
                if size in rival["sizes"]
            ]
            if not times:
                continue
            own_us = cell["mean_us"]["median"]
            rival_us, rival = min(times)
            rows.append(
                {
                    "collective": own["collective"],
                    "bytes": size,
                    "peer": own["peer"],
                    "us": own_us,
                    "rival": rival,
                    "rival_us": rival_us,
                    "ratio": rival_us / own_us,
                }
            )
    return rows


def is_faster(row):
    return row["ratio"] > 1
