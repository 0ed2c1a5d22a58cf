# SPDX-License-Identifier: Apache-2.0
"""The bank's facts for the studies."""

import session

FACTS = session.Facts(
    app="bank",
    title="The bank",
    studies=session.OF_ALL,
    front="front-end",
    kinds={"Pay": "payment", "GetBalance": "balance", "ListActivity": "activity"},
    rate=200,
    train_rates="200,600",
    latency_rates=(100, 400, 1000, 2000),
)
