//! The ways in which the odd guest can be wrong. Compiled into the guest and into the crate that
//! embeds it.

/// What stands in the component before the byte that chooses.
pub const MARKER: &[u8; 18] = b"belljar-odd-kind: ";

/// A way to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Odd {
    /// Nothing is wrong: one tool, `sound`, that answers `ok`.
    Sound,
    /// A schema of type `string`.
    SchemaOfString,
    /// A schema that is JSON, but no schema: an array.
    SchemaOfArray,
    /// A schema that is not JSON.
    SchemaNotJson,
    /// A schema whose `properties` is a number.
    SchemaInvalid,
    /// A schema of 32 MiB.
    SchemaHuge,
    /// A schema 100 000 levels deep.
    SchemaDeep,
    /// An output schema that is not JSON.
    OutputSchemaNotJson,
    /// The empty name.
    NameEmpty,
    /// A name that starts with a digit.
    NameOfDigit,
    /// A name with a space.
    NameWithSpace,
    /// A name with the separator between a plugin and its tool.
    NameWithSeparator,
    /// A name of 65 letters.
    NameTooLong,
    /// A name with control characters.
    NameHostile,
    /// A name of letters that look like others.
    NameNotAscii,
    /// Two tools of one name.
    NameTwice,
    /// The name of a bundled tool.
    NameTaken,
    DescriptionEmpty,
    /// A description of 32 MiB.
    DescriptionHuge,
    /// A description and a title with control, escape and bidirectional characters.
    DescriptionHostile,
    NoTools,
    /// 100 000 tools.
    ManyTools,
    /// `list-tools` panics.
    ListTraps,
    /// `list-tools` ends as a program would, with success.
    ListExits,
    /// `list-tools` computes without end.
    ListSpins,
    /// `list-tools` sleeps for a year.
    ListSleeps,
    /// `list-tools` allocates without end.
    ListGrows,
    /// `list-tools` writes to stdout and the log without end.
    ListFloods,
    /// `list-tools` gives another tool each time.
    ListChanges,
    /// `list-tools` looks at what it can reach and puts it into the description.
    ListLooksAround,
    /// The tool's structured value is not JSON.
    StructuredNotJson,
    /// The tool has no output schema, and gives a structured value.
    StructuredWithoutSchema,
    /// The tool's image has a media type with a line break and a name that climbs.
    BlobHostile,
    /// The tool gives nothing at all.
    OutputEmpty,
    /// The tool's failure has 32 MiB of message.
    FailureHuge,
}

impl Odd {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 35] = [
        Self::Sound,
        Self::SchemaOfString,
        Self::SchemaOfArray,
        Self::SchemaNotJson,
        Self::SchemaInvalid,
        Self::SchemaHuge,
        Self::SchemaDeep,
        Self::OutputSchemaNotJson,
        Self::NameEmpty,
        Self::NameOfDigit,
        Self::NameWithSpace,
        Self::NameWithSeparator,
        Self::NameTooLong,
        Self::NameHostile,
        Self::NameNotAscii,
        Self::NameTwice,
        Self::NameTaken,
        Self::DescriptionEmpty,
        Self::DescriptionHuge,
        Self::DescriptionHostile,
        Self::NoTools,
        Self::ManyTools,
        Self::ListTraps,
        Self::ListExits,
        Self::ListSpins,
        Self::ListSleeps,
        Self::ListGrows,
        Self::ListFloods,
        Self::ListChanges,
        Self::ListLooksAround,
        Self::StructuredNotJson,
        Self::StructuredWithoutSchema,
        Self::BlobHostile,
        Self::OutputEmpty,
        Self::FailureHuge,
    ];
}
