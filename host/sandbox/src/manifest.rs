//! What a component says before it runs: its manifest, what it imports, which version of the
//! interface it exports. All of it is read from the bytes; nothing is compiled and nothing runs.
//!
//! The manifest is the custom section `belljar:manifest` of the component itself. A toolchain that
//! wraps a core module into a component leaves the sections of that module inside it, so where the
//! component has none, the section is looked for in the core modules directly inside, and no
//! deeper. A second one at the same level is an error.

use crate::{bindings, load_error::LoadError};
use belljar_capability::{MANIFEST_SECTION, Manifest};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, ops::Range};
use wasm_encoder::ComponentSection as _;
use wasmparser::{Chunk, Parser, Payload};

/// Imports that are kept, and characters of the name of each.
const IMPORTS: usize = 200;
const IMPORT_NAME: usize = 200;

/// What a component declares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    /// Without one the plugin gets what is granted to it by name, and is asked for its tools.
    pub manifest: Option<Manifest>,
    /// The names of what it imports.
    pub imports: Vec<String>,
    /// The versions of `belljar:plugin/tools` that it exports.
    pub interfaces: Vec<String>,
}

impl Declared {
    /// Reads what stands in a component, and in the file beside it.
    ///
    /// # Errors
    ///
    /// The bytes are no component, or its manifest is none or one of two.
    pub fn read(component: &[u8], beside: Option<(&str, &[u8])>) -> Result<Self, LoadError> {
        check_kind(component)?;
        let sections = Sections::read(component)?;
        let section = sections.manifest()?;
        let manifest = match (section, beside) {
            (Some(_), Some((name, _))) => return Err(LoadError::TwoManifests(name.to_owned())),
            (Some(section), None) => Some(Manifest::from_section(section)?),
            (None, Some((name, text))) => {
                let text = std::str::from_utf8(text).map_err(|_| {
                    belljar_capability::ManifestError::Syntax(format!("`{name}` is not UTF-8"))
                })?;
                Some(Manifest::from_toml(text)?)
            }
            (None, None) => None,
        };
        Ok(Self { manifest, imports: sections.imports, interfaces: sections.interfaces })
    }

    /// What the imports imply, in words for people, each once.
    pub fn reach(&self) -> Vec<Cow<'static, str>> {
        let mut words = Vec::new();
        for import in &self.imports {
            let word = implied(import);
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words
    }
}

/// The component with a manifest in its own section, in the place of an earlier one.
///
/// # Errors
///
/// The bytes are no component.
pub fn pack(component: &[u8], manifest: &Manifest) -> Result<Vec<u8>, LoadError> {
    check_kind(component)?;
    let sections = Sections::read(component)?;
    let mut packed = Vec::with_capacity(component.len());
    let mut at = 0;
    for Range { start, end } in sections.places {
        packed.extend_from_slice(&component[at..start]);
        at = end;
    }
    packed.extend_from_slice(&component[at..]);
    let data = manifest.to_section();
    wasm_encoder::CustomSection { name: MANIFEST_SECTION.into(), data: data.into() }
        .append_to_component(&mut packed);
    Ok(packed)
}

/// What the first bytes say.
pub(crate) fn check_kind(bytes: &[u8]) -> Result<(), LoadError> {
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

/// The sections that matter here.
#[derive(Default)]
struct Sections<'a> {
    /// Manifests of the component itself, and where their sections stand.
    own: Vec<&'a [u8]>,
    places: Vec<Range<usize>>,
    /// Manifests of the core modules directly inside.
    of_modules: Vec<&'a [u8]>,
    imports: Vec<String>,
    interfaces: Vec<String>,
}

impl<'a> Sections<'a> {
    /// Goes over the sections without looking into what is nested deeper.
    fn read(component: &'a [u8]) -> Result<Self, LoadError> {
        let invalid =
            |error: wasmparser::BinaryReaderError| LoadError::Invalid(error.message().to_owned());
        let mut sections = Self::default();
        let mut parser = Parser::new(0);
        let mut at = 0;
        loop {
            let start = at;
            let payload = next(&mut parser, component, &mut at).map_err(invalid)?;
            match payload {
                Payload::ModuleSection { unchecked_range, .. } => {
                    let module = inside(component, unchecked_range.clone(), &mut at)?;
                    sections.read_module(module).map_err(invalid)?;
                }
                Payload::ComponentSection { unchecked_range, .. } => {
                    inside(component, unchecked_range, &mut at)?;
                }
                Payload::ComponentImportSection(imports) => {
                    for import in imports.into_iter().take(IMPORTS) {
                        let name = import.map_err(invalid)?.name.name;
                        if sections.imports.len() < IMPORTS {
                            sections.imports.push(name.chars().take(IMPORT_NAME).collect());
                        }
                    }
                }
                Payload::ComponentExportSection(exports) => {
                    for export in exports {
                        let name = export.map_err(invalid)?.name.name;
                        let version = name
                            .strip_prefix(bindings::INTERFACE)
                            .and_then(|rest| rest.strip_prefix('@'));
                        if let Some(version) = version.filter(|version| version.len() < 100) {
                            sections.interfaces.push(version.to_owned());
                        }
                    }
                }
                Payload::CustomSection(custom) if custom.name() == MANIFEST_SECTION => {
                    sections.own.push(custom.data());
                    sections.places.push(start..at);
                }
                Payload::End(_) => return Ok(sections),
                _ => {}
            }
        }
    }

    fn read_module(&mut self, module: &'a [u8]) -> wasmparser::Result<()> {
        let mut parser = Parser::new(0);
        let mut at = 0;
        loop {
            match next(&mut parser, module, &mut at)? {
                Payload::CodeSectionStart { size, .. } => {
                    parser.skip_section();
                    at += usize::try_from(size).unwrap_or(usize::MAX).min(module.len() - at);
                }
                Payload::CustomSection(custom) if custom.name() == MANIFEST_SECTION => {
                    self.of_modules.push(custom.data());
                }
                Payload::End(_) => return Ok(()),
                _ => {}
            }
        }
    }

    fn manifest(&self) -> Result<Option<&'a [u8]>, LoadError> {
        let level = if self.own.is_empty() { &self.of_modules } else { &self.own };
        match level.as_slice() {
            [] => Ok(None),
            [manifest] => Ok(Some(manifest)),
            _ => Err(LoadError::TwoSections),
        }
    }
}

fn next<'a>(
    parser: &mut Parser,
    bytes: &'a [u8],
    at: &mut usize,
) -> wasmparser::Result<Payload<'a>> {
    const WHOLE: bool = true;
    match parser.parse(&bytes[*at..], WHOLE)? {
        Chunk::Parsed { consumed, payload } => {
            *at += consumed;
            Ok(payload)
        }
        // Told that the bytes are whole, it asks for no more: bytes that end early are an error.
        Chunk::NeedMoreData(_) => Ok(Payload::End(*at)),
    }
}

/// The bytes of something nested, and on past them.
fn inside<'a>(
    component: &'a [u8],
    range: Range<usize>,
    at: &mut usize,
) -> Result<&'a [u8], LoadError> {
    let cut = || LoadError::Invalid("it ends in the middle of a section".to_owned());
    let nested = component.get(range.clone()).ok_or_else(cut)?;
    *at = range.end;
    Ok(nested)
}

/// What one import implies.
fn implied(import: &str) -> Cow<'static, str> {
    let name = import.split('@').next().unwrap_or(import);
    let package = name.split('/').next().unwrap_or(name);
    Cow::Borrowed(match (package, name) {
        (_, "wasi:cli/environment") => "environment variables and arguments",
        (_, "wasi:cli/stdin" | "wasi:cli/stdout" | "wasi:cli/stderr") => "standard streams",
        ("wasi:cli", _) => "the command line",
        ("wasi:filesystem", _) => "files",
        ("wasi:sockets", _) => "sockets and name look-ups, which are always refused",
        ("wasi:http", _) => "HTTP requests",
        ("wasi:clocks", _) => "clocks",
        ("wasi:random", _) => "random numbers",
        ("wasi:io", _) => "streams",
        ("belljar:plugin", _) => "the run's log and progress",
        _ => return Cow::Owned(format!("`{import}`, which this host does not know")),
    })
}
