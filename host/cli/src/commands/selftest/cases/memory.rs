//! Size: memory, what crosses to the host, handles.

use crate::commands::selftest::case::Case;
use belljar_types::ToolErrorKind::{self, Denied, Failed, MemoryLimit, OutputLimit, Trap};
use serde_json::json;

const REFUSED: &[ToolErrorKind] = &[Denied, Failed];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::ends(4, "touch memory without end", ("touch_memory", json!({})), &[MemoryLimit]),
        Case::answers(4, "grow memory until refused", ("grow_memory", json!({})), "refused at"),
        Case::text_ends(4, "memory_grows", &[MemoryLimit]),
        Case::text_ends(4, "memory_grows_at_once", &[MemoryLimit]),
        Case::text_ends(4, "memory_in_several", &[MemoryLimit]),
        Case::text_ends(4, "memory_of_table_and_memory", &[MemoryLimit]),
        Case::text_not_taken(4, "memory_in_instances", "memory_limit"),
        Case::text_not_taken(4, "memory_in_components", "memory_limit"),
        Case::text_not_taken(4, "memory_of_the_largest_minimum", "memory_limit"),
        Case::text_not_taken(4, "memory_of_64_bits", "larger memories"),
        Case::text_not_taken(4, "memories_too_many", "limits.memories"),
        Case::text_not_taken(4, "tables_too_many", "limits.tables"),
        Case::text_not_taken(4, "tables_too_large", "larger memories or tables"),
        Case::text_not_taken(4, "instances_too_many", "limits.instances"),
        Case::ends(5, "a huge text", ("huge_text", json!({"bytes": 16 << 20})), &[OutputLimit]),
        Case::ends(
            5,
            "a huge structured value",
            ("huge_structured", json!({"bytes": 9 << 20})),
            &[OutputLimit, MemoryLimit],
        ),
        Case::ends(5, "a huge log line", ("huge_log", json!({"bytes": 16 << 20})), &[OutputLimit]),
        Case::ends(
            5,
            "pieces without number",
            ("many_pieces", json!({"pieces": 400_000})),
            &[OutputLimit, MemoryLimit],
        ),
        Case::ends(5, "a long poll list", ("poll_many", json!({"count": 100_000})), &[MemoryLimit]),
        Case::ends(
            5,
            "one clock many times in a poll list",
            ("poll_one_many", json!({"count": 3_000_000})),
            &[Trap, OutputLimit],
        ),
        Case::ends(
            5,
            "random bytes at once",
            ("huge_random", json!({"bytes": 1_u64 << 32})),
            &[OutputLimit],
        ),
        Case::text_ends(5, "crossing_aliased_texts", &[OutputLimit]),
        Case::text_not_taken(5, "crossing_aliased_tools", "offers 20000 tools"),
        Case::text_ends(5, "crossing_beyond_memory", &[Trap, OutputLimit]),
        Case::text_ends(5, "crossing_list_beyond_memory", &[Trap, OutputLimit]),
        Case::text_ends(5, "crossing_result_beyond_memory", &[Trap]),
        Case::text_ends(5, "crossing_result_not_aligned", &[Trap]),
        Case::text_ends(5, "crossing_case_that_is_none", &[Trap]),
        Case::text_ends(5, "crossing_text_that_is_none", &[Trap]),
        Case::text_ends(5, "crossing_realloc_beyond_memory", &[Trap]),
        Case::text_ends(5, "crossing_realloc_to_the_host", &[Trap]),
        Case::text_ends(5, "crossing_log_beyond_memory", &[Trap, OutputLimit]),
        Case::ends(
            6,
            "open a file again and again",
            ("open_many", json!({"path": "note.txt", "count": 10_000})),
            REFUSED,
        ),
        Case::ends(
            6,
            "folders within folders",
            ("folders_many", json!({"count": 10_000})),
            REFUSED,
        ),
        Case::ends(
            6,
            "streams without number",
            ("streams_many", json!({"count": 10_000})),
            &[MemoryLimit],
        ),
        Case::ends(
            6,
            "clocks without number",
            ("poll_many", json!({"count": 10_000})),
            &[MemoryLimit],
        ),
    ]
}
