//! The table of threats: for each kind, the tests and the selftest cases that hold it. A name that
//! is in no source, and a kind with fewer than three, fail here.
//!
//! To add one: write its name into its row. A name with a `:` is a case of `belljar selftest`,
//! any other a test function.

use crate::support::repository;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Row, kind, and what holds it.
const ROWS: [(u8, &str, &[&str]); 34] = [
    (
        1,
        "endless computing",
        &[
            "the_deadline_ends_computing_and_waiting",
            "fuel_ends_computing",
            "no_tool_that_goes_on_for_ever_leaves_anything_behind",
            "guests_that_only_call_the_host_starve_nobody",
            ":spin_in_start",
            ":spin_in_nested_start",
            ":spin_in_list",
            ":spin_in_realloc",
            ":spin_in_post",
            ":spin_by_tail_calls",
            ":spin_by_indirect_calls",
            ":spin_in_host_calls",
        ],
    ),
    (
        2,
        "bulk operations",
        &[
            "no_text_guest_leaves_anything_behind",
            ":fill memory without end",
            ":bulk_fill",
            ":bulk_copy",
            ":bulk_init",
            ":bulk_table_fill",
            ":bulk_table_copy",
        ],
    ),
    (
        3,
        "recursion",
        &[
            "recursion_and_crashes_are_traps_with_last_words",
            "a_panic_with_the_least_stack_left_ends_that_call_only",
            "deep_json_is_refused_or_passed_on_whole",
            ":recurse_directly",
            ":recurse_indirectly",
            ":recurse_mutually",
            ":recurse_with_host_calls",
            ":recurse_with_texts",
            ":recurse_in_realloc",
            ":recurse_in_start",
        ],
    ),
    (
        4,
        "memory",
        &[
            "memory_is_bounded",
            "memories_and_tables_are_summed",
            "the_parts_of_a_component_are_counted_together_and_named",
            "memories_that_are_each_small_are_too_much_together",
            ":memory_grows",
            ":memory_grows_at_once",
            ":memory_in_several",
            ":memory_in_instances",
            ":memory_in_components",
            ":memory_of_table_and_memory",
            ":memory_of_the_largest_minimum",
            ":memory_of_64_bits",
            ":memories_too_many",
            ":tables_too_many",
            ":tables_too_large",
            ":instances_too_many",
        ],
    ),
    (
        5,
        "large data to the host",
        &[
            "what_crosses_to_the_host_is_bounded",
            "pieces_and_links_are_bounded_too",
            "a_plugin_that_breaks_the_contract_is_refused_with_its_reason",
            ":a long poll list",
            ":crossing_aliased_texts",
            ":crossing_aliased_tools",
            ":crossing_beyond_memory",
            ":crossing_list_beyond_memory",
            ":crossing_result_beyond_memory",
            ":crossing_result_not_aligned",
            ":crossing_case_that_is_none",
            ":crossing_text_that_is_none",
            ":crossing_realloc_beyond_memory",
            ":crossing_realloc_to_the_host",
            ":crossing_log_beyond_memory",
        ],
    ),
    (
        6,
        "handles",
        &[
            "handles_and_requests_are_bounded",
            "header_fields_are_bounded",
            "the_host_can_open_a_socket_while_all_calls_hold_all_that_they_may",
            ":open a file again and again",
            ":folders within folders",
            ":streams without number",
            ":clocks without number",
        ],
    ),
    (
        7,
        "output floods",
        &[
            "floods_are_dropped_and_marked",
            "a_flood_of_progress_is_thinned",
            ":a flood on standard output",
            ":a flood on standard error",
            ":a flood in the log",
            ":shown output without end",
            ":crossing_log_without_end",
            ":crossing_emit_without_end",
        ],
    ),
    (
        8,
        "waiting for ever",
        &[
            "the_deadline_ends_computing_and_waiting",
            "what_can_block_or_is_no_file_is_not_opened",
            "no_tool_that_goes_on_for_ever_leaves_anything_behind",
            ":sleep for a year",
            ":sleep a year in pieces",
            ":wait for the end of time",
            ":wait for many clocks",
            ":wait for nothing",
            ":read standard input",
            ":read a pipe in the workspace",
            ":read a device",
        ],
    ),
    (
        9,
        "path escapes",
        &[
            "every_path_that_leads_out_is_refused_and_recorded",
            "a_path_of_the_host_is_missing_and_recorded",
            "names_of_two_paths_that_lead_out_are_refused_together",
            "swaps_lead_nowhere_with_openat2",
            "swaps_lead_nowhere_without_openat2",
            ":climb with dots",
            ":an absolute path",
            ":links of every kind",
            ":a link that the guest makes",
        ],
    ),
    (
        10,
        "read-only worlds",
        &[
            "a_read_only_world_stays_as_it_was_whatever_the_guest_tries",
            "a_grant_for_reading_is_not_widened_by_a_tool_that_writes",
            "plan_mode_changes_nothing_whatever_the_rules",
            "a_folder_granted_for_reading_stays_as_it_was",
            "a_reading_world_of_a_writable_folder_stays_as_it_was",
            ":change a read-only world",
            ":claim to read, and write",
        ],
    ),
    (
        11,
        "deny globs",
        &[
            "deny_globs_close_what_they_match_and_all_below",
            "a_folder_that_a_glob_begins_with_is_known",
            "a_deny_glob_that_means_nothing_is_refused",
            "deny_globs_hold_for_what_is_opened_and_not_for_what_was_typed",
            "a_refusal_by_a_glob_names_the_real_place_and_the_glob",
            ":what a glob denies",
        ],
    ),
    (
        12,
        "special places",
        &[
            "a_folder_that_means_nothing_or_nothing_safe_is_refused",
            "the_systems_own_state_is_no_workspace_and_not_read_through_one",
            "what_is_no_folder_of_a_disk_cannot_be_granted",
            "our_own_folders_do_not_exist_in_a_home_that_is_the_workspace",
            "the_deepest_of_nested_grants_holds_whatever_way_leads_there",
            "a_cache_inside_the_workspace_is_used_and_no_guest_sees_it",
            ":the system's own folders",
            ":the program's own folders",
            ":nested grants",
        ],
    ),
    (
        13,
        "disk filling",
        &[
            "every_way_to_write_ends_at_the_quota",
            "every_way_to_create_ends_at_the_quota",
            "guests_that_fill_the_disk_leave_a_bounded_part_of_it_full",
            ":append without end",
            ":files without number",
            ":a size out of nothing",
        ],
    ),
    (
        14,
        "hosts it may not read",
        &[
            "private_addresses_are_refused_in_every_spelling",
            "a_name_is_resolved_once_for_a_call_and_the_connection_goes_to_what_was_checked",
            "a_redirect_is_a_new_request",
            "every_spelling_is_one_canonical_request_or_none",
            "addresses_are_public_where_cpython_calls_them_global",
            ":a host without a grant",
            ":private hosts in every spelling",
        ],
    ),
    (
        15,
        "request tricks",
        &[
            "what_is_no_clear_request_is_refused",
            "headers_that_are_the_hosts_cannot_be_set",
            "a_header_cannot_ask_for_a_method_that_is_not_granted",
            ":headers with line ends",
            ":headers that are the host's",
        ],
    ),
    (
        16,
        "endless responses",
        &[
            "a_server_that_says_nothing_or_ever_more_meets_the_deadline",
            "a_compressed_body_is_left_as_it_is",
            "each_limit_is_held_and_named",
            ":a body without end",
            ":a server that says nothing",
        ],
    ),
    (
        17,
        "sockets without a grant",
        &[
            "sockets_are_there_and_lead_nowhere",
            "a_tool_that_is_not_open_world_sends_nothing_whatever_is_granted",
            ":connect to this machine",
            ":look a name up",
            ":listen",
            ":a request by a tool without the hint",
        ],
    ),
    (
        18,
        "secrets",
        &[
            "a_secret_is_added_for_its_host_and_never_comes_back",
            "a_secret_is_sent_nowhere_else",
            "every_form_is_taken_out_wherever_the_server_puts_it",
            "nothing_that_the_plugin_says_has_it",
            "a_guest_sees_no_variable_no_argument_and_no_input",
            ":the environment",
            ":a server that says the secret",
        ],
    ),
    (
        19,
        "compile bombs",
        &[
            "a_component_that_takes_too_long_to_compile_is_given_up",
            "a_component_that_takes_too_much_memory_to_compile_is_given_up",
            "every_compile_bomb_gets_its_line_and_the_others_are_offered",
            ":a huge function",
            ":functions without number",
            ":components without end",
            ":a type that doubles",
        ],
    ),
    (
        20,
        "forged cache",
        &[
            "a_cache_entry_that_was_touched_is_made_anew",
            "a_cache_folder_that_is_not_ours_alone_is_not_used",
            ":flipped bytes in the cache",
            ":a cache that others may write",
            ":links in the cache",
        ],
    ),
    (
        21,
        "not a plugin",
        &[
            "every_file_that_is_no_plugin_is_named_with_its_reason",
            "a_plugin_that_breaks_the_contract_is_refused_with_its_reason",
            "every_file_that_is_not_taken_gets_its_line",
            ":a core module",
            ":an empty file",
            ":half a component",
            ":a component without tools",
            ":a schema that is none",
        ],
    ),
    (
        22,
        "hostile words",
        &[
            "hostile_words_are_shown_and_not_obeyed",
            "hostile_words_in_every_output_are_shown_and_not_obeyed",
            "a_terminal_gets_nothing_raw",
            "what_a_terminal_would_obey_is_shown",
            ":hostile words in a result",
            ":hostile words in an error",
            ":hostile words in the log",
            ":hostile words in a description",
            ":hostile words as a tool's name",
        ],
    ),
    (
        23,
        "name capture",
        &[
            "two_files_of_one_name_are_one_plugin_and_it_is_said",
            "names_that_read_alike_are_refused",
            "allowing_a_bundled_tool_allows_no_other_of_that_name",
            ":the name of a bundled plugin",
            ":a look-alike of one",
            ":two tools of one name",
            ":a name in another script",
            ":the name of a bundled tool",
        ],
    ),
    (
        24,
        "changed after approval",
        &[
            "a_plugin_that_changed_since_the_start_is_not_run",
            "grants_hold_for_the_bytes_or_the_path_that_they_were_given_to",
            "what_was_allowed_is_suspended_when_it_changes_and_back_when_it_changes_back",
            "one_byte_more_or_less_is_another_plugin",
            "half_a_file_is_never_taken",
            ":one byte changed after approval",
            ":swapped while it serves",
        ],
    ),
    (
        25,
        "state across calls",
        &[
            "nothing_is_left_for_the_next_call",
            "a_temporary_folder_is_empty_private_and_gone",
            ":state_in_memory",
            ":state_in_grown_memory",
            ":state_in_global",
            ":state_in_table",
            ":state_in_dropped_segments",
            ":the temporary folder",
        ],
    ),
    (
        26,
        "the host's own bugs",
        &[
            "a_panic_in_a_host_function_ends_that_call_only",
            "a_panic_with_the_least_stack_left_ends_that_call_only",
            "a_panic_that_is_no_text_or_leaves_a_lock_behind_ends_that_call_only",
            "calls_beside_one_that_fails_go_on",
            "an_observer_that_panics_ends_that_call_only",
        ],
    ),
    (
        27,
        "starving others",
        &[
            "fifty_spinners_and_fifty_sleepers_starve_nobody",
            "a_plugin_that_floods_waits_in_its_own_queue",
            "guests_that_only_call_the_host_starve_nobody",
            ":spinners and sleepers",
        ],
    ),
    (
        28,
        "cancelling",
        &[
            "a_thousand_cancels_at_any_moment_leave_nothing",
            "a_call_that_is_dropped_after_each_number_of_steps_leaves_nothing",
            "many_calls_that_are_cancelled_together_leave_nothing",
            "cancelling_ends_a_call_and_the_next_one_runs",
            "a_dropped_call_frees_its_place",
            "a_call_is_cancelled_while_it_waits_for_a_server",
            ":cancelled at every step",
        ],
    ),
    (
        29,
        "loose tongues",
        &[
            "recursion_and_crashes_are_traps_with_last_words",
            "what_fails_is_told_without_a_word_of_the_hosts",
            "no_failure_tells_the_model_of_this_machine",
            ":errors name nothing of the host",
        ],
    ),
    (
        30,
        "planted orders",
        &[
            "what_others_obey_is_protected",
            "a_protected_path_is_asked_about_in_every_mode_and_no_rule_speaks_for_it",
            "protected_paths_are_written_in_no_mode_by_no_way",
            "a_yes_that_names_a_protected_path_permits_exactly_that",
            "there_is_no_yes_for_good_to_a_protected_path",
            ":plant orders",
            ":plant orders by way of a link",
        ],
    ),
    (
        31,
        "the workspace",
        &[
            "links_pipes_folders_and_binary_files_are_not_read_and_named",
            "a_file_of_another_user_is_not_read",
            "a_trusted_file_widens_nothing",
            "a_folder_counts_once_it_is_trusted_and_until_its_file_changes",
            "what_is_not_the_users_own_file_is_not_read_though_it_was_trusted",
            "plugins_of_a_folder_are_seen_once_it_is_trusted_and_each_needs_its_own_yes",
            ":settings in the workspace",
        ],
    ),
    (
        32,
        "two plugins together",
        &[
            "without_a_grant_there_is_no_file_at_all",
            "no_connection_is_shared_between_calls",
            "two_plugins_at_a_time_have_two_temporary_folders",
            "nothing_moves_between_the_temporary_folder_and_others",
            ":one reads what the other was given",
        ],
    ),
    (
        33,
        "an old session",
        &[
            "what_an_edited_session_says_grants_nothing",
            "an_answer_for_the_session_holds_for_that_tool_only",
            "files_are_private_and_what_is_not_is_refused",
            "always_writes_the_line_that_it_shows_and_holds_in_this_workspace_alone",
            "a_flag_says_yes_for_one_run",
            ":an approval of another session",
        ],
    ),
    (
        34,
        "orders in the output",
        &[
            "a_model_that_obeys_orders_widens_nothing",
            "a_model_that_obeys_orders_widens_nothing_while_it_plans",
            "a_model_that_obeys_orders_widens_nothing_where_the_mode_denies_nothing",
            "an_approval_of_one_call_is_none_of_another",
            "no_tool_grants",
            ":orders in a result",
        ],
    ),
];

/// All Rust sources, by path.
fn sources() -> BTreeMap<String, String> {
    let root = repository();
    let mut sources = BTreeMap::new();
    let mut folders: Vec<_> =
        ["host", "plugins", "sdk", "tests"].map(|folder| root.join(folder)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                sources.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    sources
}

/// The functions that an attribute makes a test.
fn tests(sources: &BTreeMap<String, String>) -> BTreeSet<&str> {
    let mut tests = BTreeSet::new();
    for source in sources.values() {
        let mut is_test = false;
        for line in source.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(signature) =
                line.strip_prefix("async fn ").or(line.strip_prefix("fn "))
            {
                if is_test {
                    tests.extend(signature.split('(').next());
                }
                is_test = false;
            }
        }
    }
    tests
}

const CASES: &str = "host/cli/src/commands/selftest/cases/";

#[test]
fn every_row_is_held_by_three_tests_or_cases_that_exist() {
    let sources = sources();
    let tests = tests(&sources);
    let cases: String = sources
        .iter()
        .filter(|(path, _)| path.starts_with(CASES))
        .map(|(_, source)| source.as_str())
        .collect();
    for (at, (row, kind, names)) in ROWS.iter().enumerate() {
        assert_eq!(usize::from(*row), at + 1);
        let unique: BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "row {row} names one twice");
        for name in *names {
            let exists = match name.strip_prefix(':') {
                Some(case) => cases.contains(&format!("\"{case}\"")),
                None => tests.contains(name),
            };
            assert!(exists, "row {row}, {kind}: there is no `{name}`");
        }
        assert!(names.len() >= 3, "row {row}, {kind}, has {} cases", names.len());
    }
}

#[test]
fn the_kinds_are_those_of_selftest() {
    let path = Path::new("host/cli/src/commands/selftest/kinds.rs");
    let source = fs::read_to_string(repository().join(path)).unwrap();
    for (_, kind, _) in ROWS {
        assert!(source.contains(&format!("    \"{kind}\",\n")), "{kind}");
    }
}

/// A guest that nothing attacks with proves nothing.
#[test]
fn every_hostile_tool_text_guest_and_odd_kind_is_used() {
    let sources = sources();
    let users: String = sources
        .iter()
        .filter(|(path, _)| {
            path.contains("/tests/") && !path.starts_with("tests/guests")
                || path.starts_with(CASES)
                || path.starts_with("tests/e2e")
        })
        .map(|(_, source)| source.as_str())
        .collect();
    let hostile = &sources["tests/guests/hostile/src/lib.rs"];
    let tools = hostile.split("plugin!(").nth(1).unwrap().split(')').next().unwrap();
    let mut unused: Vec<&str> = tools
        .split(',')
        .filter_map(|tool| Some(tool.trim().split_once("::")?.1))
        .filter(|tool| {
            let spellings = [format!("\"{tool}\""), format!("__{tool}\"")];
            !spellings.iter().any(|spelling| users.contains(spelling))
        })
        .collect();
    let texts = belljar_test_guests::TEXTS.iter().map(|text| text.name);
    unused.extend(texts.filter(|text| !users.contains(&format!("\"{text}\""))));
    assert_eq!(unused, Vec::<&str>::new());
}
