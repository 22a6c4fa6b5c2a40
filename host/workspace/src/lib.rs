//! Everything of Belljar's own on disk, and what it reads about the workspace for itself: where
//! things lie, configuration, sessions and their large results, instruction files, skills, memory,
//! the repository's state and the system prompt made of them; and the user's hooks.
//!
//! This crate never knows a model, an engine or a terminal, and starts no process but the hooks
//! that the user's own configuration names. What it has to tell people beside a result comes back
//! as notices: sentences for the caller to show.

mod config;
mod hooks;
mod instructions;
mod looked_at;
mod memory;
mod owner;
mod places;
mod project;
mod prompt;
mod repository;
mod session;
mod skills;
mod store;
mod text_file;

pub use config::{
    Config, ConfigError, Flags, Loaded, Protocol, ProviderSettings, Setting, Source, Sources,
    WorkspaceSettings, load, narrower, own_layer, parse_permission_mode,
};
pub use hooks::{HookCommand, HookCommands, Hooks, OnFailure};
pub use instructions::{InstructionFile, Instructions};
pub use looked_at::{Differences, LookedAt};
pub use memory::{MAX_MEMORY, Memory, MemoryEntry, MemoryError, MemoryIndex, Written};
pub use owner::Fault;
pub use places::{Places, PlacesError, private_dir};
pub use project::{Project, ProjectError};
pub use prompt::{Clock, PromptSource};
pub use repository::{Head, Repository, WorkTree, Workspace, WorkspaceError};
pub use session::{
    Excerpt, KeptResult, LoadedSession, Piece, RESULTS_MOUNT, ResultLimits, ResultsError,
    SessionError, SessionHeader, SessionJournal, SessionList, SessionResults, SessionStore,
    SessionSummary,
};
pub use skills::{Skill, SkillError, SkillSource, Skills};
pub use store::{Change, Expected, GrantStore, Revoked, StoreError};
