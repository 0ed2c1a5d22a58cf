#!/bin/sh
# Starts the application, sends it load, and ends it. CTest runs this.
set -eu
cd "$(dirname "$0")"
curtail up ./topology.yaml --detach
trap 'curtail down @app@' EXIT
# 98: the machine was too busy to measure on; the requests succeeded all the same.
curtail load @app@ --journey journey.yaml --rps 50 -n 50 --fail-if 'errors<0.1%' || [ $? = 98 ]
