//! What each experiment asks: `data/questions.tsv` has a line for each.

const QUESTIONS: &str = include_str!("../../data/questions.tsv");

const UNKNOWN: &str =
    "An experiment that this version of the lab does not know; its figures are shown as they are.";

/// The question that an experiment answers, in a sentence; a remark if the experiment is unknown.
pub(super) fn question(experiment: &str) -> &'static str {
    let mut lines = QUESTIONS.lines().filter_map(|line| line.split_once('\t'));
    let found = lines.find(|(name, _)| *name == experiment);
    found.map_or(UNKNOWN, |(_, question)| question)
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
