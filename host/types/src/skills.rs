//! The boundary to skills: texts on how to do work of a certain kind. They grant nothing.

use crate::Origin;
use async_trait::async_trait;
use std::fmt;

/// A skill and its whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedSkill {
    pub name: String,
    pub text: String,
    /// What the skill says it may use. Shown, and never applied.
    pub allowed_tools: Vec<String>,
    pub origin: Origin,
}

/// Reads skills. The catalog that the model chooses from is part of the system prompt.
#[async_trait]
pub trait Skills: fmt::Debug + Send + Sync {
    /// The text of a skill as it is now.
    ///
    /// # Errors
    ///
    /// A sentence for the model: there is no such skill, or it cannot be read.
    async fn load(&self, name: &str) -> Result<LoadedSkill, String>;
}
