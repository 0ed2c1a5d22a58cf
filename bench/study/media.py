# SPDX-License-Identifier: Apache-2.0
"""The facts of the movie reviews for the studies."""

import session

FACTS = session.Facts(
    app="media",
    title="The application of movie reviews",
    studies={**session.OF_ALL, "viewers": "viewers"},
    front="front-end",
    kinds={"GetMovie": "page", "SearchMovies": "search", "Compose": "review", "RentMovie": "rental"},
    rate=200,
    train_rates="200,600",
    latency_rates=(100, 400, 800, 1200),
    slow_too=("movie-cache", "review-cache", "compose-cache"),
)
