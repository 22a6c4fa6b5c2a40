//! The bundled plugins, built from this workspace and embedded as components. It never loads or
//! runs one.

/// A component in the program's own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// The plugin's name.
    pub name: &'static str,
    /// Of the bytes: `sha256:` and 64 hexadecimal digits.
    pub digest: &'static str,
    pub bytes: &'static [u8],
}

const BUNDLED: &[Embedded] = &include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// The plugins that come with the program, by name.
pub const fn bundled() -> &'static [Embedded] {
    BUNDLED
}
