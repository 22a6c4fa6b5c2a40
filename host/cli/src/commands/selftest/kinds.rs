//! The kinds of threat, by the row of the table in SECURITY.md that promises against them.

/// By row, from 1.
pub(super) const KINDS: [&str; 34] = [
    "endless computing",
    "bulk operations",
    "recursion",
    "memory",
    "large data to the host",
    "handles",
    "output floods",
    "waiting for ever",
    "path escapes",
    "read-only worlds",
    "deny globs",
    "special places",
    "disk filling",
    "hosts it may not read",
    "request tricks",
    "endless responses",
    "sockets without a grant",
    "secrets",
    "compile bombs",
    "forged cache",
    "not a plugin",
    "hostile words",
    "name capture",
    "changed after approval",
    "state across calls",
    "the host's own bugs",
    "starving others",
    "cancelling",
    "loose tongues",
    "planted orders",
    "the workspace",
    "two plugins together",
    "an old session",
    "orders in the output",
];

/// Kinds without a case here, and why.
const TESTS_ONLY: [(u8, &str); 1] =
    [(26, "a fault has to be injected into a function of the host")];

/// The name of a row.
pub(super) fn name(row: u8) -> &'static str {
    KINDS.get(usize::from(row).wrapping_sub(1)).copied().unwrap_or("no kind")
}

/// Row, name and reason of the kinds that run in the tests only.
pub(super) fn tests_only() -> impl Iterator<Item = (u8, &'static str, &'static str)> {
    TESTS_ONLY.into_iter().map(|(row, why)| (row, name(row), why))
}
