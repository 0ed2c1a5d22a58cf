# SPDX-License-Identifier: Apache-2.0
"""Image search's facts for the studies."""

import session

FACTS = session.Facts(
    app="hdsearch",
    title="Image search",
    studies=session.OF_ALL,
    front="mid-tier",
    kinds={"Query": "query"},
    rate=200,
    train_rates="200,1000",
    latency_rates=(100, 500, 1000, 2000),
)
