//! A TOML document read key by key, so that every error names its file, its line and its key.
//!
//! Knows no key of its own: which ones there are, the caller says.

use super::{ConfigError, Source, list, nearest};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// A file and its text.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
}

impl<'a> Document<'a> {
    /// Parses the text. What the parser says is kept, the line it quotes is not: it may hold a
    /// secret.
    pub(super) fn parse(&self) -> Result<DeTable<'a>, ConfigError> {
        DeTable::parse(self.text).map(toml::Spanned::into_inner).map_err(|error| {
            ConfigError::Syntax {
                at: self.at(error.span().map_or(0, |span| span.start)),
                message: error.message().trim_end().replace('\n', ", "),
            }
        })
    }

    fn at(&self, offset: usize) -> Source {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Source::File { path: self.file.to_owned(), line }
    }
}

/// A value and where it stands.
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) at: Source,
}

/// A table of the document: the whole of it, or one that a key names.
pub(super) struct Section<'a> {
    pub(super) document: Document<'a>,
    /// The dotted name; empty for the whole document.
    pub(super) name: String,
    pub(super) table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    /// # Errors
    ///
    /// The first key in the file that is not one of `known`.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), ConfigError> {
        let unknown = self
            .table
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        let Some(key) = unknown else { return Ok(()) };
        let hint = match nearest(key.get_ref(), known) {
            Some(near) => format!("did you mean `{}`?", self.dotted(near)),
            None => format!("the known keys here are {}", list(known)),
        };
        Err(ConfigError::UnknownKey {
            at: self.document.at(key.span().start),
            key: self.dotted(key.get_ref()),
            hint,
        })
    }

    pub(super) fn string(&self, key: &str) -> Result<Option<Located<&'a str>>, ConfigError> {
        let Some((at, value)) = self.get(key) else { return Ok(None) };
        match value.as_str() {
            Some(value) => Ok(Some(Located { value, at })),
            None => Err(self.wrong_type(at, key, "a string", value)),
        }
    }

    /// A whole number that fits; nothing is said about zero.
    pub(super) fn number(&self, key: &str) -> Result<Option<Located<u32>>, ConfigError> {
        let Some((at, value)) = self.get(key) else { return Ok(None) };
        let Some(integer) = value.as_integer() else {
            return Err(self.wrong_type(at, key, "a whole number", value));
        };
        match u32::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) => Ok(Some(Located { value, at })),
            Err(_) => Err(ConfigError::Value {
                at,
                problem: format!(
                    "`{}` must be a whole number from 1 to {}",
                    self.dotted(key),
                    u32::MAX
                ),
            }),
        }
    }

    pub(super) fn boolean(&self, key: &str) -> Result<Option<Located<bool>>, ConfigError> {
        let Some((at, value)) = self.get(key) else { return Ok(None) };
        match value.as_bool() {
            Some(value) => Ok(Some(Located { value, at })),
            None => Err(self.wrong_type(at, key, "`true` or `false`", value)),
        }
    }

    /// A value of any type.
    pub(super) fn value(&self, key: &str) -> Option<Located<&'a DeValue<'a>>> {
        self.get(key).map(|(at, value)| Located { value, at })
    }

    /// The elements of an array; empty where the key is absent. `expected` says what they are.
    pub(super) fn items(
        &self,
        key: &str,
        expected: &'static str,
    ) -> Result<Vec<Located<&'a DeValue<'a>>>, ConfigError> {
        let Some((at, value)) = self.get(key) else { return Ok(Vec::new()) };
        let Some(array) = value.as_array() else {
            return Err(self.wrong_type(at, key, expected, value));
        };
        let item = |item: &'a toml::Spanned<DeValue<'a>>| Located {
            value: item.get_ref(),
            at: self.document.at(item.span().start),
        };
        Ok(array.iter().map(item).collect())
    }

    /// A table that is an element of the array of that key.
    pub(super) fn element(&self, key: &str, table: &'a DeTable<'a>) -> Section<'a> {
        Section { document: self.document, name: self.dotted(key), table }
    }

    /// An array of strings; empty where the key is absent.
    pub(super) fn strings(&self, key: &str) -> Result<Vec<Located<&'a str>>, ConfigError> {
        const EXPECTED: &str = "an array of strings";
        let read = |Located { value, at }: Located<&'a DeValue<'a>>| match value.as_str() {
            Some(value) => Ok(Located { value, at }),
            None => Err(self.wrong_type(at, key, EXPECTED, value)),
        };
        self.items(key, EXPECTED)?.into_iter().map(read).collect()
    }

    /// The table of that key.
    pub(super) fn section(&self, key: &str) -> Result<Option<Section<'a>>, ConfigError> {
        let Some((at, value)) = self.get(key) else { return Ok(None) };
        let Some(table) = value.as_table() else {
            return Err(self.wrong_type(at, key, "a table", value));
        };
        Ok(Some(Section { document: self.document, name: self.dotted(key), table }))
    }

    /// The names in this section and where they stand.
    pub(super) fn names(&self) -> impl Iterator<Item = Located<&'a str>> {
        self.table.keys().map(|key| Located {
            value: key.get_ref().as_ref(),
            at: self.document.at(key.span().start),
        })
    }

    fn get(&self, key: &str) -> Option<(Source, &'a DeValue<'a>)> {
        let (name, value) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
        Some((self.document.at(name.span().start), value.get_ref()))
    }

    pub(super) fn dotted(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    pub(super) fn wrong_type(
        &self,
        at: Source,
        key: &str,
        expected: &'static str,
        value: &DeValue<'_>,
    ) -> ConfigError {
        let found = match value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        ConfigError::WrongType { at, key: self.dotted(key), expected, found }
    }
}
