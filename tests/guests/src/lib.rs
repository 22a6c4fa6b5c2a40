//! The guests of the tests and benches, built from this workspace and embedded as components. It
//! never loads or runs one.

pub mod made;

#[path = "../odd/src/kind.rs"]
pub mod kind;

/// What the bench guest does, natively.
#[path = "../bench/src/work.rs"]
pub mod work;

pub use kind::Odd;

/// A component in the tests' own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// The guest's name.
    pub name: &'static str,
    /// Of the bytes: `sha256:` and 64 hexadecimal digits.
    pub digest: &'static str,
    pub bytes: &'static [u8],
}

const GUESTS: [Embedded; 7] = include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// A guest that is written in the text format of components. It has one tool, `probe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// What it does.
    pub name: &'static str,
    pub bytes: &'static [u8],
}

/// All text-format guests.
pub const TEXTS: &[Text] = &include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// The text-format guest of a name.
///
/// # Panics
///
/// There is none.
pub fn text(name: &str) -> &'static [u8] {
    match TEXTS.iter().find(|text| text.name == name) {
        Some(text) => text.bytes,
        None => panic!("there is no text-format guest `{name}`"),
    }
}

/// One tool for each kind of attack.
pub const HOSTILE: Embedded = GUESTS[0];

/// Sends whatever requests it is told to.
pub const HTTP: Embedded = GUESTS[1];

/// `noop` answers `ok`, `echo` answers its argument `text`.
pub const NOOP: Embedded = GUESTS[2];

/// Does to files what it is told, in the interface's own terms.
pub const RAW: Embedded = GUESTS[4];

/// Works with text and files as [`work`] does, and has tools that never end.
pub const BENCH: Embedded = GUESTS[5];

/// A `wasi:cli` command, no plugin: counts the words of a JSON object on stdin.
pub const COMMAND: Embedded = GUESTS[6];

/// The component of a guest that breaks the contract in the way given.
pub fn odd(odd: Odd) -> Vec<u8> {
    let mut bytes = GUESTS[3].bytes.to_vec();
    let mut places = bytes.windows(kind::MARKER.len()).enumerate();
    let mut places = places.by_ref().filter(|(_, window)| window == kind::MARKER);
    let place = match (places.next(), places.next()) {
        (Some((place, _)), None) => place + kind::MARKER.len(),
        _ => panic!("the odd guest has no place, or more than one, for its choice"),
    };
    bytes[place] = odd as u8;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_are_components() {
        // The magic number, then version 13 of the layer that components are.
        let component = b"\0asm\x0d\0\x01\0";
        let names = GUESTS.map(|guest| (guest.name, guest.bytes.starts_with(component)));
        let expected =
            ["hostile", "http", "noop", "odd", "raw", "bench", "command"].map(|name| (name, true));
        assert_eq!(names, expected);
    }

    #[test]
    fn each_odd_guest_differs_from_the_built_one_in_its_choice_alone() {
        for (number, kind) in Odd::ALL.into_iter().enumerate() {
            let bytes = odd(kind);
            let built = GUESTS[3].bytes;
            assert_eq!(bytes.len(), built.len());
            let changed: Vec<_> =
                bytes.iter().zip(built).filter(|(odd, built)| odd != built).collect();
            let expected = [(&(kind as u8), &0)];
            assert_eq!(changed, if number == 0 { &expected[..0] } else { &expected[..] });
            assert_eq!(usize::from(kind as u8), number);
        }
    }
}
