//! The interfaces `wasi:filesystem/types` and `wasi:filesystem/preopens`, guarded.
//!
//! Reading, writing and streaming stay the runtime's; opening, listing and all operations on names
//! are ours. Path resolution is the kernel's or cap-std's and never ours. What a call may do hangs
//! on where a thing really lies, found out once it is open, and never on what the guest typed.
//! Nothing is created, changed or truncated before that is checked.

mod change;
mod context;
mod listing;
mod mounts;
mod open;
mod place;
mod quota;
mod resolve;
mod rules;
mod temporary;

pub(crate) use context::{FilesContext, FilesSetup};
pub(crate) use mounts::Mounts;
pub use mounts::{MountError, check_grantable};
pub(crate) use temporary::Scratch;

use crate::state::CallState;
use belljar_capability::TEMPORARY;
use change::Changed;
use context::{Door, Held, Intent, check_length};
use open::{Opened, Wish};
use quota::{AT_ONCE, Metered, QuotaMet};
use rules::{Fault, Guarded};
use std::{fs, sync::Arc};
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::{
    filesystem::{Descriptor, Dir, File, FsPerms, OpenMode, WasiFilesystemCtxView},
    p2::{
        DynOutputStream, FsError, FsResult,
        bindings::filesystem::{
            preopens,
            types::{self, ErrorCode, HostDescriptor},
        },
    },
};

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

impl GuardedFilesView<'_> {
    fn stock(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.files.stock, table: &mut *self.table }
    }

    /// Puts a call's temporary folder where a guest has only been told of it, once it matters what
    /// is there.
    fn settle_temporary(&mut self, descriptor: &Resource<Descriptor>) -> FsResult<()> {
        let held = self.files.held(descriptor.rep())?;
        if held.door != Door::Temporary || !held.is_root {
            return Ok(());
        }
        if let Descriptor::Dir(dir) = self.table.get_mut(descriptor)?
            && let Some(real) = self.files.temporary.real(dir)?
        {
            *dir = real;
        }
        Ok(())
    }

    fn preopen(&mut self, door: Door, dir: Dir, path: &str) -> wasmtime::Result<Option<Preopened>> {
        if self.files.take_handle().is_err() {
            return Ok(None);
        }
        let descriptor = self.table.push(Descriptor::Dir(dir))?;
        let mount = match door {
            Door::Mount(mount) => Some(mount),
            Door::Temporary => None,
        };
        let held = Held { door, mount, is_root: true, path: Arc::from(path) };
        self.files.held.insert(descriptor.rep(), held);
        Ok(Some((descriptor, format!("/{path}"))))
    }

    /// Ends an operation that changes something: what it changed or was refused is noted.
    fn changed(&mut self, descriptor: u32, path: &str, result: Guarded<Changed>) -> FsResult<()> {
        for path in self.files.settle(Intent::Write, descriptor, path, result)? {
            self.files.note_written(path);
        }
        Ok(())
    }

    /// As `changed`, for an operation on two names.
    fn changed_two(
        &mut self,
        [from, to]: [(u32, &str); 2],
        result: Guarded<Changed>,
    ) -> FsResult<()> {
        /// The index of no descriptor: names that go with it are whole.
        const ROOT: u32 = u32::MAX;
        let name = |(descriptor, path)| self.files.path(descriptor, path);
        let names = if result.is_err() {
            format!("{} → {}", name(from), name(to))
        } else {
            String::new()
        };
        self.changed(ROOT, &names, result)
    }

    /// The bytes that a file may still grow or be written by.
    fn check_room(&self, descriptor: u32, bytes: u64) -> Guarded<()> {
        if bytes <= self.files.quota.room() {
            return Ok(());
        }
        let target = self.files.path(descriptor, "");
        Err(self.files.quota.full(bytes, target, &self.files.plugin))
    }

    /// Whether a file was opened where it may be written; which way it was opened, the system knows.
    fn check_perms(&self, descriptor: &Resource<Descriptor>) -> Guarded<()> {
        let held = self.files.held(descriptor.rep())?;
        match (self.file(descriptor)?.perms, held.mount) {
            (FsPerms::ReadOnly, Some(mount)) => {
                Err(self.files.read_only(mount, held.path.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn file(&self, descriptor: &Resource<Descriptor>) -> FsResult<&File> {
        match self.table.get(descriptor)? {
            Descriptor::File(file) => Ok(file),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    fn metered(
        &mut self,
        descriptor: u32,
        stream: Resource<DynOutputStream>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.table.delete(stream)?;
        let held = self.files.held(descriptor)?;
        let (target, plugin) = (Arc::clone(&held.path), Arc::clone(&self.files.plugin));
        let metered = Metered::new(inner, &self.files.quota, &self.files.denials, target, plugin);
        let stream: DynOutputStream = Box::new(metered);
        Ok(self.table.push(stream)?)
    }

    /// Lets the runtime look at something that was opened for that alone.
    fn lend(&mut self, opened: fs::File) -> FsResult<Resource<Descriptor>> {
        let file = File::new(opened, FsPerms::ReadOnly, OpenMode::READ, mounts::IN_PLACE);
        Ok(self.table.push(Descriptor::File(file))?)
    }
}

type Preopened = (Resource<Descriptor>, String);

impl preopens::Host for GuardedFilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<Preopened>> {
        let mut preopens = Vec::new();
        let mounts = Arc::clone(&self.files.mounts);
        for (number, mount) in mounts.list().iter().enumerate() {
            let dir = mount.preopen(self.files.narrowed(mount.access));
            preopens.extend(self.preopen(Door::Mount(number), dir, mount.guest.as_str())?);
        }
        if let Some(dir) = self.files.temporary.preopen() {
            preopens.extend(self.preopen(Door::Temporary, dir, TEMPORARY)?);
        }
        Ok(preopens)
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
        if self.table.get(&error)?.is::<QuotaMet>() {
            return Ok(Some(ErrorCode::Quota));
        }
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
        check_length(&path)?;
        self.settle_temporary(&fd)?;
        let follow = path_flags.contains(types::PathFlags::SYMLINK_FOLLOW);
        let wish = Wish::new(follow, open_flags, flags)?;
        let intent = if wish.writes { Intent::Write } else { Intent::Read };
        self.files.take_handle()?;
        let opened = self.open(&fd, &path, wish);
        let Opened { descriptor: opened, shown, mount } =
            match self.files.settle(intent, fd.rep(), &path, opened) {
                Ok(opened) => opened,
                Err(error) => {
                    self.files.give_handle_back();
                    return Err(error);
                }
            };
        if matches!(opened, Descriptor::File(_)) {
            if wish.writes {
                self.files.note_written(shown.clone());
            }
            if wish.reads_files(flags) {
                self.files.note_read(shown.clone());
            }
        }
        let door = self.files.held(fd.rep())?.door;
        let opened = self.table.push(opened)?;
        let held = Held { door, mount, is_root: false, path: shown.into() };
        self.files.held.insert(opened.rep(), held);
        Ok(opened)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.files.held.remove(&fd.rep());
        self.files.give_handle_back();
        HostDescriptor::drop(&mut self.stock(), fd)
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<types::DirectoryEntryStream>> {
        self.settle_temporary(&fd)?;
        let listing = self.list(&fd);
        let listing = self.files.settle(Intent::Read, fd.rep(), "", listing)?;
        self.files.take_handle()?;
        let listing = self.table.push(listing)?;
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
        self.settle_temporary(&fd)?;
        self.stock().sync_data(fd).await
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.settle_temporary(&fd)?;
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
        let growth = match self.file(&fd)?.file.metadata() {
            Ok(metadata) => size.saturating_sub(metadata.len()),
            Err(error) => return Err(error.into()),
        };
        let room = self.check_perms(&fd).and_then(|()| self.check_room(rep, growth));
        self.files.settle(Intent::Write, rep, "", room)?;
        let result = self.stock().set_size(fd, size).await;
        self.files.settle(Intent::Write, rep, "", result.map_err(Fault::from))?;
        self.files.quota.wrote(growth);
        Ok(())
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        let rep = fd.rep();
        self.settle_temporary(&fd)?;
        let checked = self.check_open(&fd);
        self.files.settle(Intent::Write, rep, "", checked)?;
        let result = self.stock().set_times(fd, accessed, modified).await;
        let path = self.files.path(rep, "");
        let result = result.map(|()| vec![path]).map_err(Fault::from);
        self.changed(rep, "", result)
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
        let rep = fd.rep();
        let checked = self.check_perms(&fd);
        self.files.settle(Intent::Write, rep, "", checked)?;
        // What does not fit is not written; the guest sees how much was.
        let room = usize::try_from(self.files.quota.room()).unwrap_or(usize::MAX);
        if room == 0 && !bytes.is_empty() {
            let full = self.check_room(rep, bytes.len() as u64);
            self.files.settle(Intent::Write, rep, "", full)?;
        }
        bytes.truncate(AT_ONCE.min(room));
        let written = self.stock().write(fd, bytes, offset).await?;
        self.files.quota.wrote(written);
        Ok(written)
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.settle_temporary(&fd)?;
        let result = self.create_directory(&fd, &path);
        self.changed(fd.rep(), &path, result)
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<types::DescriptorStat> {
        self.settle_temporary(&fd)?;
        self.stock().stat(fd).await
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: types::PathFlags,
        path: String,
    ) -> FsResult<types::DescriptorStat> {
        check_length(&path)?;
        self.settle_temporary(&fd)?;
        let rep = fd.rep();
        let follow = flags.contains(types::PathFlags::SYMLINK_FOLLOW);
        let looked = self.look(&fd, follow, &path);
        let result = match self.files.settle(Intent::Read, rep, &path, looked)? {
            None => self.stock().stat_at(fd, flags, path.clone()).await,
            Some(opened) => {
                let lent = self.lend(opened)?;
                let result = self.stock().stat(Resource::new_borrow(lent.rep())).await;
                self.table.delete(lent)?;
                result
            }
        };
        self.files.settle(Intent::Read, rep, &path, result.map_err(Fault::from))
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: types::PathFlags,
        path: String,
        accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        self.settle_temporary(&fd)?;
        let follow = flags.contains(types::PathFlags::SYMLINK_FOLLOW);
        let result = GuardedFilesView::set_times_at(self, &fd, follow, &path, [accessed, modified]);
        self.changed(fd.rep(), &path, result)
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: types::PathFlags,
        path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.settle_temporary(&fd)?;
        self.settle_temporary(&new_fd)?;
        let follow = flags.contains(types::PathFlags::SYMLINK_FOLLOW);
        let result = self.link((&fd, &path), (&new_fd, &new_path), follow);
        self.changed_two([(fd.rep(), &path), (new_fd.rep(), &new_path)], result)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        check_length(&path)?;
        self.settle_temporary(&fd)?;
        let rep = fd.rep();
        // A look at the link itself; what it says is read by name, where it may have changed.
        let looked = self.look(&fd, false, &path);
        self.files.settle(Intent::Read, rep, &path, looked)?;
        let result = self.stock().readlink_at(fd, path.clone()).await;
        self.files.settle(Intent::Read, rep, &path, result.map_err(Fault::from))
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.settle_temporary(&fd)?;
        let result = self.remove_directory(&fd, &path);
        self.changed(fd.rep(), &path, result)
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.settle_temporary(&fd)?;
        self.settle_temporary(&new_fd)?;
        let result = self.rename((&fd, &path), (&new_fd, &new_path));
        self.changed_two([(fd.rep(), &path), (new_fd.rep(), &new_path)], result)
    }

    async fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FsResult<()> {
        self.settle_temporary(&fd)?;
        let result = self.symlink(&fd, &target, &path);
        self.changed(fd.rep(), &path, result)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.settle_temporary(&fd)?;
        let result = self.remove_file(&fd, &path);
        self.changed(fd.rep(), &path, result)
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
    ) -> FsResult<Resource<DynOutputStream>> {
        let rep = fd.rep();
        let checked = self.check_perms(&fd);
        self.files.settle(Intent::Write, rep, "", checked)?;
        let stream = self.stock().write_via_stream(fd, offset)?;
        self.metered(rep, stream)
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let rep = fd.rep();
        let checked = self.check_perms(&fd);
        self.files.settle(Intent::Write, rep, "", checked)?;
        let stream = self.stock().append_via_stream(fd)?;
        self.metered(rep, stream)
    }

    async fn is_same_object(
        &mut self,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        for descriptor in [&a, &b] {
            // Two that only stand for the same folder are the same before it is there, too.
            let _ = self.settle_temporary(descriptor);
        }
        self.stock().is_same_object(a, b).await
    }

    async fn metadata_hash(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<types::MetadataHashValue> {
        self.settle_temporary(&fd)?;
        self.stock().metadata_hash(fd).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: types::PathFlags,
        path: String,
    ) -> FsResult<types::MetadataHashValue> {
        check_length(&path)?;
        self.settle_temporary(&fd)?;
        let rep = fd.rep();
        let follow = flags.contains(types::PathFlags::SYMLINK_FOLLOW);
        let looked = self.look(&fd, follow, &path);
        let result = match self.files.settle(Intent::Read, rep, &path, looked)? {
            None => self.stock().metadata_hash_at(fd, flags, path.clone()).await,
            Some(opened) => {
                let lent = self.lend(opened)?;
                let result = self.stock().metadata_hash(Resource::new_borrow(lent.rep())).await;
                self.table.delete(lent)?;
                result
            }
        };
        self.files.settle(Intent::Read, rep, &path, result.map_err(Fault::from))
    }
}
