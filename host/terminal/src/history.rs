//! What was typed before. One entry a line of JSON, so that an entry may have several lines.

/// Entries that are kept in mind.
const KEPT: usize = 1_000;

/// The entries and where the person is among them.
#[derive(Debug, Default)]
pub(crate) struct History {
    entries: Vec<String>,
    /// The entry that is shown; nothing while the person writes their own.
    at: Option<usize>,
    /// What they had written before they looked back.
    draft: String,
}

impl History {
    /// Reads the text of a history file; a line that is none is passed over.
    pub(crate) fn read(text: &str) -> Self {
        let entries = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut history = Self { entries: entries.collect(), ..Self::default() };
        history.forget_old();
        history
    }

    /// Takes what was sent; the line for the file, unless it is the same as the last.
    pub(crate) fn add(&mut self, entry: &str) -> Option<String> {
        self.at = None;
        self.draft.clear();
        if entry.trim().is_empty() || self.entries.last().is_some_and(|last| last == entry) {
            return None;
        }
        self.entries.push(entry.to_owned());
        self.forget_old();
        serde_json::to_string(entry).ok().map(|line| line + "\n")
    }

    /// The entry before the one that is shown, which now reads `current`.
    pub(crate) fn older(&mut self, current: &str) -> Option<&str> {
        let at = match self.at {
            None => {
                self.draft = current.to_owned();
                self.entries.len().checked_sub(1)?
            }
            Some(at) => at.checked_sub(1)?,
        };
        self.at = Some(at);
        self.entries.get(at).map(String::as_str)
    }

    /// The entry after the one that is shown; past the last one, what the person had written.
    pub(crate) fn newer(&mut self) -> Option<&str> {
        let at = self.at? + 1;
        if at < self.entries.len() {
            self.at = Some(at);
            return self.entries.get(at).map(String::as_str);
        }
        self.at = None;
        Some(&self.draft)
    }

    fn forget_old(&mut self) {
        let old = self.entries.len().saturating_sub(KEPT);
        self.entries.drain(..old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_go_out_and_come_back() {
        let mut history = History::default();
        let lines: String = ["one", "two\nlines", "two\nlines", " "]
            .iter()
            .filter_map(|e| history.add(e))
            .collect();
        assert_eq!(lines, "\"one\"\n\"two\\nlines\"\n");
        let history = History::read(&format!("{lines}not json\n[1]\n"));
        assert_eq!(history.entries, ["one", "two\nlines"]);
    }

    #[test]
    fn looking_back_keeps_what_was_being_written() {
        let mut history = History::read("\"a\"\n\"b\"\n");
        assert_eq!(history.newer(), None);
        assert_eq!(history.older("mine"), Some("b"));
        assert_eq!(history.older("b"), Some("a"));
        assert_eq!(history.older("a"), None);
        assert_eq!(history.newer(), Some("b"));
        assert_eq!(history.newer(), Some("mine"));
        assert_eq!(history.newer(), None);
        assert_eq!(History::default().older("x"), None);
    }
}
