//! The interface's values as words.

use belljar_sdk::serde_json::{Value, json};
use wasip2::filesystem::types::{DescriptorStat, DescriptorType, ErrorCode};

pub(crate) fn kind(kind: DescriptorType) -> &'static str {
    match kind {
        DescriptorType::Unknown => "unknown",
        DescriptorType::BlockDevice => "block-device",
        DescriptorType::CharacterDevice => "character-device",
        DescriptorType::Directory => "directory",
        DescriptorType::Fifo => "fifo",
        DescriptorType::SymbolicLink => "symbolic-link",
        DescriptorType::RegularFile => "regular-file",
        DescriptorType::Socket => "socket",
    }
}

pub(crate) fn stat(stat: &DescriptorStat) -> Value {
    let seconds = stat.data_modification_timestamp.map(|time| time.seconds);
    // A folder's size is the disk's own affair.
    let size = (!matches!(stat.type_, DescriptorType::Directory)).then_some(stat.size);
    json!({ "type": kind(stat.type_), "size": size, "links": stat.link_count, "modified": seconds })
}

/// As the interface spells it.
pub(crate) fn code(code: ErrorCode) -> String {
    code.name().to_owned()
}
