"""What several experiments share: campaigns, orders and success matrices, computed once and kept,
the settings of rival fuzzers, and what tables ask of a campaign."""

from dnnbook.studies import outcomes
from dnnbook.studies.beside import one_more, one_more_distance, one_more_fuzzer
from dnnbook.studies.corners import corner_cases, with_noise
from dnnbook.studies.naming import FuzzerKey, keys
from dnnbook.studies.ordering import (
    leads,
    nss_readings,
    orders,
    table_iv,
    tidy,
    untidy,
)
from dnnbook.studies.released import (
    Best,
    choices,
    every_setting,
    lineup,
    rivals,
    settings,
    settled,
)
from dnnbook.studies.running import (
    at_bounds,
    benign,
    benign_for_each,
    bounds,
    campaigns,
    in_each,
    known_images,
    swarms,
)

__all__ = ["Best", "FuzzerKey", "at_bounds", "benign", "benign_for_each", "bounds", "campaigns",
           "choices", "corner_cases", "every_setting", "in_each", "keys", "known_images", "leads",
           "lineup", "nss_readings", "one_more", "one_more_distance", "one_more_fuzzer", "orders",
           "outcomes", "rivals", "settings", "settled", "swarms", "table_iv", "tidy", "untidy",
           "with_noise"]
