//! The cases, one file a theme. A case is a line or two: the row, its name, the attack, what must
//! come of it.

mod calls;
mod computing;
mod files;
mod http;
mod loading;
mod memory;
mod output;
mod trust;

use super::case::Case;

/// All cases, in the order of their rows.
pub(super) fn all() -> Vec<Case> {
    let themes = [
        computing::cases(),
        memory::cases(),
        output::cases(),
        files::cases(),
        http::cases(),
        loading::cases(),
        calls::cases(),
        trust::cases(),
    ];
    let mut cases: Vec<Case> = themes.into_iter().flatten().collect();
    cases.sort_by_key(|case| case.row);
    cases
}
