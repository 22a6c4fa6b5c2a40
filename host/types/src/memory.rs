//! The boundary to the memory: what the model keeps for later sessions.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One text of the memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryText {
    pub name: String,
    pub text: String,
}

/// Keeps texts. Its index is part of the system prompt.
#[async_trait]
pub trait Memory: fmt::Debug + Send + Sync {
    /// All that is kept.
    ///
    /// # Errors
    ///
    /// A sentence for people: it cannot be read.
    async fn texts(&self) -> Result<Vec<MemoryText>, String>;

    /// Adds a text or puts it in the place of the one that has its name, whole or not at all. A
    /// sentence for people says what was done.
    ///
    /// # Errors
    ///
    /// A sentence for people: what was not written and why.
    async fn write(&self, text: &MemoryText) -> Result<String, String>;
}
