//! Listings: our own, which read a folder as the guest asks for entries and leave out what the call
//! does not see; the runtime's collects a whole folder first.

use super::{GuardedFilesView, context::Door, place::join, rules::Guarded};
use cap_primitives::fs as cap;
use wasmtime::component::Resource;
use wasmtime_wasi::{
    filesystem::Descriptor,
    p2::{
        FsResult,
        bindings::filesystem::types::{self, ErrorCode, HostDirectoryEntryStream},
    },
};

pub(super) struct Listing {
    entries: cap::ReadDir,
    /// Where the folder lies, if some of its names may have rights of their own.
    folder: Option<(usize, String)>,
}

impl GuardedFilesView<'_> {
    pub(super) fn list(&self, descriptor: &Resource<Descriptor>) -> Guarded<Listing> {
        let dir = self.dir(descriptor)?;
        let held = self.files.held(descriptor.rep())?;
        let folder = match held.door {
            Door::Mount(door) if !self.files.mounts.is_plain(door) => {
                let metadata = dir.dir.metadata()?;
                let typed = held.is_root.then_some("");
                match self.place_of(held, door, &dir.dir, &metadata, typed) {
                    Ok(place) => {
                        self.files.may_see(&place, "list")?;
                        Some((door, place.inside))
                    }
                    // It was removed, so it holds nothing.
                    Err(fault) if fault.is(ErrorCode::NoEntry) => None,
                    Err(fault) => return Err(fault),
                }
            }
            Door::Mount(_) | Door::Temporary => None,
        };
        Ok(Listing { entries: cap::read_base_dir(&dir.dir)?, folder })
    }
}

impl HostDirectoryEntryStream for GuardedFilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<types::DirectoryEntryStream>,
    ) -> FsResult<Option<types::DirectoryEntry>> {
        let listing = self.table.get_mut(&Resource::<Listing>::new_borrow(stream.rep()))?;
        loop {
            let Some(entry) = listing.entries.next().transpose()? else { return Ok(None) };
            // WASI has no way to say a name that is not UTF-8; one such file must not hide its
            // whole folder, so it is left out.
            let Ok(name) = entry.file_name().into_string() else { continue };
            if let Some((door, folder)) = &listing.folder {
                let place = self.files.mounts.place(*door, join(folder, &name));
                if place.own {
                    continue;
                }
                if self.files.mounts.closed_by(&place).is_some() {
                    self.files.left_out += 1;
                    continue;
                }
            }
            let type_ = descriptor_type(entry.file_type()?);
            return Ok(Some(types::DirectoryEntry { type_, name }));
        }
    }

    fn drop(&mut self, stream: Resource<types::DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.files.give_handle_back();
        self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}

fn descriptor_type(kind: cap::FileType) -> types::DescriptorType {
    if kind.is_dir() {
        types::DescriptorType::Directory
    } else if kind.is_symlink() {
        types::DescriptorType::SymbolicLink
    } else if kind.is_file() {
        types::DescriptorType::RegularFile
    } else {
        types::DescriptorType::Unknown
    }
}
