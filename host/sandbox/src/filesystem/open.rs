//! Opening: the rights first, then only what a call may hold, and never in a way that can block.

use super::{
    GuardedFilesView,
    context::{IN_PLACE, check_length},
};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_primitives::fs as cap;
use std::path::Path;
use wasmtime::component::Resource;
use wasmtime_wasi::{
    filesystem::{Descriptor, Dir, File, OpenMode},
    p2::{
        FsResult,
        bindings::filesystem::types::{self, ErrorCode},
    },
};

impl GuardedFilesView<'_> {
    pub(super) fn open(
        &self,
        descriptor: &Resource<Descriptor>,
        follow: bool,
        path: &str,
        create: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> FsResult<Descriptor> {
        check_length(path)?;
        let dir = self.dir(descriptor)?;
        let wants = |flag| flags.contains(flag);
        let creates = create.contains(types::OpenFlags::CREATE);
        let truncates = create.contains(types::OpenFlags::TRUNCATE);
        let directory = create.contains(types::OpenFlags::DIRECTORY);
        if wants(types::DescriptorFlags::FILE_INTEGRITY_SYNC)
            || wants(types::DescriptorFlags::DATA_INTEGRITY_SYNC)
            || wants(types::DescriptorFlags::REQUESTED_WRITE_SYNC)
        {
            return Err(ErrorCode::Unsupported.into());
        }
        if directory && (creates || truncates || create.contains(types::OpenFlags::EXCLUSIVE)) {
            return Err(ErrorCode::Invalid.into());
        }
        let writes = creates || truncates || wants(types::DescriptorFlags::WRITE);
        let reads = wants(types::DescriptorFlags::READ) || !wants(types::DescriptorFlags::WRITE);
        if writes && dir.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }

        let mut options = cap::OpenOptions::new();
        options
            .read(reads)
            .write(writes)
            .follow(if follow { FollowSymlinks::Yes } else { FollowSymlinks::No })
            // A FIFO without a partner must not hold the thread. Files and folders ignore this.
            .nonblock(true);
        if creates && create.contains(types::OpenFlags::EXCLUSIVE) {
            options.create_new(true);
        } else if creates {
            options.create(true);
        }
        let opened = cap::open(&dir.dir, Path::new(path), &options)?;
        let metadata = opened.metadata()?;
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, reads);
        mode.set(OpenMode::WRITE, writes);
        if metadata.is_dir() && !self.files.is_system_state(&opened)? {
            Ok(Descriptor::Dir(Dir::new(opened, dir.perms, mode, IN_PLACE)))
        } else if directory && !metadata.is_dir() {
            Err(ErrorCode::NotDirectory.into())
        } else if metadata.is_file() && !self.files.is_system_state(&opened)? {
            // Truncated here and not by the open itself: only what was checked may be changed.
            if truncates {
                opened.set_len(0)?;
            }
            Ok(Descriptor::File(File::new(opened, dir.perms, mode, IN_PLACE)))
        } else {
            self.files.denials.note(
                "open",
                &self.files.path(descriptor.rep(), path),
                "only regular files and folders of a disk can be opened",
            );
            Err(ErrorCode::Access.into())
        }
    }
}
