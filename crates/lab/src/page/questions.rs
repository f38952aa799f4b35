//! What each experiment asks.

/// The question that an experiment answers, in a sentence; of one that is not known, that it is not.
pub(super) fn question(experiment: &str) -> &'static str {
    match experiment {
        "insert_disjoint_ranges" => {
            "How fast do threads fill one ordered table when each inserts a range of its own?"
        }
        "ordered_mix" => {
            "How does an ordered table hold up as threads update it, look things up and step through it?"
        }
        "range_update" => {
            "What is left of updates while others scan thousands of keys at a time, and of scans while \
             others update?"
        }
        "ycsb" => {
            "Which ordered index is fastest at filling, reading, updating and scanning, with integers \
             and with text?"
        }
        "high_contention" => "What happens when all threads insert at the same end of one table?",
        "batched_get" => "How much faster are sixteen lookups in one call than sixteen calls?",
        "bw_tree_ablation" => {
            "What is each optimisation of the OpenBw-Tree worth, alone and all together?"
        }
        "memory" => "How many bytes does a key take, and how many stay when all keys are removed?",
        "signals" => {
            "How many messages reach one receiver as more threads send to it, and how long does one take?"
        }
        "ets_throughput" => {
            "How do whole tables of rows compare with Erlang's, on the mixes of Erlang's own benchmark?"
        }
        "ets_bench" => "What does each function of a table cost when one thread calls it?",
        "shard_cache" => {
            "Should each core own a part of a cache, or should all share it behind locks?"
        }
        "adaptation" => {
            "Does a table change its grain as its use changes: filled by many, used by one, hammered in \
             one range, scanned?"
        }
        "sequential_overhead" => {
            "What does it cost a single thread that a table could be used by many?"
        }
        "counter_scaling" => {
            "What does it cost to know how many entries there are: one counter for all, or one for each \
             thread?"
        }
        "redis" => "How does the server compare with Redis, driven by Redis's own benchmark?",
        _ => {
            "An experiment that this version of the lab does not know; its figures are shown as they are."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::question;
    use crate::experiments;

    #[test]
    fn every_experiment_has_a_question() {
        for experiment in experiments::ALL {
            let question = question(experiment.name());
            assert!(question.ends_with('?'), "{}: {question}", experiment.name());
        }
        assert!(question("something_new").contains("does not know"));
    }
}
