//! A plugin: checked and described when it is first seen, compiled when it is first needed.

use crate::{
    bindings::{self, PluginPre},
    cache::Cache,
    code::Code,
    compiler::{CompileObserver, Compiler},
    describe,
    filesystem::{Mounts, Scratch},
    limits,
    load_error::LoadError,
    manifest::Declared,
    names,
    plugin_file::{Contents, PluginFile},
    state::CallState,
};
use belljar_capability::{DeclaredTool, Granted, LimitSettings, Limits, Standing};
use belljar_types::{ToolDefinition, ToolSource};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use wasmtime::{
    Engine,
    component::{Component, Linker},
};

/// Components that are compiled at a time: each may take the memory of one compiler.
pub(crate) const COMPILING: usize = 2;
/// When people are told that compiling takes its time.
const A_MOMENT: Duration = Duration::from_millis(500);

/// Where a plugin's bytes are.
#[derive(Clone, Debug)]
pub(crate) enum PluginBytes {
    Embedded(&'static [u8]),
    /// Read again where the compile cache has nothing.
    File(PluginFile),
}

impl PluginBytes {
    /// The component of the plugin that has this digest, and no other.
    fn get(&self, digest: &str) -> Result<Contents, LoadError> {
        match self {
            Self::Embedded(bytes) => {
                Ok(Contents { component: (*bytes).into(), beside: None, digest: digest.to_owned() })
            }
            Self::File(file) => {
                let contents = file.read()?;
                if contents.digest == digest { Ok(contents) } else { Err(LoadError::Changed) }
            }
        }
    }
}

/// What is known about a plugin's bytes, and kept with their digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) declared: Declared,
    pub(crate) tools: Vec<DeclaredTool>,
}

/// A plugin's bytes, checked and described, whatever it is granted.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) about: Arc<About>,
    /// There where it had to be compiled to be described.
    code: Code,
}

pub(crate) struct Plugin {
    pub(crate) source: ToolSource,
    pub(crate) standing: Standing,
    /// What it gets, before a call's mode and hints narrow it.
    pub(crate) granted: Arc<Granted>,
    /// The folders of that, open.
    pub(crate) mounts: Arc<Mounts>,
    pub(crate) tools: Vec<Arc<ToolDefinition>>,
    pub(crate) permits: Arc<Semaphore>,
    bytes: PluginBytes,
    code: Code,
}

/// What plugins are loaded with; clones share it.
#[derive(Clone)]
pub(crate) struct Loader {
    pub(crate) engine: Engine,
    /// What compiled code depends on besides the component.
    pub(crate) engine_key: Arc<str>,
    pub(crate) concurrency: bool,
    pub(crate) linker: Arc<Linker<CallState>>,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) compiler: Compiler,
    pub(crate) compiling: Arc<Semaphore>,
    pub(crate) observer: CompileObserver,
    pub(crate) limits: Limits,
    /// Folders of our own, which no guest sees.
    pub(crate) own: Arc<[PathBuf]>,
    pub(crate) scratch: Option<Arc<Scratch>>,
}

impl Loader {
    /// What the cache knows about a plugin.
    pub(crate) fn known(
        &self,
        digest: &str,
        settings: &LimitSettings,
    ) -> Option<Result<Loaded, LoadError>> {
        let cache = self.cache.as_ref()?;
        if let Some(about) = cache.about::<About>(digest) {
            return Some(Ok(Loaded { about: Arc::new(about), code: Code::default() }));
        }
        let message = cache.failure(digest, &self.circumstances(settings))?;
        Some(Err(LoadError::Remembered(message)))
    }

    /// Compiles a plugin and finds out what tools it has: by its manifest, else by asking it in an
    /// empty world.
    pub(crate) async fn load(
        &self,
        name: &str,
        digest: &str,
        bytes: &PluginBytes,
        settings: &LimitSettings,
    ) -> Result<Loaded, LoadError> {
        let loaded = self.load_anew(name, digest, bytes, settings).await;
        match (&loaded, &self.cache) {
            (Ok(loaded), Some(cache)) => cache.keep_about(digest, &*loaded.about),
            (Err(error), Some(cache)) if error.is_about_the_bytes() => {
                cache.keep_failure(digest, &self.circumstances(settings), &error.to_string());
            }
            _ => {}
        }
        loaded
    }

    async fn load_anew(
        &self,
        name: &str,
        digest: &str,
        bytes: &PluginBytes,
        settings: &LimitSettings,
    ) -> Result<Loaded, LoadError> {
        let (declared, pre) = self.compile(name, digest, bytes).await?;
        let tools = match declared.manifest.as_ref().and_then(|manifest| manifest.tools.clone()) {
            Some(tools) => describe::check(tools)?,
            None => describe::ask(&pre, limits::describing(self.limits, settings)).await?,
        };
        Ok(Loaded { about: Arc::new(About { declared, tools }), code: Code::compiled(pre) })
    }

    /// Compiles on a thread that may block, and says so when it takes its time: a large component
    /// takes seconds.
    async fn compile(
        &self,
        name: &str,
        digest: &str,
        bytes: &PluginBytes,
    ) -> Result<(Declared, PluginPre<CallState>), LoadError> {
        let place = Arc::clone(&self.compiling).acquire_owned().await;
        let (loader, owned, bytes) = (self.clone(), digest.to_owned(), bytes.clone());
        let mut compiling = tokio::task::spawn_blocking(move || {
            let _place = place;
            let contents = bytes.get(&owned)?;
            let declared = Declared::read(&contents.component, contents.beside())?;
            Ok((declared, loader.prepare(&owned, &contents.component)?))
        });
        let compiled = tokio::select! {
            compiled = &mut compiling => compiled,
            () = tokio::time::sleep(A_MOMENT) => {
                self.observer
                    .tell(&format!("compiling the plugin `{name}`; this is done once, and kept"));
                compiling.await
            }
        };
        compiled.map_err(|_| LoadError::CompilerDied("the host failed".to_owned()))?
    }

    /// Compiles and links.
    fn prepare(&self, digest: &str, component: &[u8]) -> Result<PluginPre<CallState>, LoadError> {
        let cache = self.cache.as_ref();
        if let Some(component) = cache.and_then(|cache| cache.component(&self.engine, digest)) {
            return self.link(&component);
        }
        let compiled =
            self.compiler.compile(&self.engine, &self.engine_key, self.concurrency, component)?;
        // SAFETY: the bytes are what the compiler of this program has just made, in this process or
        // in a child that runs this program's own file.
        #[expect(unsafe_code, reason = "loading compiled code cannot be checked by the compiler")]
        let component =
            unsafe { Component::deserialize(&self.engine, &compiled) }.map_err(|error| {
                // Refused by the engine's pool, whose slots have a size.
                if format!("{error:#}").contains("pooling allocator") {
                    LoadError::TooMuchForACall(error.root_cause().to_string())
                } else {
                    LoadError::CompilerDied(one_line(&error))
                }
            })?;
        let pre = self.link(&component)?;
        if let Some(cache) = cache {
            cache.keep_component(digest, &compiled);
        }
        Ok(pre)
    }

    fn link(&self, component: &Component) -> Result<PluginPre<CallState>, LoadError> {
        let exported = component.component_type();
        let versions: Vec<&str> = exported
            .exports(&self.engine)
            .filter_map(|(name, _)| name.strip_prefix(bindings::INTERFACE)?.strip_prefix('@'))
            .collect();
        match versions.as_slice() {
            [] => return Err(LoadError::NoTools),
            versions if versions.contains(&bindings::INTERFACE_VERSION) => {}
            [found, ..] => return Err(LoadError::OtherVersion { found: (*found).to_owned() }),
        }
        let mismatch = |error: wasmtime::Error| LoadError::Mismatch(one_line(&error));
        let pre = self.linker.instantiate_pre(component).map_err(mismatch)?;
        PluginPre::new(pre).map_err(mismatch)
    }

    /// What a failure depends on besides the bytes and the engine.
    fn circumstances(&self, settings: &LimitSettings) -> String {
        format!("{:?}", limits::describing(self.limits, settings))
    }
}

impl Plugin {
    pub(crate) fn new(
        name: &str,
        digest: &str,
        bytes: PluginBytes,
        standing: Standing,
        granted: Arc<Granted>,
        mounts: Mounts,
        loaded: &Loaded,
    ) -> Self {
        let bundled = standing == Standing::Bundled;
        let source = ToolSource { plugin: name.into(), digest: digest.into() };
        let tools = &loaded.about.tools;
        Self {
            tools: tools.iter().map(|tool| Arc::new(definition(&source, bundled, tool))).collect(),
            source,
            standing,
            mounts: Arc::new(mounts),
            permits: Arc::new(Semaphore::new(limits::size(granted.limits.calls))),
            granted,
            bytes,
            code: loaded.code.clone(),
        }
    }

    /// Where its calls get a temporary folder. A bundled plugin works in the workspace alone, where
    /// a folder `tmp` is like any other.
    pub(crate) fn scratch(&self, loader: &Loader) -> Option<Arc<Scratch>> {
        loader.scratch.clone().filter(|_| self.standing != Standing::Bundled)
    }

    /// Whether the host that a call asks for is known from its arguments: so it is for the tools
    /// of the bundled plugin `web`.
    pub(crate) fn names_its_host(&self) -> bool {
        self.standing == Standing::Bundled && &*self.source.plugin == "web"
    }

    /// The plugin, if its code is there. Never blocks.
    pub(crate) fn ready_now(&self) -> Option<PluginPre<CallState>> {
        self.code.now()
    }

    /// The plugin, ready to be instantiated. Compiles where the cache has nothing: blocks.
    pub(crate) fn ready(&self, loader: &Loader) -> Result<PluginPre<CallState>, LoadError> {
        let digest = &self.source.digest;
        self.code.get(|| {
            let cached =
                loader.cache.as_ref().and_then(|cache| cache.component(&loader.engine, digest));
            match cached {
                Some(component) => loader.link(&component),
                None => loader.prepare(digest, &self.bytes.get(digest)?.component),
            }
        })
    }

    /// Gives its code back if nobody called it for so long, and says whether it did.
    pub(crate) fn give_back(&self, rested: Duration) -> bool {
        self.code.give_back(rested)
    }
}

fn definition(source: &ToolSource, bundled: bool, tool: &DeclaredTool) -> ToolDefinition {
    let name = if bundled {
        tool.name.as_str().into()
    } else {
        names::qualified(&source.plugin, &tool.name).into()
    };
    ToolDefinition {
        name,
        tool: tool.name.as_str().into(),
        source: source.clone(),
        title: tool.title.clone(),
        description: tool.description.clone(),
        input_schema: Arc::new(tool.input_schema.clone()),
        output_schema: tool.output_schema.clone().map(Arc::new),
        hints: tool.hints,
    }
}

/// The whole chain of an error in one line.
pub(crate) fn one_line(error: &wasmtime::Error) -> String {
    let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
    let text = chain.join(": ");
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ").chars().take(600).collect()
}
