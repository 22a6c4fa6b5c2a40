//! Time: endless computing, bulk operations, recursion, waiting.

use crate::commands::selftest::{case::Case, stage};
use belljar_capability::Limits;
use belljar_types::ToolErrorKind::{self, Deadline, Failed, OutOfFuel, Trap};
use serde_json::json;

/// How what computes without end may end.
const STOPPED: &[ToolErrorKind] = &[Deadline, OutOfFuel];

pub(super) fn cases() -> Vec<Case> {
    let little_fuel = Limits { fuel: 20_000_000, ..stage::patient() };
    vec![
        Case::ends(1, "spin until the deadline", ("spin", json!({})), &[Deadline]),
        Case::ends(1, "spin until the fuel is gone", ("spin", json!({})), &[OutOfFuel])
            .under(little_fuel),
        Case::ends(1, "spin in host calls", ("spin_in_host_calls", json!({})), STOPPED),
        Case::text_not_taken(1, "spin_in_start", "could not be asked for its tools")
            .under(stage::limits()),
        Case::text_not_taken(1, "spin_in_nested_start", "could not be asked for its tools")
            .under(stage::limits()),
        Case::text_not_taken(1, "spin_in_list", "could not be asked for its tools")
            .under(stage::limits()),
        Case::text_ends(1, "spin_in_realloc", STOPPED),
        Case::text_ends(1, "spin_in_post", STOPPED),
        Case::text_ends(1, "spin_by_tail_calls", STOPPED),
        Case::text_ends(1, "spin_by_indirect_calls", STOPPED),
        Case::text_ends(1, "spin_in_host_calls", STOPPED),
        Case::ends(
            2,
            "fill memory without end",
            ("fill_memory", json!({"bytes": 48 << 20})),
            STOPPED,
        ),
        Case::text_ends(2, "bulk_fill", STOPPED),
        Case::text_ends(2, "bulk_copy", STOPPED),
        Case::text_ends(2, "bulk_init", STOPPED),
        Case::text_ends(2, "bulk_table_fill", STOPPED),
        Case::text_ends(2, "bulk_table_copy", STOPPED),
        Case::ends(3, "recurse without end", ("recurse", json!({})), &[Trap]),
        Case::ends(
            3,
            "recurse and call the host",
            ("recurse", json!({"host_calls": true})),
            &[Trap],
        ),
        Case::text_ends(3, "recurse_directly", &[Trap]),
        Case::text_ends(3, "recurse_indirectly", &[Trap]),
        Case::text_ends(3, "recurse_mutually", &[Trap]),
        Case::text_ends(3, "recurse_with_host_calls", &[Trap]),
        Case::text_ends(3, "recurse_with_texts", &[Trap]),
        Case::text_ends(3, "recurse_in_realloc", &[Trap]),
        Case::text_not_taken(3, "recurse_in_start", "ran out of stack"),
        Case::ends(8, "sleep for a year", ("sleep_for_ever", json!({})), &[Deadline]),
        Case::ends(8, "sleep a year in pieces", ("sleep_in_pieces", json!({})), &[Deadline]),
        Case::ends(8, "wait for the end of time", ("wait_for_the_end", json!({})), &[Deadline]),
        Case::ends(8, "wait for many clocks", ("wait_for_many", json!({})), &[Deadline]),
        Case::ends(8, "wait for nothing", ("wait_for_nothing", json!({})), &[Trap, Deadline]),
        Case::answers(8, "read standard input", ("read_stdin", json!({})), "read \"\""),
        Case::ends(
            8,
            "read a device",
            ("read_for_ever", json!({"path": "/dev/zero"})),
            &[ToolErrorKind::Denied, Failed],
        ),
    ]
}
