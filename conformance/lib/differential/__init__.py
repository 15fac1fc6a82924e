"""The differential run of a service: the same requests to Tavola and to Azurite, each difference looked up in a reviewed list.

A suite has the requests (`generate.py`), how they are signed for its service (`client.py`), what may differ between two
answers (`compare.py`), and the list (`known-differences.toml`). What is the same for every service is here: one of the two
servers (`side.py`), the list (`known.py`), and the run itself (`run.py`). `start` installs Azurite and begins.

Variables: DIFF_SEED (a number, or `random`; printed, so that a run can be repeated), DIFF_COUNT (requests), DIFF_VERBOSE
(print listed differences too). Without them the run is always the same one, so that a list entry which matches nothing in it
is stale.
"""
