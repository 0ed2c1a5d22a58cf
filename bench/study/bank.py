# SPDX-License-Identifier: Apache-2.0
"""The bank's facts for the studies."""

import session

# Each of a payment's calls, as between machines of two buildings.
PAYMENTS = [
    f"{call}=delay=500us"
    for call in (
        "front-end>payments",
        "front-end>posting",
        "payments>accounts",
        "payments>access-control",
        "payments>posting",
        "posting>posting",
    )
]

FACTS = session.Facts(
    app="bank",
    title="The bank",
    studies={
        **session.OF_ALL,
        "stores": "compared",
        "network": "compared",
        "tls": "compared",
        "queries": "limits",
        "hot": "limits",
        "skew": "limits",
        "recover": "recover",
        "soak": "soak",
    },
    prompt=("--mix", "pay"),  # no login
    acknowledged={"Pay": ("payments.db", "SELECT count(*) FROM payments WHERE state = 1")},
    victims=("front-end", "payments", "posting", "access-control", "activity", "user"),
    front="front-end",
    kinds={"Pay": "payment", "GetBalance": "balance", "ListActivity": "activity", "Login": "login"},
    rate=200,
    train_rates="200,600",
    latency_rates=(100, 400, 1000, 2000),
    compared={
        "monolith": session.MONOLITH,
        "stores": session.Compared(
            "over files, over one PostgreSQL, and over a server a service",
            {
                "services": ("files", []),
                "postgresql": ("one PostgreSQL", ["--stores", "postgresql"]),
                "servers": ("a server each", ["--stores", "servers"]),
            },
        ),
        "tls": session.Compared(
            "by plain text, and with TLS among its services", {"services": ("plain text", []), "tls": ("TLS", ["--tls"])}
        ),
        "network": session.Compared(
            "on one machine, and with 0.5 ms to each service that a payment needs",
            {
                "services": ("one machine", []),
                "apart": ("0.5 ms apart", [word for link in PAYMENTS for word in ("--link", link)]),
            },
        ),
    },
    limits={
        "queries": session.Limits(
            "kind of request",
            {
                "payment": ["--mix", "pay"],
                "balance": ["--mix", "balance"],
                "activity": ["--mix", "activity"],
                "own transfer": ["--mix", "transfer"],
                "card": ["--mix", "card"],
                "quote of a loan": ["--mix", "quote"],
                "loan": ["--mix", "loan"],
                "wealth": ["--mix", "wealth"],
                "bank information": ["--mix", "info"],
                "contact": ["--mix", "contact"],
                "login": ["--mix", "login"],
                "all, mixed": ["--mix", "mixed"],
                "all, as Bank of Anthos": ["--mix", "anthos"],
            },
            log=True,
            names=190,
        ),
        "hot": session.Limits(
            "payees",
            {
                "any account": ["--mix", "pay"],
                "50 merchants": ["--mix", "hot", "--merchants", "50"],
                "5 merchants": ["--mix", "hot", "--merchants", "5"],
                "1 merchant": ["--mix", "hot", "--merchants", "1"],
            },
        ),
        "skew": session.SKEW,
    },
)
