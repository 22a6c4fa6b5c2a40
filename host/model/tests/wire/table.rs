//! The table of `tests/vectors/README.md`: every kind of case has vectors on every wire, or says
//! why there can be none; every vector stands in it.

use crate::{
    fixtures::{WIRES, Wire, vectors},
    vector,
};
use std::{collections::BTreeSet, fs};

/// The kinds of cases, from 1.
const ROWS: usize = 37;

/// What stands in a cell in place of vectors, before the reason.
const NONE: &str = "none: ";

#[test]
fn every_row_has_vectors_and_every_vector_a_row() {
    let path = vectors().join("README.md");
    let text = fs::read_to_string(&path).unwrap();
    let filled: String = text.lines().map(|line| fill(line) + "\n").collect();
    if let Err(problem) = vector::check(&path, &filled) {
        panic!("the table does not name the vectors that are there: {problem}");
    }

    let rows: Vec<Vec<&str>> = filled.lines().filter_map(cells).collect();
    let numbers: Vec<usize> = rows.iter().map(|cells| number(cells).unwrap()).collect();
    assert_eq!(numbers, (0..=ROWS).collect::<Vec<_>>(), "each row once, in order");
    for cells in &rows[1..] {
        for (wire, cell) in WIRES.iter().zip(&cells[2..]) {
            let (row, name) = (cells[0], wire.name);
            assert!(!cell.is_empty(), "row {row} has no vector in `{name}` and no reason why");
            if let Some(reason) = cell.strip_prefix(NONE) {
                assert!(reason.len() > 10, "row {row} of `{name}`: why none?");
            }
        }
        // The two dialects share the decoder of their protocol; a row needs one vector somewhere.
        let has_vector = |cell: &&str| !cell.starts_with(NONE);
        assert!(cells[2..].iter().any(has_vector), "row {} has no vector at all", cells[0]);
    }
}

/// The cells of a line of the table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix("| ")?.strip_suffix(" |").or_else(|| {
        // An empty last cell.
        line.strip_prefix("| ")?.strip_suffix("|")
    })?;
    let cells: Vec<_> = inner.split('|').map(str::trim).collect();
    number(&cells).map(|_| cells)
}

fn number(cells: &[&str]) -> Option<usize> {
    cells.first()?.parse().ok()
}

/// A line of the table with the vectors that are there; a reason stays where there is none.
fn fill(line: &str) -> String {
    let Some(cells) = cells(line) else { return line.to_owned() };
    assert_eq!(cells.len(), 2 + WIRES.len(), "{line}");
    let row = number(&cells).unwrap();
    let filled = WIRES.iter().zip(&cells[2..]).map(|(wire, cell)| {
        let names = of_row(*wire, row);
        if names.is_empty() && cell.starts_with(NONE) { (*cell).to_owned() } else { names }
    });
    let head = cells[..2].iter().map(|cell| (*cell).to_owned());
    format!("| {} |", head.chain(filled).collect::<Vec<_>>().join(" | "))
}

/// The vectors of a row: `NN-name.http` and `row-NN-name.request.json`. What has no number is of
/// row 0.
fn of_row(wire: Wire, row: usize) -> String {
    let names: BTreeSet<String> = fs::read_dir(wire.folder())
        .unwrap()
        .filter_map(|entry| {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let name = file.strip_suffix(".http").or(file.strip_suffix(".request.json"))?;
            let digits = name.strip_prefix("row-").unwrap_or(name).split('-').next()?;
            (digits.parse().unwrap_or(0) == row).then(|| format!("`{name}`"))
        })
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}
