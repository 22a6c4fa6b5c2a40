//! Everything of Belljar's own on disk, and what it reads about the workspace for itself: where
//! things lie, configuration, sessions, instruction files, the repository's state and the system
//! prompt made of them.
//!
//! This crate never knows a model, an engine or a terminal, and never starts a process. What it
//! has to tell people beside a result comes back as notices: sentences for the caller to show.

mod config;
mod instructions;
mod looked_at;
mod owner;
mod places;
mod project;
mod prompt;
mod repository;
mod session;
mod store;

pub use config::{
    Config, ConfigError, Flags, Loaded, Protocol, ProviderSettings, Setting, Source, Sources,
    WorkspaceSettings, load, narrower, own_layer, parse_permission_mode,
};
pub use instructions::{InstructionFile, Instructions};
pub use looked_at::{Differences, LookedAt};
pub use owner::Fault;
pub use places::{Places, PlacesError, private_dir};
pub use project::{Project, ProjectError};
pub use prompt::{Clock, PromptSource};
pub use repository::{Head, Workspace, WorkspaceError};
pub use session::{
    LoadedSession, SessionError, SessionHeader, SessionJournal, SessionList, SessionStore,
    SessionSummary,
};
pub use store::{Change, Expected, GrantStore, Revoked, StoreError};
