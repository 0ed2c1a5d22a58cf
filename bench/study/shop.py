# SPDX-License-Identifier: Apache-2.0
"""The shop's facts for the studies."""

import session

# Each of an order's calls, as between machines of two buildings.
ORDERS = [
    f"{call}=delay=500us"
    for call in (
        *(f"front-end>{service}" for service in ("catalogue", "cart", "orders")),
        *(f"orders>{service}" for service in ("catalogue", "shipping", "discounts", "address-book", "order-queue", "transaction-id")),
        "order-queue>queue-master",
        *(f"queue-master>{service}" for service in ("inventory", "payment", "orders", "cart", "invoice", "shipping", "discounts")),
        *(f"payment>{service}" for service in ("payment-auth", "transaction-id")),
    )
]

FACTS = session.Facts(
    app="shop",
    title="The shop",
    studies={
        **session.OF_ALL,
        "queries": "limits",
        "ordering": "compared",
        "languages": "compared",
        "rest": "rest",
        "network": "compared",
        "fences": "fences",
        "soak": "soak",
    },
    front="front-end",
    kinds={"ListProducts": "list", "GetProduct": "product", "SearchProducts": "search", "GetBasket": "basket", "Buy": "order"},
    rate=200,
    train_rates="200,600",
    latency_rates=(100, 300, 600, 1000),
    compared={
        "monolith": session.MONOLITH,
        "ordering": session.Compared(
            "with orders in rounds of 32, of 8, and one after the other",
            {
                "services": ("32 ahead", []),
                "eight": ("8 ahead", ["--set", "ahead=8"]),
                "one": ("one by one", ["--set", "ahead=1"]),
            },
            load=("--mix", "order"),
            rates=(20, 50, 100, 200),
        ),
        "languages": session.Compared(
            "in C++, and with seven services in Go, Java, Python and JavaScript",
            {"services": ("C++", []), "polyglot": ("polyglot", ["--polyglot"])},
            load=("--mix", "boutique"),
            rates=(50, 100, 200, 300),
        ),
        "rest": session.Compared(
            "called by gRPC, and by HTTP and JSON through the load balancer", {"services": ("gRPC", []), "rest": ("HTTP and JSON", [])}
        ),
        "network": session.Compared(
            "on one machine, and with 0.5 ms to each service that an order needs",
            {
                "services": ("one machine", []),
                "apart": ("0.5 ms apart", [word for link in ORDERS for word in ("--link", link)]),
            },
        ),
    },
    limits={
        "queries": session.Limits(
            "kind of request",
            {
                "order": ["--mix", "order"],
                "product": ["--mix", "product"],
                "list": ["--mix", "list"],
                "search": ["--mix", "search"],
                "basket": ["--mix", "basket"],
                "all that orders nothing": ["--mix", "browse"],
                "all, as Online Boutique": ["--mix", "boutique"],
                "all, mixed": ["--mix", "mixed"],
            },
            log=True,
            names=180,
        ),
    },
    acknowledged={"Buy": ("orders.db", "SELECT count(*) FROM orders")},
)
