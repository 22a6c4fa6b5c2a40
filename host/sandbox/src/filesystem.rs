//! The interfaces `wasi:filesystem/types` and `wasi:filesystem/preopens`, guarded.
//!
//! Reading, writing and streaming stay the runtime's; opening and listing are ours. Path
//! resolution is cap-std's and never ours. The guard caps what is open, opens nothing but regular files and folders and never in a way that can
//! block, and notes what was touched and what was refused. Nothing is created or truncated before
//! the rights are checked.

mod context;
mod open;

pub(crate) use context::{FilesContext, Workspace};

use crate::state::CallState;
use cap_primitives::fs as cap;
use context::check_length;
use std::sync::Arc;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::{
    filesystem::{Descriptor, Dir, WasiFilesystemCtxView},
    p2::{
        FsError, FsResult,
        bindings::filesystem::{
            preopens,
            types::{self, ErrorCode, HostDescriptor, HostDirectoryEntryStream},
        },
    },
};

/// A listing that reads the folder as the guest asks for entries; the stock one collects it whole.
struct Listing(cap::ReadDir);

pub(crate) struct GuardedFiles;

impl HasData for GuardedFiles {
    type Data<'a> = GuardedFilesView<'a>;
}

/// The guard over the runtime's own view.
pub(crate) struct GuardedFilesView<'a> {
    table: &'a mut ResourceTable,
    files: &'a mut FilesContext,
}

pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    fn view(state: &mut CallState) -> GuardedFilesView<'_> {
        GuardedFilesView { table: &mut state.table, files: &mut state.files }
    }
    types::add_to_linker::<CallState, GuardedFiles>(linker, view)?;
    preopens::add_to_linker::<CallState, GuardedFiles>(linker, view)
}

/// The index of no descriptor: names that go with it are whole.
const ROOT: u32 = u32::MAX;

/// The most that one call of the host writes, in bytes; the guest sees how much that was.
const WRITE: usize = 1 << 20;

/// What an operation means to do, for the record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intent {
    Read,
    Write,
}

impl GuardedFilesView<'_> {
    fn stock(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.files.stock, table: &mut *self.table }
    }

    fn dir(&self, descriptor: &Resource<Descriptor>) -> FsResult<&Dir> {
        match self.table.get(descriptor)? {
            Descriptor::Dir(dir) => Ok(dir),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// Notes what an operation on a path touched, or that it was refused.
    fn noted<T>(
        &mut self,
        intent: Intent,
        descriptor: u32,
        path: &str,
        result: FsResult<T>,
    ) -> FsResult<T> {
        match &result {
            Ok(_) if intent == Intent::Write => {
                let path = self.files.path(descriptor, path);
                self.files.note_written(path);
            }
            Ok(_) => {}
            Err(error) => self.note_refusal(intent, descriptor, path, error),
        }
        result
    }

    /// The records' names for an operation on two paths.
    fn two_names(
        &self,
        from: &Resource<Descriptor>,
        path: &str,
        to: &Resource<Descriptor>,
        new_path: &str,
    ) -> FsResult<[String; 2]> {
        check_length(path)?;
        check_length(new_path)?;
        Ok([self.files.path(from.rep(), path), self.files.path(to.rep(), new_path)])
    }

    /// Notes both names of what was done, or the pair that was refused.
    fn noted_two(&mut self, [from, to]: [String; 2], result: FsResult<()>) -> FsResult<()> {
        match &result {
            Ok(()) => {
                self.files.note_written(from);
                self.files.note_written(to);
            }
            Err(error) => {
                self.note_refusal(Intent::Write, ROOT, &format!("{from} → {to}"), error);
            }
        }
        result
    }

    fn note_refusal(&self, intent: Intent, descriptor: u32, path: &str, error: &FsError) {
        let reason = match (error.downcast_ref(), intent) {
            (Some(ErrorCode::NotPermitted), Intent::Write) if self.files.is_read_only() => {
                "this call may only read"
            }
            (Some(ErrorCode::NotPermitted), _) => {
                "it leads out of the workspace, or the system protects it"
            }
            (Some(ErrorCode::NoEntry), _) if self.files.means_the_host(descriptor, path) => {
                "it is not in the workspace, and nothing outside it can be reached"
            }
            _ => return,
        };
        let operation = match intent {
            Intent::Read => "read",
            Intent::Write => "write",
        };
        let path = self.files.path(descriptor, path);
        self.files.denials.note(operation, &path, reason);
    }
}

impl preopens::Host for GuardedFilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let Some(dir) = self.files.preopen.clone() else { return Ok(Vec::new()) };
        if self.files.take_handle().is_err() {
            return Ok(Vec::new());
        }
        let descriptor = self.table.push(Descriptor::Dir(dir))?;
        self.files.paths.insert(descriptor.rep(), Arc::from(""));
        Ok(vec![(descriptor, "/".to_owned())])
    }
}

impl types::Host for GuardedFilesView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        types::Host::convert_error_code(&mut self.stock(), error)
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        types::Host::filesystem_error_code(&mut self.stock(), error)
    }
}

impl HostDescriptor for GuardedFilesView<'_> {
    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: types::PathFlags,
        path: String,
        open_flags: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let follow = path_flags.contains(types::PathFlags::SYMLINK_FOLLOW);
        let changes = types::OpenFlags::CREATE | types::OpenFlags::TRUNCATE;
        let intent =
            if open_flags.intersects(changes) || flags.contains(types::DescriptorFlags::WRITE) {
                Intent::Write
            } else {
                Intent::Read
            };
        self.files.take_handle()?;
        let opened = self.open(&fd, follow, &path, open_flags, flags);
        let opened = match self.noted(intent, fd.rep(), &path, opened) {
            Ok(opened) => opened,
            Err(error) => {
                self.files.give_handle_back();
                return Err(error);
            }
        };
        let guest_path = self.files.path(fd.rep(), &path);
        let reads = intent == Intent::Read || flags.contains(types::DescriptorFlags::READ);
        if reads && matches!(opened, Descriptor::File(_)) {
            self.files.note_read(guest_path.clone());
        }
        let opened = self.table.push(opened)?;
        self.files.paths.insert(opened.rep(), guest_path.into());
        Ok(opened)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.files.paths.remove(&fd.rep());
        self.files.give_handle_back();
        HostDescriptor::drop(&mut self.stock(), fd)
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<types::DirectoryEntryStream>> {
        let entries = cap::read_base_dir(&self.dir(&fd)?.dir)?;
        self.files.take_handle()?;
        let listing = self.table.push(Listing(entries))?;
        Ok(Resource::new_own(listing.rep()))
    }

    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        offset: u64,
        length: u64,
        advice: types::Advice,
    ) -> FsResult<()> {
        self.stock().advise(fd, offset, length, advice).await
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.stock().sync_data(fd).await
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.stock().sync(fd).await
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<types::DescriptorFlags> {
        self.stock().get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<types::DescriptorType> {
        self.stock().get_type(fd).await
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: u64) -> FsResult<()> {
        let rep = fd.rep();
        let result = self.stock().set_size(fd, size).await;
        self.noted(Intent::Write, rep, "", result)
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        let rep = fd.rep();
        let result = self.stock().set_times(fd, accessed, modified).await;
        self.noted(Intent::Write, rep, "", result)
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        length: u64,
        offset: u64,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.stock().read(fd, length, offset).await
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        mut bytes: Vec<u8>,
        offset: u64,
    ) -> FsResult<u64> {
        bytes.truncate(WRITE);
        self.stock().write(fd, bytes, offset).await
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        check_length(&path)?;
        let rep = fd.rep();
        let result = self.stock().create_directory_at(fd, path.clone()).await;
        self.noted(Intent::Write, rep, &path, result)
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<types::DescriptorStat> {
        self.stock().stat(fd).await
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: types::PathFlags,
        path: String,
    ) -> FsResult<types::DescriptorStat> {
        check_length(&path)?;
        let rep = fd.rep();
        let result = self.stock().stat_at(fd, flags, path.clone()).await;
        self.noted(Intent::Read, rep, &path, result)
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: types::PathFlags,
        path: String,
        accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        check_length(&path)?;
        let rep = fd.rep();
        let result = self.stock().set_times_at(fd, flags, path.clone(), accessed, modified).await;
        self.noted(Intent::Write, rep, &path, result)
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: types::PathFlags,
        path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let names = self.two_names(&fd, &path, &new_fd, &new_path)?;
        let result = self.stock().link_at(fd, flags, path, new_fd, new_path).await;
        self.noted_two(names, result)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        check_length(&path)?;
        let rep = fd.rep();
        let result = self.stock().readlink_at(fd, path.clone()).await;
        self.noted(Intent::Read, rep, &path, result)
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        check_length(&path)?;
        let rep = fd.rep();
        let result = self.stock().remove_directory_at(fd, path.clone()).await;
        self.noted(Intent::Write, rep, &path, result)
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let names = self.two_names(&fd, &path, &new_fd, &new_path)?;
        let result = self.stock().rename_at(fd, path, new_fd, new_path).await;
        self.noted_two(names, result)
    }

    async fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FsResult<()> {
        check_length(&path)?;
        check_length(&target)?;
        let rep = fd.rep();
        let result = self.stock().symlink_at(fd, target, path.clone()).await;
        self.noted(Intent::Write, rep, &path, result)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        check_length(&path)?;
        let rep = fd.rep();
        let result = self.stock().unlink_file_at(fd, path.clone()).await;
        self.noted(Intent::Write, rep, &path, result)
    }

    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<wasmtime_wasi::p2::DynInputStream>> {
        self.stock().read_via_stream(fd, offset)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: u64,
    ) -> FsResult<Resource<wasmtime_wasi::p2::DynOutputStream>> {
        self.stock().write_via_stream(fd, offset)
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<wasmtime_wasi::p2::DynOutputStream>> {
        self.stock().append_via_stream(fd)
    }

    async fn is_same_object(
        &mut self,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        self.stock().is_same_object(a, b).await
    }

    async fn metadata_hash(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<types::MetadataHashValue> {
        self.stock().metadata_hash(fd).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: types::PathFlags,
        path: String,
    ) -> FsResult<types::MetadataHashValue> {
        check_length(&path)?;
        let rep = fd.rep();
        let result = self.stock().metadata_hash_at(fd, flags, path.clone()).await;
        self.noted(Intent::Read, rep, &path, result)
    }
}

impl HostDirectoryEntryStream for GuardedFilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<types::DirectoryEntryStream>,
    ) -> FsResult<Option<types::DirectoryEntry>> {
        loop {
            let listing = self.table.get_mut(&Resource::<Listing>::new_borrow(stream.rep()))?;
            let Some(entry) = listing.0.next().transpose()? else { return Ok(None) };
            // WASI has no way to say a name that is not UTF-8; one such file must not hide its
            // whole folder, so it is left out.
            let Ok(name) = entry.file_name().into_string() else { continue };
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
