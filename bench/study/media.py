# SPDX-License-Identifier: Apache-2.0
"""The facts of the movie reviews for the studies."""

import session

# Each of the calls that gather a page, as between machines of two buildings.
PAGES = [f"{call}=delay=500us" for call in ("front-end>page", *(f"page>{part}" for part in ("movie-info", "cast-info", "plot", "rating", "movie-review")))]

FACTS = session.Facts(
    app="media",
    title="The application of movie reviews",
    studies={**session.OF_ALL, "viewers": "viewers", "queries": "limits", "network": "compared", "fences": "fences", "soak": "soak"},
    front="front-end",
    kinds={"GetMovie": "page", "SearchMovies": "search", "Compose": "review", "RentMovie": "rental"},
    rate=200,
    train_rates="200,600",
    latency_rates=(100, 400, 800, 1200),
    compared={
        "monolith": session.MONOLITH,
        "network": session.Compared(
            "on one machine, and with 0.5 ms to each service that a page needs",
            {
                "services": ("one machine", []),
                "apart": ("0.5 ms apart", [word for link in PAGES for word in ("--link", link)]),
            },
        ),
    },
    limits={
        "queries": session.Limits(
            "kind of request",
            {
                "pages and searches": ["--mix", "browse"],
                "review": ["--mix", "compose"],
                "rental": ["--mix", "rent"],
                "all, mixed": ["--mix", "mixed"],
            },
            log=True,
        ),
    },
    acknowledged={"Compose": ("review-storage.db", "SELECT count(*) FROM reviews WHERE state = 1")},
    slow_too=("movie-cache", "review-cache", "compose-cache", "search-index-1"),
)
