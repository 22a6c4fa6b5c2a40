//! Markdown as lines. A link always shows where it leads, and raw HTML is only text.

use super::{highlight::Highlighter, table, wrap};
use crate::{style, visible};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui_core::{
    style::{Modifier, Style},
    text::{Line, Span},
};
use std::ops::Range;

/// What stands before a line of code.
pub(super) const CODE_INDENT: &str = "  ";

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// A block that is not inside another.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) range: Range<usize>,
    /// The language, where it is fenced code.
    pub(super) fenced: Option<String>,
}

/// The outermost blocks of a text.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let fenced = match tag {
                        Tag::CodeBlock(CodeBlockKind::Fenced(language)) => {
                            Some(language.to_string())
                        }
                        _ => None,
                    };
                    blocks.push(Block { range, fenced });
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => blocks.push(Block { range, fenced: None }),
            _ => {}
        }
    }
    blocks
}

/// The text as lines of at most `columns`.
pub(super) fn render(text: &str, columns: usize) -> Vec<Line<'static>> {
    let mut renderer = Renderer { columns, ..Renderer::default() };
    for event in Parser::new_ext(text, options()) {
        renderer.take(event);
    }
    renderer.end_inline();
    renderer.lines
}

/// Lines of code behind their indent.
pub(super) fn code_line(
    highlighter: &mut Highlighter,
    text: &str,
    prefix: &[Span<'static>],
    columns: usize,
) -> Vec<Line<'static>> {
    wrap::hard(
        &highlighter.line(&visible::line(&text.replace('\t', "    "))),
        prefix,
        prefix,
        columns,
    )
}

#[derive(Debug)]
enum Container {
    Quote,
    List(Option<u64>),
    Item {
        marker: String,
        /// Its marker was shown.
        begun: bool,
    },
}

#[derive(Debug, Default)]
struct Renderer {
    columns: usize,
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    containers: Vec<Container>,
    code: Option<(Highlighter, String)>,
    table: Option<table::Cells>,
    /// Where the open links and images lead, and where their text begins.
    links: Vec<(String, usize)>,
    /// A block has ended here, so that the next one stands apart from it.
    apart: bool,
}

impl Renderer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push(&text, style::PLAIN),
            },
            Event::Code(text) => self.push(&text, style::CODE),
            Event::Html(text) | Event::InlineHtml(text) => self.push(&text, style::FAINT),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(&text, style::CODE),
            Event::FootnoteReference(name) => self.push(&format!("[{name}]"), style::FAINT),
            Event::SoftBreak => self.push(" ", style::PLAIN),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.begin_block();
                self.lines.push(Line::styled("─".repeat(self.columns.min(20)), style::FAINT));
                self.apart = true;
            }
            Event::TaskListMarker(done) => {
                self.push(if done { "☑ " } else { "☐ " }, style::PLAIN);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { .. } => {
                self.begin_block();
                self.styles.push(style::STRONG.add_modifier(Modifier::UNDERLINED));
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((Highlighter::new(&language), String::new()));
            }
            Tag::List(first) => {
                // A list inside an item stands close to the item's text.
                if self.containers.is_empty() {
                    self.begin_block();
                } else {
                    self.end_inline();
                    self.apart = false;
                }
                self.containers.push(Container::List(first));
            }
            Tag::Item => {
                self.end_inline();
                self.apart = false;
                let marker = match self.containers.last_mut() {
                    Some(Container::List(Some(number))) => {
                        let marker = format!("{number}. ");
                        *number = number.saturating_add(1);
                        marker
                    }
                    _ => "• ".to_owned(),
                };
                self.containers.push(Container::Item { marker, begun: false });
            }
            Tag::Table(_) => {
                self.begin_block();
                self.table = Some(table::Cells { has_head: true, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.styles.push(style::PLAIN.add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(style::STRONG),
            Tag::Strikethrough => {
                self.styles.push(style::PLAIN.add_modifier(Modifier::CROSSED_OUT));
            }
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.spans.len()));
                self.styles.push(style::LINK);
            }
            Tag::Image { dest_url, .. } => {
                self.push("image: ", style::FAINT);
                self.links.push((dest_url.to_string(), self.spans.len()));
                self.styles.push(style::PLAIN);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.end_inline();
                self.containers.pop();
                self.apart = true;
            }
            TagEnd::Item => {
                // An item without text is still there.
                if matches!(self.containers.last(), Some(Container::Item { begun: false, .. })) {
                    self.flush();
                }
                self.end_inline();
                self.containers.pop();
            }
            TagEnd::TableCell => {
                let cell = Line::from(std::mem::take(&mut self.spans));
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some((target, from)) = self.links.pop() {
                    let shown: String =
                        self.spans.iter().skip(from).map(|span| span.content.as_ref()).collect();
                    if shown != visible::line(&target) {
                        self.push(&format!(" ({target})"), style::FAINT);
                    }
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &str, own: Style) {
        let style = self.styles.iter().fold(Style::new(), |all, style| all.patch(*style));
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.flush();
            }
            if !line.is_empty() {
                self.spans.push(Span::styled(visible::line(line), style.patch(own)));
            }
        }
    }

    /// Ends the line of text, which is there even if it is empty.
    fn flush(&mut self) {
        let (first, rest) = self.prefixes();
        let line = Line::from(std::mem::take(&mut self.spans));
        self.lines.extend(wrap::words(&line, &first, &rest, self.columns));
        if let Some((_, from)) = self.links.last_mut() {
            *from = 0;
        }
    }

    fn end_inline(&mut self) {
        if !self.spans.is_empty() {
            self.flush();
        }
    }

    fn begin_block(&mut self) {
        self.end_inline();
        if std::mem::take(&mut self.apart) && !self.lines.is_empty() {
            let (_, rest) = self.rest_of_prefixes();
            self.lines.push(Line::from(rest));
        }
    }

    fn end_block(&mut self) {
        self.end_inline();
        self.apart = true;
    }

    fn end_code(&mut self) {
        let Some((mut highlighter, code)) = self.code.take() else { return };
        let code = code.strip_suffix('\n').unwrap_or(&code);
        for line in code.split('\n') {
            let (mut prefix, _) = self.prefixes();
            prefix.push(Span::raw(CODE_INDENT));
            self.lines.extend(code_line(&mut highlighter, line, &prefix, self.columns));
        }
        self.apart = true;
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let (_, rest) = self.rest_of_prefixes();
        let taken: usize = rest.iter().map(Span::width).sum();
        for line in table::table(&table, self.columns.saturating_sub(taken)) {
            let (prefix, _) = self.prefixes();
            let spans = prefix.into_iter().chain(line.spans);
            self.lines.push(Line::from(spans.collect::<Vec<_>>()).style(line.style));
        }
        self.apart = true;
    }

    /// What stands before the next line and before those that it is broken into. Markers that were
    /// not shown yet are in the first.
    fn prefixes(&mut self) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
        let mut first = Vec::new();
        let (_, rest) = self.rest_of_prefixes();
        for container in &mut self.containers {
            match container {
                Container::Quote => first.push(Span::styled("▎ ", style::FAINT)),
                Container::List(_) => {}
                Container::Item { marker, begun } if !*begun => {
                    *begun = true;
                    first.push(Span::styled(marker.clone(), style::CALL));
                }
                Container::Item { marker, .. } => {
                    first.push(Span::raw(" ".repeat(wrap::width(marker))));
                }
            }
        }
        (first, rest)
    }

    fn rest_of_prefixes(&self) -> (usize, Vec<Span<'static>>) {
        let mut spans = Vec::new();
        for container in &self.containers {
            match container {
                Container::Quote => spans.push(Span::styled("▎ ", style::FAINT)),
                Container::List(_) => {}
                Container::Item { marker, .. } => {
                    spans.push(Span::raw(" ".repeat(wrap::width(marker))));
                }
            }
        }
        (spans.iter().map(Span::width).sum(), spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, columns: usize) -> Vec<String> {
        render(text, columns).iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn blocks_stand_apart_and_lists_are_indented() {
        let text = "# Head\nSome *text* of `code`\nhere.\n\n- one\n  - in it\n- two\n\n  more\n\n\
                    3. x\n4. y\n\n> quoted\n> text\n\n---\nend";
        assert_eq!(
            shown(text, 40),
            [
                "Head",
                "",
                "Some text of code here.",
                "",
                "• one",
                "  • in it",
                "• two",
                "",
                "  more",
                "",
                "3. x",
                "4. y",
                "",
                "▎ quoted text",
                "",
                "────────────────────",
                "",
                "end",
            ]
        );
    }

    #[test]
    fn a_link_says_where_it_leads_and_html_is_text() {
        assert_eq!(
            shown("[good](https://evil.example) <https://a.example> ![x](y.png) <b>bold</b>", 90),
            ["good (https://evil.example) https://a.example image: x (y.png) <b>bold</b>"]
        );
    }

    #[test]
    fn characters_that_markdown_spells_are_visible_too() {
        assert_eq!(shown("a&#27;[2J&#x202e;b `\u{1b}c`", 60), [r"a\u{1b}[2J\u{202e}b \u{1b}c"]);
        assert_eq!(shown("```\n&#27;\u{7}\n```", 60), [r"  &#27;\u{7}"]);
    }

    #[test]
    fn tables_and_tasks_are_shown() {
        assert_eq!(
            shown("| a | b |\n|---|---|\n| `x` | 日本 |\n\n- [x] done\n- [ ] open", 60),
            ["a  b", "─  ────", "x  日本", "", "• ☑ done", "• ☐ open"]
        );
    }

    #[test]
    fn the_outermost_blocks_are_found() {
        let blocks = blocks("a\nb\n\n- x\n\n  ```rs\n  y\n  ```\n\n```py\nz\n");
        let found: Vec<_> =
            blocks.into_iter().map(|block| (block.range.start, block.fenced)).collect();
        assert_eq!(found, [(0, None), (5, None), (29, Some("py".to_owned()))]);
    }
}
