//! The guests of the tests and benches, built from this workspace and embedded as components. It
//! never loads or runs one.

/// A component in the tests' own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// The guest's name.
    pub name: &'static str,
    /// Of the bytes: `sha256:` and 64 hexadecimal digits.
    pub digest: &'static str,
    pub bytes: &'static [u8],
}

const GUESTS: &[Embedded] = &include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// Every guest.
pub const fn guests() -> &'static [Embedded] {
    GUESTS
}

/// The guest of that name.
///
/// # Panics
///
/// Where there is none.
pub fn guest(name: &str) -> &'static Embedded {
    match GUESTS.iter().find(|guest| guest.name == name) {
        Some(guest) => guest,
        None => panic!("no guest is named `{name}`"),
    }
}
