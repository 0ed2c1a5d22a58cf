# SPDX-License-Identifier: Apache-2.0
"""The social network's facts for the studies."""

import session

FACTS = session.Facts(
    app="social",
    title="The social network",
    studies={
        **session.OF_ALL,
        "skew": "limits",
        "fences": "fences",
        "queries": "social_queries",
        "stacks": "social_stacks",
    },
    front="front-end",
    kinds={"ReadHomeTimeline": "home timeline", "ReadUserTimeline": "user timeline", "Compose": "post"},
    rate=200,
    train_rates="200,600",
    latency_rates=(100, 400, 1000, 1600, 2200),
    compared={
        "monolith": session.Compared(
            session.MONOLITH.title, session.MONOLITH.copies | {"redis": ("with a Redis", ["--set", "redis.replicas=1"])}
        )
    },
    limits={"skew": session.SKEW},
    slow_too=("post-cache",),
    paper_traces={
        ("large", "base"): (314, 7045, 5981),
        ("large", "async"): (255, 1094, 173),
        ("large", "fence"): (223, 1037, 189),
        ("quick", "base"): (289, 3097, 2973),
        ("quick", "async"): (253, 1075, 134),
        ("quick", "fence"): (218, 1021, 181),
        ("slow", "base"): (273, 1329, 533),
        ("slow", "async"): (244, 598, 0),
        ("slow", "fence"): (252, 633, 0),
    },
)
