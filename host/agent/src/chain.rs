//! How a request to the model is made: an ordered chain of processors, each of which takes a
//! request and returns one.
//!
//! The chain is run anew for each request, on top of what is true in that round. It never changes
//! the conversation: what a processor makes of it is read by the model in this request only.

mod standard;

pub(crate) use standard::share;

use crate::{Plan, Settings, estimate};
use async_trait::async_trait;
use belljar_types::{
    Conversation, LoadedSkill, Mode, ModelRequest, PermissionMode, SystemPrompt, ToolDefinition,
};
use std::{fmt, sync::Arc};

/// One step in the making of a request.
#[async_trait]
pub trait Processor: fmt::Debug + Send + Sync {
    /// Its name in the chain.
    fn name(&self) -> &str;

    /// Makes a request out of what the processors before it made.
    ///
    /// # Errors
    ///
    /// The request cannot be made. One that is too large is made again once there is room; anything
    /// else ends the run.
    async fn process(
        &self,
        request: ModelRequest,
        round: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError>;
}

/// Why a processor made no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProcessorError {
    #[error("the request takes about {tokens} tokens, and there is room for {room}")]
    TooLarge { tokens: u64, room: u64 },
    #[error("{0}")]
    Failed(String),
}

/// What is true in a round.
#[derive(Debug)]
#[non_exhaustive]
pub struct Round<'a> {
    /// From 1.
    pub number: u32,
    pub mode: Mode,
    pub permission_mode: PermissionMode,
    /// The stable part is that of the run's first round.
    pub system: &'a SystemPrompt,
    pub conversation: &'a Conversation,
    /// What the model may call, sorted by name, the loop's own actions included.
    pub tools: &'a Arc<[ToolDefinition]>,
    /// How many tools more are there and found with `find_tools` only.
    pub deferred: usize,
    /// Those that were loaded, in that order.
    pub skills: &'a [LoadedSkill],
    /// The plan that is carried out.
    pub plan: Option<&'a Plan>,
    /// The plan that the model noted.
    pub notes: Option<&'a str>,
    /// What hooks said for the whole run.
    pub context: &'a [String],
    /// What the loop has to say to the model in this round.
    pub reminders: &'a [String],
    /// The model's window in tokens, where it is known.
    pub window: Option<u64>,
    pub settings: &'a Settings,
    pub(crate) conversation_tokens: u64,
    pub(crate) tools_tokens: u64,
}

impl Round<'_> {
    /// About how many tokens a request takes. It costs little where conversation and tools are
    /// the round's own.
    pub fn tokens_of(&self, request: &ModelRequest) -> u64 {
        let conversation = if request.conversation.is_shared_with(self.conversation) {
            self.conversation_tokens
        } else {
            estimate::conversation(&request.conversation)
        };
        let tools = if Arc::ptr_eq(&request.tools, self.tools) {
            self.tools_tokens
        } else {
            estimate::tools(&request.tools)
        };
        conversation + tools + estimate::rest(request)
    }
}

/// An ordered chain of processors. A clone shares them.
#[derive(Clone, Debug)]
pub struct Chain {
    processors: Vec<Arc<dyn Processor>>,
}

/// The chain has no processor of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chain has no processor `{name}`: it has {known}")]
pub struct NoSuchProcessor {
    pub name: String,
    /// The names that there are.
    pub known: String,
}

impl Default for Chain {
    fn default() -> Self {
        Self::standard()
    }
}

impl Chain {
    /// `system`, `environment`, `history`, `tools`, `plan`, `reminder`, `window`.
    pub fn standard() -> Self {
        Self { processors: standard::all() }
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.processors.iter().map(|processor| processor.name()).collect()
    }

    /// Adds a processor before `window`, the last of the standard ones, or else at the end.
    #[must_use]
    pub fn with(mut self, processor: impl Processor + 'static) -> Self {
        let at = self.find(standard::WINDOW);
        let at = at.unwrap_or(self.processors.len());
        self.processors.insert(at, Arc::new(processor));
        self
    }

    /// Adds a processor before the one of that name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn insert_before(
        &mut self,
        name: &str,
        processor: impl Processor + 'static,
    ) -> Result<(), NoSuchProcessor> {
        let at = self.find(name)?;
        self.processors.insert(at, Arc::new(processor));
        Ok(())
    }

    /// Puts a processor in the place of the one of that name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn replace(
        &mut self,
        name: &str,
        processor: impl Processor + 'static,
    ) -> Result<(), NoSuchProcessor> {
        let at = self.find(name)?;
        self.processors[at] = Arc::new(processor);
        Ok(())
    }

    /// Takes one out.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub fn remove(&mut self, name: &str) -> Result<(), NoSuchProcessor> {
        let at = self.find(name)?;
        self.processors.remove(at);
        Ok(())
    }

    pub(crate) async fn run(
        &self,
        mut request: ModelRequest,
        round: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        for processor in &self.processors {
            request = processor.process(request, round).await?;
        }
        Ok(request)
    }

    fn find(&self, name: &str) -> Result<usize, NoSuchProcessor> {
        self.processors.iter().position(|processor| processor.name() == name).ok_or_else(|| {
            let known: Vec<_> = self.names().iter().map(|name| format!("`{name}`")).collect();
            NoSuchProcessor { name: name.to_owned(), known: known.join(", ") }
        })
    }
}
