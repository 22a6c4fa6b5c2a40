//! The bundled plugin for reading and changing files: one module a tool, over plain `std::fs`.
//!
//! It decides nothing about what a call may reach: the sandbox gives each call its world, and what
//! it refuses arrives here as an error that is put into words for the model. Whole files are held
//! in memory only where their size was looked at before.

mod delete;
mod diff;
mod edit;
mod find;
mod kind;
mod lines;
mod list;
mod make;
mod moving;
mod nearest;
mod read;
#[cfg(test)]
mod testing;
mod write;

belljar_sdk::plugin! {
    tools: [
        read::read_file,
        write::write_file,
        edit::edit_file,
        list::list_directory,
        find::find_files,
        make::make_directory,
        moving::move_path,
        delete::delete_path,
    ],
    wants: {
        files: [write "." because "reading and changing the files of the workspace"],
    },
}
