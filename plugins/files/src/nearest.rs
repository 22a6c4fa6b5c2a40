//! A text that is not in a file: what comes nearest to it, found in bounded work. It only puts
//! into words; it never edits.

use belljar_workspace_path::cut;
use std::collections::HashMap;

/// How many lines of the file are looked at.
const LOOKED_AT: usize = 200_000;
/// How many lines are compared letter by letter.
const COMPARED: usize = 20_000;
/// How many lines of the nearest place are shown.
const SHOWN: usize = 25;
/// How much of one line is shown, and compared.
const LINE_BYTES: usize = 300;
/// The similarity, of 1, from which a line is worth showing.
const NEAR: f64 = 0.5;
/// How many places a line of the wanted text may have in it: `}` has many.
const REPEATED: usize = 8;

/// What the model should know about a text that is not in the file.
pub(crate) fn explain(content: &str, wanted: &str) -> String {
    let lines: Vec<&str> = content.lines().take(LOOKED_AT).collect();
    let wanted: Vec<&str> = wanted.lines().collect();
    if lines.is_empty() {
        return "the file is empty".to_owned();
    }
    if has_line_numbers(&wanted) {
        return "its lines begin with numbers, which are not part of the file: leave them out"
            .to_owned();
    }
    if let Some(start) = apart_from_white_space(&lines, &wanted) {
        let (place, verb) = place(start, wanted.len(), ["differs", "differ"]);
        let they = if wanted.len() == 1 { "it is" } else { "they are" };
        return format!(
            "{place} {verb} from it in white space only; {they}\n{}",
            quote(&lines, start, wanted.len())
        );
    }
    match same_lines(&lines, &wanted).or_else(|| similar_line(&lines, &wanted)) {
        Some(start) => {
            let length = wanted.len().min(lines.len() - start);
            let (place, verb) = place(start, length, ["comes", "come"]);
            format!("{place} {verb} nearest\n{}", quote(&lines, start, length))
        }
        None => "nothing in the file comes near it: read the file again".to_owned(),
    }
}

fn place(start: usize, length: usize, verbs: [&str; 2]) -> (String, &str) {
    if length == 1 {
        (format!("line {}", start + 1), verbs[0])
    } else {
        (format!("lines {}–{}", start + 1, start + length), verbs[1])
    }
}

fn quote(lines: &[&str], start: usize, length: usize) -> String {
    let mut quoted: Vec<String> = lines[start..start + length]
        .iter()
        .take(SHOWN)
        .map(|line| {
            let shown = cut(line, LINE_BYTES);
            format!("{shown}{}", if shown.len() < line.len() { " …" } else { "" })
        })
        .collect();
    if length > SHOWN {
        quoted.push("…".to_owned());
    }
    quoted.join("\n")
}

/// `     2\ttwo`, as `read_file` shows lines on request.
fn has_line_numbers(wanted: &[&str]) -> bool {
    !wanted.is_empty()
        && wanted.iter().all(|line| {
            line.trim_start().split_once('\t').is_some_and(|(number, _)| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
}

fn apart_from_white_space(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    if wanted.iter().all(|line| line.trim().is_empty()) {
        return None;
    }
    lines.windows(wanted.len()).position(|window| {
        window
            .iter()
            .zip(wanted)
            .all(|(line, wanted)| line.split_whitespace().eq(wanted.split_whitespace()))
    })
}

/// The place where the most lines are those wanted.
fn same_lines(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut offsets: HashMap<&str, Vec<usize>> = HashMap::new();
    for (offset, line) in wanted.iter().enumerate() {
        let line = line.trim();
        let places = offsets.entry(line).or_default();
        if line.len() > 1 && places.len() < REPEATED {
            places.push(offset);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        for offset in offsets.get(line.trim()).into_iter().flatten() {
            if let Some(start) = index.checked_sub(*offset) {
                *votes.entry(start).or_default() += 1;
            }
        }
    }
    // The first of those with the most, so that the same file gives the same answer.
    votes
        .into_iter()
        .max_by_key(|(start, votes)| (*votes, usize::MAX - start))
        .map(|(start, _)| start)
}

/// The place of the line that is most like the longest one wanted.
fn similar_line(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let (offset, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(offset, line)| (line.trim().len(), usize::MAX - offset))?;
    let longest = cut(longest.trim(), LINE_BYTES);
    if longest.is_empty() {
        return None;
    }
    let mut best = None;
    for (index, line) in lines.iter().take(COMPARED).enumerate() {
        let similarity = strsim::sorensen_dice(longest, cut(line.trim(), LINE_BYTES));
        if similarity >= NEAR && best.is_none_or(|(nearest, _)| similarity > nearest) {
            best = Some((similarity, index));
        }
    }
    best.map(|(_, index)| index.saturating_sub(offset))
}

#[cfg(test)]
mod tests {
    use super::explain;

    const FILE: &str = "use std::fs;\n\nfn main() {\n\tlet answer = compute(41);\n    \
                        println!(\"{answer}\");\n}\n\nfn compute(value: u32) -> u32 {\n    value + 1\n}\n";

    #[test]
    fn what_comes_nearest_is_quoted() {
        for (wanted, text) in [
            (
                "    let answer = compute(41);",
                "line 4 differs from it in white space only; it is\n\tlet answer = compute(41);",
            ),
            (
                "fn main() {\n    let answer = compute(41);\n",
                "lines 3–4 differ from it in white space only; they are\nfn main() {\n\tlet answer = \
                 compute(41);",
            ),
            (
                "fn compute(value: u32) -> u32 {\n    value + 2\n}",
                "lines 8–10 come nearest\nfn compute(value: u32) -> u32 {\n    value + 1\n}",
            ),
            ("let answer = compute(42);", "line 4 comes nearest\n\tlet answer = compute(41);"),
            (
                "     3\tfn main() {\n     4\t\tlet answer = compute(41);\n",
                "its lines begin with numbers, which are not part of the file: leave them out",
            ),
            ("SELECT * FROM zebra", "nothing in the file comes near it: read the file again"),
            ("\n\n\n", "nothing in the file comes near it: read the file again"),
        ] {
            assert_eq!(explain(FILE, wanted), text, "{wanted:?}");
        }
    }

    #[test]
    fn an_empty_file_is_said_to_be_empty() {
        assert_eq!(explain("", "x"), "the file is empty");
    }

    #[test]
    fn a_large_place_is_quoted_in_part() {
        let file = (0..60).map(|line| format!("let x{line} = {line};\n")).collect::<String>();
        let wanted = file.replace("x30 ", "y30 ");
        let text = explain(&file, &wanted);
        assert!(text.starts_with("lines 1–60 come nearest\nlet x0 = 0;\n"), "{text}");
        assert!(text.ends_with("let x24 = 24;\n…"), "{text}");
    }
}
