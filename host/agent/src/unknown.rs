//! How many calls in a row named a tool that nobody has. Counts only: what is done about it is
//! the loop's to say, once a batch of calls is through.

#[derive(Debug, Default)]
pub(crate) struct UnknownCalls {
    in_a_row: u32,
    last: String,
}

impl UnknownCalls {
    /// A call to a tool that does not exist.
    pub(crate) fn unknown(&mut self, tool: &str) {
        self.in_a_row += 1;
        tool.clone_into(&mut self.last);
    }

    /// A call to a tool that does, whatever came of it.
    pub(crate) fn known(&mut self) {
        self.in_a_row = 0;
    }

    pub(crate) fn reached(&self, limit: u32) -> bool {
        self.in_a_row >= limit
    }

    /// Why the run stops, for people.
    pub(crate) fn message(&self) -> String {
        format!(
            "the model called tools that do not exist {} times in a row, at last `{}`; \
             `belljar tools` lists those it has",
            self.in_a_row, self.last
        )
    }
}
