//! Bytes that no server sends: at random, and vectors that were damaged. Whatever comes, and in
//! whatever pieces, an answer has one end, and what is before it can be used.

use crate::{
    fixtures::{MODEL, WIRES, Wire, request},
    vector::{self, Pace},
};
use belljar_model::decode;
use belljar_types::{ModelError, ModelEvent};
use futures::{FutureExt, StreamExt, stream};
use proptest::{prelude::*, sample::Index};
use std::{
    collections::{HashMap, HashSet},
    io,
    sync::OnceLock,
};

type Items = Vec<Result<ModelEvent, ModelError>>;

/// What a damaged stream is damaged with.
const WORDS: [&str; 30] = [
    "\n",
    "\n\n",
    "\r",
    "\r\n",
    ":",
    "\u{feff}",
    "\0",
    "é",
    "data: ",
    "data:",
    "event: error\n",
    "event: ",
    "id: 1\n",
    "data: [DONE]\n\n",
    "data: {}\n\n",
    "data: []\n\n",
    "{",
    "}",
    "[",
    "]",
    "null",
    "\"",
    "\\u0000",
    "1e309",
    "-1",
    "true",
    "\"error\":{\"message\":\"m\"},",
    "\"finish_reason\":\"length\",",
    "\"index\":0,",
    "\"arguments\":{},",
];

type Bodies = Vec<Vec<u8>>;

/// The bodies of a wire's answers.
fn bodies(wire: Wire) -> &'static [Vec<u8>] {
    static BODIES: OnceLock<HashMap<&'static str, Bodies>> = OnceLock::new();
    let all = BODIES.get_or_init(|| {
        let read = |wire: Wire| {
            let answers = wire.answers();
            answers.iter().map(|path| vector::read(path, Pace::AtOnce).pieces.concat()).collect()
        };
        WIRES.into_iter().map(|wire| (wire.name, read(wire))).collect()
    });
    &all[wire.name]
}

#[derive(Clone, Debug)]
enum Damage {
    Remove(Index, usize),
    Repeat(Index, usize),
    Insert(Index, &'static str),
    Flip(Index, u8),
    /// The rest of another body.
    Graft(Index, Index, Index),
}

fn damages() -> impl Strategy<Value = Damage> {
    let place = any::<Index>;
    prop_oneof![
        2 => (place(), 1..40_usize).prop_map(|(at, count)| Damage::Remove(at, count)),
        2 => (place(), 1..200_usize).prop_map(|(at, count)| Damage::Repeat(at, count)),
        4 => (place(), proptest::sample::select(WORDS.to_vec()))
            .prop_map(|(at, word)| Damage::Insert(at, word)),
        1 => (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        1 => (place(), place(), place()).prop_map(|(at, body, from)| Damage::Graft(at, body, from)),
    ]
}

fn damaged(wire: Wire, body: Index, damages: Vec<Damage>) -> Vec<u8> {
    let bodies = bodies(wire);
    let mut bytes = body.get(bodies).clone();
    for damage in damages {
        let place = |at: Index, bytes: &[u8]| at.index(bytes.len() + 1);
        match damage {
            Damage::Remove(at, count) => {
                let start = place(at, &bytes);
                bytes.drain(start..(start + count).min(bytes.len()));
            }
            Damage::Repeat(at, count) => {
                let start = place(at, &bytes);
                let piece = bytes[start..(start + count).min(bytes.len())].to_vec();
                bytes.splice(start..start, piece);
            }
            Damage::Insert(at, word) => {
                let start = place(at, &bytes);
                bytes.splice(start..start, word.bytes());
            }
            Damage::Flip(at, byte) => {
                if let Some(old) = (!bytes.is_empty()).then(|| at.index(bytes.len())) {
                    bytes[old] = byte;
                }
            }
            Damage::Graft(at, body, from) => {
                let other = body.get(bodies);
                bytes.truncate(place(at, &bytes));
                bytes.extend_from_slice(&other[place(from, other)..]);
            }
        }
    }
    bytes
}

/// Cuts at these places.
fn pieces(bytes: &[u8], cuts: &[Index]) -> Vec<Vec<u8>> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.push(bytes.len());
    places.sort_unstable();
    let mut start = 0;
    let piece = |end| bytes[std::mem::replace(&mut start, end)..end].to_vec();
    places.into_iter().map(piece).collect()
}

fn decoded(wire: Wire, pieces: Vec<Vec<u8>>, is_broken: bool) -> Items {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _guard = runtime.enter();
    let broken = is_broken.then(|| Err(io::Error::other("connection reset")));
    let chunks: Vec<_> = pieces.into_iter().map(Ok).chain(broken).collect();
    decode(&wire.config("http://server"), MODEL, &request(), stream::iter(chunks))
        .collect()
        .now_or_never()
        .expect("an answer that is there is read without waiting")
}

fn check(items: &Items) -> Result<(), TestCaseError> {
    let (last, before) = items.split_last().expect("an end");
    match last {
        Ok(ModelEvent::Done(_)) => {}
        Err(error) => prop_assert!(!error.message.is_empty()),
        other => prop_assert!(false, "no end: {other:?}"),
    }
    // The conversation has one call, `call_1`.
    let mut ids = HashSet::from(["call_1"]);
    for item in before {
        match item {
            Ok(ModelEvent::Text(text) | ModelEvent::ReasoningDelta(text)) => {
                prop_assert!(!text.is_empty());
            }
            Ok(ModelEvent::Reasoning(reasoning)) => {
                prop_assert!(reasoning.signature.is_some() || reasoning.data.is_some());
            }
            Ok(ModelEvent::ToolCall(call)) => {
                prop_assert!(ids.insert(&call.id), "{} twice", call.id);
                prop_assert!(!call.tool.is_empty());
            }
            Ok(ModelEvent::Usage(_)) => {}
            other => prop_assert!(false, "an end before the end: {other:?}"),
        }
    }
    Ok(())
}

fn holds(wire: Wire, bytes: &[u8], cuts: &[Index], is_broken: bool) -> Result<(), TestCaseError> {
    let whole = decoded(wire, vec![bytes.to_vec()], is_broken);
    check(&whole)?;
    prop_assert_eq!(decoded(wire, pieces(bytes, cuts), is_broken), whole, "in pieces");
    Ok(())
}

fn wires() -> impl Strategy<Value = Wire> {
    proptest::sample::select(WIRES.to_vec())
}

fn cuts() -> impl Strategy<Value = Vec<Index>> {
    proptest::collection::vec(any::<Index>(), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn any_bytes_have_one_end(
        wire in wires(),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        cuts in cuts(),
        is_broken: bool,
    ) {
        holds(wire, &bytes, &cuts, is_broken)?;
    }

    #[test]
    fn a_damaged_stream_has_one_end(
        wire in wires(),
        body: Index,
        damages in proptest::collection::vec(damages(), 1..6),
        cuts in cuts(),
        is_broken: bool,
    ) {
        holds(wire, &damaged(wire, body, damages), &cuts, is_broken)?;
    }
}
