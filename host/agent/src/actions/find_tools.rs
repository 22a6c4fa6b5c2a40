//! `find_tools`: tools that are there and not listed.

use super::{Outcome, told};
use crate::driver::Driver;
use belljar_types::ToolDefinition;

/// How many are found at once.
const MOST: usize = 8;
/// Names of other tools that are told where none was found.
const NAMES: usize = 50;

impl Driver {
    pub(super) fn find_tools(&mut self, query: &str) -> Outcome {
        let deferred = &self.offered.deferred;
        let mut scored: Vec<_> = deferred
            .iter()
            .map(|tool| (score(tool, query), tool))
            .filter(|(score, _)| *score > 0)
            .collect();
        // The sort is stable: tools of one score stay in the order of their names.
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        scored.truncate(MOST);
        if scored.is_empty() {
            let names: Vec<_> =
                deferred.iter().take(NAMES).map(|tool| format!("`{}`", tool.name)).collect();
            let rest = deferred.len().saturating_sub(NAMES);
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            return told(match names.is_empty() {
                true => "all tools are listed already".to_owned(),
                false => format!("none was found; there are {}{more}", names.join(", ")),
            });
        }
        let lines: Vec<_> = scored
            .iter()
            .map(|(_, tool)| format!("- `{}`: {}", tool.name, first_line(&tool.description)))
            .collect();
        let names: Vec<_> = scored.iter().map(|(_, tool)| tool.name.clone()).collect();
        self.offered.find(names);
        told(format!("These are listed from the next round on:\n{}", lines.join("\n")))
    }
}

/// How well a tool fits: a word in the name counts more than one in the description.
fn score(tool: &ToolDefinition, query: &str) -> usize {
    let (name, about) = (tool.name.to_lowercase(), tool.description.to_lowercase());
    query
        .to_lowercase()
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| word.chars().nth(1).is_some())
        .map(|word| 3 * usize::from(name.contains(word)) + usize::from(about.contains(word)))
        .sum()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
