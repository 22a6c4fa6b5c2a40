//! Inputs of text: samples, mixed and damaged.

use fastrand::Rng;

/// What is of interest in any text.
const ODD: [&str; 40] = [
    "\0", "\n", "\r\n", "\t", " ", "\u{7f}", "\u{85}", "\u{a0}", "\u{200b}", "\u{200d}",
    "\u{202e}", "\u{2028}", "\u{3002}", "\u{feff}", "\u{fffd}", "\u{ff0e}", "ß", "İ", "ſ", "é",
    "e\u{301}", "🎈", "/", "//", "\\", "..", ".", "%", "%2e", "%00", "*", "**", "\"", "'", "(",
    ")", "[", "]", "=", ",",
];
const NUMBERS: [&str; 10] =
    ["0", "-1", "1", "255", "256", "65535", "65536", "4294967296", "18446744073709551616", "1e309"];

/// A text made of samples and words of its kind. Now and then it is no text at all.
pub(crate) fn text(rng: &mut Rng, samples: &[&str], words: &[&str]) -> Vec<u8> {
    let mut text = rng.choice(samples).copied().unwrap_or_default().as_bytes().to_vec();
    if rng.u8(..8) == 0 {
        let other = rng.choice(samples).copied().unwrap_or_default().as_bytes();
        text.truncate(rng.usize(..=text.len()));
        text.extend_from_slice(&other[rng.usize(..=other.len())..]);
    }
    for _ in 0..rng.usize(..8) {
        edit(rng, &mut text, words);
    }
    text
}

fn edit(rng: &mut Rng, text: &mut Vec<u8>, words: &[&str]) {
    let start = rng.usize(..=text.len());
    let end = (start + rng.usize(..12)).min(text.len());
    let new: Vec<u8> = match rng.u8(..10) {
        0 => Vec::new(),
        1..=4 => rng.choice(words).copied().unwrap_or_default().into(),
        5 | 6 => rng.choice(ODD).unwrap_or_default().into(),
        7 => rng.choice(NUMBERS).unwrap_or_default().into(),
        8 => text[start..end].repeat(rng.usize(2..5)),
        _ => vec![rng.u8(..)],
    };
    // Put in, or put in the place of what is there.
    let end = if rng.bool() { start } else { end };
    text.splice(start..end, new);
}
