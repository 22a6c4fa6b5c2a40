//! A plugin: checked and described when it is first seen, compiled when it is first needed.

use crate::{
    bindings::{self, PluginPre, types},
    cache::{self, Cache},
    call::{self, CallSetup},
    http::{HttpSetup, Outside},
    limits, names,
    state::CallState,
};
use belljar_capability::{GrantError, Granted, Limits, Standing, World};
use belljar_types::{Hints, ToolDefinition, ToolError, ToolSource};
use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::fs::{Dir, OpenOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::HashSet,
    io::{self, Read},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wasmtime::{
    Engine,
    component::{Component, Linker},
};

/// The largest component that is taken.
const COMPONENT_SIZE: u64 = 128 << 20;
/// Tools of one plugin, and bytes of one description and one schema.
const TOOLS: usize = 200;
const DESCRIPTION: usize = 16 << 10;
const SCHEMA: usize = 128 << 10;

/// Why a file does not become a plugin. Each text says what it is and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot be read")]
    Read(#[source] io::Error),
    #[error("is {size} bytes long; a plugin has at most {COMPONENT_SIZE}")]
    TooLarge { size: u64 },
    #[error("is empty")]
    Empty,
    #[error("is not WebAssembly: only components are plugins")]
    NotWebAssembly,
    #[error(
        "is a core WebAssembly module, not a component: build it for `wasm32-wasip2`, or wrap it \
         with `wasm-tools component new`"
    )]
    CoreModule,
    #[error("is WebAssembly text: turn it into a component with `wasm-tools parse`")]
    WebAssemblyText,
    #[error("is not a valid component: {0}")]
    Invalid(String),
    #[error(
        "has no tools: it exports no `{}`; build it against the `plugin` world of `belljar:plugin`",
        bindings::INTERFACE
    )]
    NoTools,
    #[error(
        "speaks `belljar:plugin` {found}, and this host speaks {}: rebuild it against that version",
        bindings::INTERFACE_VERSION
    )]
    OtherVersion { found: String },
    #[error("does not fit this host: {0}")]
    Mismatch(String),
    #[error("could not be asked for its tools: {0}")]
    Describe(ToolError),
    #[error("offers no tool")]
    NoTool,
    #[error("offers {0} tools; a plugin has at most {TOOLS}")]
    TooManyTools(usize),
    #[error(
        "names a tool `{0}`: a name is a letter, then letters, digits or `_`, 64 characters at most"
    )]
    ToolName(String),
    #[error("names two tools `{0}`")]
    SameToolTwice(String),
    #[error("describes its tool `{tool}` badly: {reason}")]
    Tool { tool: String, reason: String },
    #[error("has the name of the bundled plugin `{0}`, which is reserved: rename the file")]
    Reserved(String),
    #[error("is shadowed by `{by}`, which has the same name: rename one of them")]
    Shadowed { by: String },
    #[error("would offer `{name}`, which reads like `{other}`: rename the file")]
    LookAlike { name: String, other: String },
    #[error("has changed since it was looked at: start again to use it")]
    Changed,
    #[error("has a grant that cannot be given")]
    Grant(#[from] GrantError),
    #[error("{0}")]
    NotAPluginFile(&'static str),
}

/// Where a plugin's bytes are.
#[derive(Clone)]
pub(crate) enum PluginBytes {
    Embedded(&'static [u8]),
    /// A file in a folder of plugins; read again where the compile cache has nothing.
    File {
        folder: Arc<Dir>,
        name: String,
    },
}

impl PluginBytes {
    /// Reads the bytes of a file that may be anything.
    pub(crate) fn read_file(folder: &Dir, name: &str) -> Result<Vec<u8>, LoadError> {
        // A FIFO in the place of the file must not hold us.
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true);
        let file = folder.open_with(name, &options).map_err(LoadError::Read)?;
        let metadata = file.metadata().map_err(LoadError::Read)?;
        if !metadata.is_file() {
            return Err(LoadError::NotAPluginFile("is not a regular file"));
        }
        if metadata.len() > COMPONENT_SIZE {
            return Err(LoadError::TooLarge { size: metadata.len() });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
        file.take(COMPONENT_SIZE + 1).read_to_end(&mut bytes).map_err(LoadError::Read)?;
        if bytes.len() as u64 > COMPONENT_SIZE {
            return Err(LoadError::TooLarge { size: bytes.len() as u64 });
        }
        Ok(bytes)
    }

    fn get(&self, digest: &str) -> Result<std::borrow::Cow<'_, [u8]>, LoadError> {
        match self {
            Self::Embedded(bytes) => Ok((*bytes).into()),
            Self::File { folder, name } => {
                let bytes = Self::read_file(folder, name)?;
                if cache::digest(&bytes) != digest {
                    return Err(LoadError::Changed);
                }
                Ok(bytes.into())
            }
        }
    }
}

/// A tool list as it is kept in the cache, in the plugin's own terms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DescribedTool {
    name: String,
    title: Option<String>,
    description: String,
    input_schema: Value,
    output_schema: Option<Value>,
    hints: Hints,
}

pub(crate) struct Plugin {
    pub(crate) source: ToolSource,
    pub(crate) standing: Standing,
    /// What it gets, before a call's mode and hints narrow it.
    pub(crate) granted: Arc<Granted>,
    pub(crate) tools: Vec<Arc<ToolDefinition>>,
    pub(crate) permits: Arc<Semaphore>,
    bytes: PluginBytes,
    ready: Mutex<Option<PluginPre<CallState>>>,
}

/// What plugins are loaded with; clones share it.
#[derive(Clone)]
pub(crate) struct Loader {
    pub(crate) engine: Engine,
    pub(crate) linker: Arc<Linker<CallState>>,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) limits: Limits,
}

impl Plugin {
    /// Takes a plugin: from the cache where its digest is known, else by compiling it and asking
    /// it for its tools in an empty world.
    pub(crate) async fn load(
        loader: &Loader,
        name: &str,
        digest: &str,
        bytes: PluginBytes,
        standing: Standing,
        granted: Granted,
    ) -> Result<Self, LoadError> {
        let bundled = standing == Standing::Bundled;
        let source = ToolSource { plugin: name.into(), digest: digest.into() };
        let cached = loader.cache.as_ref().and_then(|cache| cache.tools(digest));
        let (described, ready) = match cached {
            Some(described) => (described, None),
            None => {
                let pre = compile(loader, digest, &bytes).await?;
                let described = describe(&pre, limits::describing(loader.limits)).await?;
                if let Some(cache) = &loader.cache {
                    cache.keep_tools(digest, &described);
                }
                (described, Some(pre))
            }
        };
        let tools = described
            .into_iter()
            .map(|tool| Arc::new(definition(&source, bundled, tool)))
            .collect();
        Ok(Self {
            source,
            standing,
            tools,
            permits: Arc::new(Semaphore::new(limits::size(granted.limits.calls))),
            granted: Arc::new(granted),
            bytes,
            ready: Mutex::new(ready),
        })
    }

    /// Whether the host that a call asks for is known from its arguments: so it is for the tools
    /// of the bundled plugin `web`.
    pub(crate) fn names_its_host(&self) -> bool {
        self.standing == Standing::Bundled && &*self.source.plugin == "web"
    }

    /// The plugin, if it was compiled before. Never blocks.
    pub(crate) fn ready_now(&self) -> Option<PluginPre<CallState>> {
        self.ready.try_lock().ok()?.clone()
    }

    /// The plugin, ready to be instantiated. Compiles where the cache has nothing: blocks.
    pub(crate) fn ready(&self, loader: &Loader) -> Result<PluginPre<CallState>, LoadError> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pre) = &*ready {
            return Ok(pre.clone());
        }
        let digest = &self.source.digest;
        let cached =
            loader.cache.as_ref().and_then(|cache| cache.component(&loader.engine, digest));
        let pre = match cached {
            Some(component) => link(loader, &component)?,
            None => prepare(loader, digest, &self.bytes.get(digest)?)?,
        };
        Ok(ready.insert(pre).clone())
    }
}

fn definition(source: &ToolSource, bundled: bool, tool: DescribedTool) -> ToolDefinition {
    let name = if bundled {
        tool.name.as_str().into()
    } else {
        names::qualified(&source.plugin, &tool.name).into()
    };
    ToolDefinition {
        name,
        tool: tool.name.into(),
        source: source.clone(),
        title: tool.title,
        description: tool.description,
        input_schema: Arc::new(tool.input_schema),
        output_schema: tool.output_schema.map(Arc::new),
        hints: tool.hints,
    }
}

/// Compiles on a thread that may block: a large component takes seconds.
async fn compile(
    loader: &Loader,
    digest: &str,
    bytes: &PluginBytes,
) -> Result<PluginPre<CallState>, LoadError> {
    let (loader, digest, bytes) = (loader.clone(), digest.to_owned(), bytes.clone());
    let compiled =
        tokio::task::spawn_blocking(move || prepare(&loader, &digest, &bytes.get(&digest)?));
    compiled.await.map_err(|_| LoadError::Invalid("the compiler failed on it".to_owned()))?
}

/// Checks, compiles and links.
fn prepare(loader: &Loader, digest: &str, bytes: &[u8]) -> Result<PluginPre<CallState>, LoadError> {
    check_kind(bytes)?;
    let cache = loader.cache.as_ref();
    if let Some(component) = cache.and_then(|cache| cache.component(&loader.engine, digest)) {
        return link(loader, &component);
    }
    let component = Component::from_binary(&loader.engine, bytes)
        .map_err(|error| LoadError::Invalid(one_line(&error)))?;
    let pre = link(loader, &component)?;
    if let Some(cache) = cache {
        cache.keep_component(digest, &component);
    }
    Ok(pre)
}

/// What the first bytes say.
fn check_kind(bytes: &[u8]) -> Result<(), LoadError> {
    const MAGIC: &[u8] = b"\0asm";
    const MODULE: &[u8] = b"\0asm\x01\0\0\0";
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    if bytes.starts_with(MODULE) {
        return Err(LoadError::CoreModule);
    }
    if !bytes.starts_with(MAGIC) {
        let head = &bytes[..bytes.len().min(200)];
        let is_text = std::str::from_utf8(head)
            .is_ok_and(|head| matches!(head.trim_start().get(..2), Some("(c" | "(m" | ";;")));
        return Err(if is_text { LoadError::WebAssemblyText } else { LoadError::NotWebAssembly });
    }
    Ok(())
}

fn link(loader: &Loader, component: &Component) -> Result<PluginPre<CallState>, LoadError> {
    let exported = component.component_type();
    let versions: Vec<&str> = exported
        .exports(&loader.engine)
        .filter_map(|(name, _)| name.strip_prefix(bindings::INTERFACE)?.strip_prefix('@'))
        .collect();
    match versions.as_slice() {
        [] => return Err(LoadError::NoTools),
        versions if versions.contains(&bindings::INTERFACE_VERSION) => {}
        [found, ..] => return Err(LoadError::OtherVersion { found: (*found).to_owned() }),
    }
    let mismatch = |error: wasmtime::Error| LoadError::Mismatch(one_line(&error));
    let pre = loader.linker.instantiate_pre(component).map_err(mismatch)?;
    PluginPre::new(pre).map_err(mismatch)
}

/// The whole chain of an error in one line.
fn one_line(error: &wasmtime::Error) -> String {
    let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
    let text = chain.join(": ");
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ").chars().take(600).collect()
}

/// Asks for the tools in an empty world and checks the answer.
async fn describe(
    pre: &PluginPre<CallState>,
    limits: Limits,
) -> Result<Vec<DescribedTool>, LoadError> {
    let pre = pre.clone();
    let runtime = tokio::runtime::Handle::current();
    let asked = tokio::task::spawn_blocking(move || {
        let setup = CallSetup {
            limits: &limits,
            world: &World::default(),
            workspace: None,
            http: HttpSetup { plugin: "".into(), outside: Outside::default(), redactor: None },
            observer: Arc::new(|_| {}),
            checks_paths: false,
        };
        runtime.block_on(call::run(
            &pre,
            setup,
            &CancellationToken::new(),
            async |exports, store| exports.belljar_plugin_tools().call_list_tools(store).await,
        ))
    });
    let outcome = asked.await.map_err(|_| {
        LoadError::Describe(ToolError::new(
            belljar_types::ToolErrorKind::Trap,
            "the host failed while it asked; this is a bug in the host",
        ))
    })?;
    check_tools(outcome.result.map_err(LoadError::Describe)?)
}

fn check_tools(tools: Vec<types::Tool>) -> Result<Vec<DescribedTool>, LoadError> {
    match tools.len() {
        0 => return Err(LoadError::NoTool),
        count if count > TOOLS => return Err(LoadError::TooManyTools(count)),
        _ => {}
    }
    let mut seen = HashSet::new();
    tools
        .into_iter()
        .map(|tool| {
            if !names::is_tool_name(&tool.name) {
                return Err(LoadError::ToolName(tool.name.chars().take(100).collect()));
            }
            if !seen.insert(names::look_alike(&tool.name)) {
                return Err(LoadError::SameToolTwice(tool.name));
            }
            check_tool(tool)
        })
        .collect()
}

fn check_tool(tool: types::Tool) -> Result<DescribedTool, LoadError> {
    let bad = |reason: String| LoadError::Tool { tool: tool.name.clone(), reason };
    if tool.description.trim().is_empty() {
        return Err(bad("it has no description".to_owned()));
    }
    if tool.description.len() > DESCRIPTION {
        return Err(bad(format!("its description is longer than {DESCRIPTION} bytes")));
    }
    let input_schema = schema(&tool.input_schema, "input").map_err(bad)?;
    if input_schema.get("type") != Some(&Value::from("object")) {
        return Err(bad("the type of its input schema is not `object`".to_owned()));
    }
    let output_schema = match &tool.output_schema {
        Some(text) => Some(schema(text, "output").map_err(bad)?),
        None => None,
    };
    let has = |hint| tool.hints.contains(hint);
    Ok(DescribedTool {
        hints: Hints {
            read_only: has(types::Hints::READ_ONLY),
            destructive: has(types::Hints::DESTRUCTIVE),
            idempotent: has(types::Hints::IDEMPOTENT),
            open_world: has(types::Hints::OPEN_WORLD),
        },
        name: tool.name,
        title: tool.title.map(|title| title.chars().take(200).collect()),
        description: tool.description,
        input_schema,
        output_schema,
    })
}

fn schema(text: &str, which: &str) -> Result<Value, String> {
    if text.len() > SCHEMA {
        return Err(format!("its {which} schema is longer than {SCHEMA} bytes"));
    }
    let schema: Value = serde_json::from_str(text)
        .map_err(|error| format!("its {which} schema is not JSON: {error}"))?;
    if schema.is_object() {
        Ok(schema)
    } else {
        Err(format!("its {which} schema is not a JSON object"))
    }
}
