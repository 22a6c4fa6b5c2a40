//! The guarded files answer as plain wasmtime-wasi does, but for what is different on purpose.

use crate::{
    bare::Bare,
    support::{Bench, raw_grant, run, script, text},
};
use belljar_sandbox::{Sandbox, SandboxConfig};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
};

/// A name and steps of the guest. Each starts from the same folder.
const CASES: &[(&str, &str)] = &[
    // Opening what is there.
    (
        "open a file to read",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"read","handle":"f"},{"do":"flags","handle":"f"},{"do":"type","handle":"f"},{"do":"stat","handle":"f"}]"#,
    ),
    (
        "open without rights",
        r#"[{"do":"open","path":"file.txt","as":"f"},{"do":"read","handle":"f"},{"do":"flags","handle":"f"}]"#,
    ),
    (
        "open to write",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"write"},{"do":"flags","handle":"f"},{"do":"write","handle":"f","text":"X","offset":2},{"do":"read","handle":"f"}]"#,
    ),
    (
        "open to read and write",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read write"},{"do":"write","handle":"f","text":"longer than before","offset":0},{"do":"read","handle":"f"},{"do":"read","handle":"f","offset":7,"length":4}]"#,
    ),
    (
        "write past the end",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read write"},{"do":"write","handle":"f","text":"end","offset":20},{"do":"read","handle":"f"},{"do":"stat","handle":"f"}]"#,
    ),
    (
        "write what is open to read",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"write","handle":"f","text":"x"},{"do":"set_size","handle":"f","size":0},{"do":"stream_write","handle":"f","text":"x"},{"do":"stream_append","handle":"f","text":"x"},{"do":"cat","path":"file.txt"}]"#,
    ),
    (
        "read nothing and past the end",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"read","handle":"f","length":0},{"do":"read","handle":"f","offset":100},{"do":"open","path":"empty.txt","as":"e","with":"read"},{"do":"read","handle":"e"}]"#,
    ),
    (
        "open a folder",
        r#"[{"do":"open","path":"folder","as":"d","with":"read directory"},{"do":"flags","handle":"d"},{"do":"type","handle":"d"},{"do":"stat","handle":"d"},{"do":"list","handle":"d"}]"#,
    ),
    (
        "open a folder to mutate",
        r#"[{"do":"open","path":"folder","as":"d","with":"read mutate directory"},{"do":"flags","handle":"d"},{"do":"mkdir","at":"d","path":"new"}]"#,
    ),
    (
        "open a folder to write",
        r#"[{"do":"open","path":"folder","with":"write"},{"do":"open","path":"folder","with":"read write"}]"#,
    ),
    (
        "open a folder as if it were a file",
        r#"[{"do":"open","path":"folder","as":"d","with":"read"},{"do":"read","handle":"d"},{"do":"write","handle":"d","text":"x"},{"do":"set_size","handle":"d","size":1},{"do":"stream_read","handle":"d"},{"do":"advise","handle":"d"}]"#,
    ),
    (
        "open a file as if it were a folder",
        r#"[{"do":"open","path":"file.txt","with":"read directory"},{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"list","handle":"f"},{"do":"mkdir","at":"f","path":"x"},{"do":"open","at":"f","path":"x","with":"read"},{"do":"stat_at","at":"f","path":"x"}]"#,
    ),
    (
        "open what is missing",
        r#"[{"do":"open","path":"missing","with":"read"},{"do":"open","path":"missing/deeper","with":"read"},{"do":"open","path":"file.txt/deeper","with":"read"},{"do":"open","path":"missing","with":"directory"}]"#,
    ),
    (
        "open odd paths",
        r#"[{"do":"open","path":"","with":"read"},{"do":"open","path":".","with":"read"},{"do":"open","path":"./","with":"read"},{"do":"open","path":"folder/.","with":"read"},{"do":"open","path":"folder//inside.txt","with":"read"},{"do":"open","path":"./folder/./inside.txt","with":"read"},{"do":"open","path":"folder/../file.txt","with":"read"},{"do":"open","path":"folder/..","with":"read"}]"#,
    ),
    (
        "open with a slash at the end",
        r#"[{"do":"open","path":"folder/","with":"read"},{"do":"open","path":"file.txt/","with":"read"},{"do":"open","path":"link/","with":"read"},{"do":"open","path":"to-folder/","with":"read"},{"do":"open","path":"file.txt/.","with":"read"},{"do":"open","path":"missing/","with":"read"}]"#,
    ),
    (
        "open paths that lead out",
        r#"[{"do":"open","path":"..","with":"read"},{"do":"open","path":"../outside.txt","with":"read"},{"do":"open","path":"folder/../../outside.txt","with":"read"},{"do":"open","path":"/","with":"read"},{"do":"open","path":"/etc/passwd","with":"read"},{"do":"open","path":"/file.txt","with":"read"},{"do":"open","path":"missing/../file.txt","with":"read"}]"#,
    ),
    (
        "open through links",
        r#"[{"do":"cat","path":"link"},{"do":"cat","path":"to-folder/inside.txt"},{"do":"cat","path":"folder/up"},{"do":"cat","path":"to-folder/up"},{"do":"cat","path":"chain"},{"do":"open","path":"link","follow":true,"with":"read write"},{"do":"open","path":"to-folder","follow":true,"with":"read directory"}]"#,
    ),
    (
        "open links themselves",
        r#"[{"do":"cat","path":"link","follow":false},{"do":"open","path":"to-folder","with":"read directory"},{"do":"cat","path":"to-folder/inside.txt","follow":false},{"do":"open","path":"dangling","with":"read"},{"do":"open","path":"loop","with":"read"}]"#,
    ),
    (
        "open links that lead nowhere or out",
        r#"[{"do":"cat","path":"dangling"},{"do":"cat","path":"loop"},{"do":"cat","path":"outside"},{"do":"cat","path":"absolute"},{"do":"cat","path":"loop/x"},{"do":"cat","path":"outside-folder/outside.txt"}]"#,
    ),
    (
        "open from a folder",
        r#"[{"do":"open","path":"folder","as":"d","with":"read"},{"do":"cat","at":"d","path":"inside.txt"},{"do":"cat","at":"d","path":"deep/er.txt"},{"do":"cat","at":"d","path":"../file.txt"},{"do":"cat","at":"d","path":"up"},{"do":"cat","at":"d","path":"deep/../inside.txt"}]"#,
    ),
    (
        "open with synchronous writing",
        r#"[{"do":"open","path":"file.txt","with":"write sync"},{"do":"open","path":"new","with":"write create sync"}]"#,
    ),
    (
        "names that are long or odd",
        r#"[{"do":"open","path":"ünïcödé 名","with":"read"},{"do":"cat","path":"with blank"},{"do":"open","path":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","with":"read"},{"do":"open","path":"bad\u0000name","with":"read"},{"do":"mkdir","path":"bad\u0000name"}]"#,
    ),
    // Creating files.
    (
        "create a file",
        r#"[{"do":"open","path":"new","as":"f","with":"create write"},{"do":"flags","handle":"f"},{"do":"write","handle":"f","text":"hello"},{"do":"cat","path":"new"},{"do":"stat_at","path":"new"}]"#,
    ),
    (
        "create without asking to write",
        r#"[{"do":"open","path":"new","as":"f","with":"create"},{"do":"flags","handle":"f"},{"do":"write","handle":"f","text":"hello"},{"do":"read","handle":"f"}]"#,
    ),
    (
        "create to read",
        r#"[{"do":"open","path":"new","as":"f","with":"create read"},{"do":"flags","handle":"f"},{"do":"write","handle":"f","text":"hello"},{"do":"read","handle":"f"}]"#,
    ),
    (
        "create what is there",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"create read write"},{"do":"read","handle":"f"},{"do":"open","path":"folder","with":"create write"},{"do":"open","path":"folder","with":"create read"}]"#,
    ),
    (
        "create alone",
        r#"[{"do":"open","path":"new","with":"create exclusive write"},{"do":"open","path":"new","with":"create exclusive write"},{"do":"open","path":"file.txt","with":"create exclusive write"},{"do":"open","path":"folder","with":"create exclusive write"},{"do":"open","path":"link","with":"create exclusive write"},{"do":"open","path":"dangling","follow":true,"with":"create exclusive write"},{"do":"open","path":".","with":"create exclusive write"},{"do":"open","path":"file.txt","with":"exclusive read"}]"#,
    ),
    (
        "create in a folder",
        r#"[{"do":"open","path":"folder/new","with":"create write"},{"do":"open","path":"folder/deep/new","with":"create write"},{"do":"open","path":"to-folder/newer","with":"create write"},{"do":"open","path":"folder/../newest","with":"create write"},{"do":"open","path":"missing/new","with":"create write"},{"do":"open","path":"file.txt/new","with":"create write"}]"#,
    ),
    (
        "create with a slash at the end",
        r#"[{"do":"open","path":"new/","with":"create write"},{"do":"open","path":"new/.","with":"create write"},{"do":"open","path":"folder/","with":"create write"},{"do":"open","path":"file.txt/","with":"create write"},{"do":"open","path":"","with":"create write"},{"do":"open","path":".","with":"create write"},{"do":"open","path":"folder/..","with":"create write"}]"#,
    ),
    (
        "create outside",
        r#"[{"do":"open","path":"../new","with":"create write"},{"do":"open","path":"/new","with":"create write"},{"do":"open","path":"folder/../../new","with":"create write"},{"do":"open","path":"outside-folder/new","with":"create write"},{"do":"open","path":"outside","follow":true,"with":"create write truncate"},{"do":"open","path":"absolute","follow":true,"with":"create write"}]"#,
    ),
    (
        "create at links without following",
        r#"[{"do":"open","path":"link","with":"create write"},{"do":"open","path":"dangling","with":"create write"},{"do":"open","path":"loop","with":"create write"},{"do":"open","path":"loop","follow":true,"with":"create write"}]"#,
    ),
    (
        "create through a link",
        r#"[{"do":"open","path":"link","follow":true,"with":"create write truncate","as":"f"},{"do":"write","handle":"f","text":"new"},{"do":"cat","path":"file.txt"}]"#,
    ),
    (
        "create a folder by opening",
        r#"[{"do":"open","path":"new","with":"create directory"},{"do":"open","path":"new","with":"exclusive directory"},{"do":"open","path":"folder","with":"truncate directory"}]"#,
    ),
    // Truncating.
    (
        "truncate",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"truncate write"},{"do":"stat","handle":"f"},{"do":"flags","handle":"f"},{"do":"cat","path":"file.txt"}]"#,
    ),
    (
        "truncate without asking to write",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"truncate"},{"do":"flags","handle":"f"},{"do":"open","path":"folder/inside.txt","as":"g","with":"truncate read"},{"do":"flags","handle":"g"},{"do":"stat_at","path":"folder/inside.txt"}]"#,
    ),
    (
        "truncate through a link",
        r#"[{"do":"open","path":"link","with":"truncate write"},{"do":"open","path":"link","follow":true,"with":"truncate write"},{"do":"cat","path":"hard"}]"#,
    ),
    (
        "truncate a folder or what is missing",
        r#"[{"do":"open","path":"folder","with":"truncate"},{"do":"open","path":"missing","with":"truncate write"},{"do":"open","path":"dangling","follow":true,"with":"truncate write"}]"#,
    ),
    (
        "truncate and create",
        r#"[{"do":"open","path":"file.txt","with":"create truncate write"},{"do":"open","path":"new","with":"create truncate write"},{"do":"list"}]"#,
    ),
    (
        "set a size",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read write"},{"do":"set_size","handle":"f","size":3},{"do":"read","handle":"f"},{"do":"set_size","handle":"f","size":6},{"do":"read","handle":"f"},{"do":"set_size","handle":"f","size":0},{"do":"stat","handle":"f"}]"#,
    ),
    // Streams.
    (
        "read a stream",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"stream_read","handle":"f"},{"do":"stream_read","handle":"f","offset":4},{"do":"stream_read","handle":"f","offset":400}]"#,
    ),
    (
        "write a stream",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read write"},{"do":"stream_write","handle":"f","text":"one","offset":2},{"do":"read","handle":"f"},{"do":"stream_append","handle":"f","text":"two"},{"do":"read","handle":"f"}]"#,
    ),
    (
        "append",
        r#"[{"do":"open","path":"new","as":"f","with":"create write"},{"do":"stream_append","handle":"f","text":"one"},{"do":"stream_append","handle":"f","text":"two"},{"do":"write","handle":"f","text":"X","offset":0},{"do":"stream_append","handle":"f","text":"three"},{"do":"cat","path":"new"}]"#,
    ),
    (
        "write many zeros",
        r#"[{"do":"open","path":"new","as":"f","with":"create write"},{"do":"stream_zeros","handle":"f","bytes":100000},{"do":"stat","handle":"f"}]"#,
    ),
    // Folders.
    (
        "make folders",
        r#"[{"do":"mkdir","path":"new"},{"do":"mkdir","path":"new/inner"},{"do":"mkdir","path":"folder/new"},{"do":"mkdir","path":"to-folder/newer"},{"do":"list"},{"do":"list","handle":"/"},{"do":"stat_at","path":"new/inner"}]"#,
    ),
    (
        "make folders that are there",
        r#"[{"do":"mkdir","path":"folder"},{"do":"mkdir","path":"file.txt"},{"do":"mkdir","path":"link"},{"do":"mkdir","path":"dangling"},{"do":"mkdir","path":"to-folder"}]"#,
    ),
    (
        "make folders at odd paths",
        r#"[{"do":"mkdir","path":"new/"},{"do":"mkdir","path":"newer//"},{"do":"mkdir","path":"newest/."},{"do":"mkdir","path":""},{"do":"mkdir","path":"."},{"do":"mkdir","path":"./"},{"do":"mkdir","path":"folder/.."},{"do":"mkdir","path":"missing/.."},{"do":"mkdir","path":"/"},{"do":"mkdir","path":"./one"},{"do":"mkdir","path":"folder//two"}]"#,
    ),
    (
        "make folders where none can be",
        r#"[{"do":"mkdir","path":"missing/new"},{"do":"mkdir","path":"file.txt/new"},{"do":"mkdir","path":"../new"},{"do":"mkdir","path":"/new"},{"do":"mkdir","path":"outside-folder/new"},{"do":"mkdir","path":"dangling/new"},{"do":"mkdir","path":"loop/new"},{"do":"mkdir","path":"dangling/"}]"#,
    ),
    (
        "remove folders",
        r#"[{"do":"rmdir","path":"empty"},{"do":"rmdir","path":"folder"},{"do":"rmdir","path":"file.txt"},{"do":"rmdir","path":"missing"},{"do":"rmdir","path":"to-folder"},{"do":"rmdir","path":"missing/x"}]"#,
    ),
    (
        "remove folders at odd paths",
        r#"[{"do":"rmdir","path":"empty/"},{"do":"rmdir","path":"empty/."},{"do":"rmdir","path":"."},{"do":"rmdir","path":""},{"do":"rmdir","path":".."},{"do":"rmdir","path":"/"},{"do":"rmdir","path":"folder/.."},{"do":"rmdir","path":"empty/../empty"},{"do":"rmdir","path":"to-empty/"},{"do":"rmdir","path":"to-empty"}]"#,
    ),
    (
        "list folders",
        r#"[{"do":"list"},{"do":"open","path":"empty","as":"e","with":"read"},{"do":"list","handle":"e"},{"do":"open","path":"folder/deep","as":"d","with":"read"},{"do":"list","handle":"d"},{"do":"list","handle":"d"}]"#,
    ),
    (
        "list a folder that was removed",
        r#"[{"do":"open","path":"empty","as":"e","with":"read"},{"do":"rmdir","path":"empty"},{"do":"list","handle":"e"},{"do":"mkdir","at":"e","path":"x"},{"do":"stat_at","at":"e","path":"x"}]"#,
    ),
    (
        "list a folder that was moved",
        r#"[{"do":"open","path":"folder","as":"d","with":"read"},{"do":"rename","path":"folder","to":"moved"},{"do":"list","handle":"d"},{"do":"cat","at":"d","path":"inside.txt"},{"do":"open","at":"d","path":"new","with":"create write"},{"do":"mkdir","at":"d","path":"newer"},{"do":"cat","at":"d","path":"../file.txt"}]"#,
    ),
    // Removing files.
    (
        "remove files",
        r#"[{"do":"unlink","path":"file.txt"},{"do":"unlink","path":"folder/inside.txt"},{"do":"unlink","path":"hard"},{"do":"unlink","path":"file.txt"},{"do":"list"}]"#,
    ),
    (
        "remove links",
        r#"[{"do":"unlink","path":"link"},{"do":"unlink","path":"to-folder"},{"do":"unlink","path":"dangling"},{"do":"unlink","path":"loop"},{"do":"unlink","path":"outside"},{"do":"unlink","path":"absolute"},{"do":"cat","path":"file.txt"}]"#,
    ),
    (
        "remove through links",
        r#"[{"do":"unlink","path":"to-folder/inside.txt"},{"do":"unlink","path":"outside-folder/outside.txt"},{"do":"unlink","path":"loop/x"},{"do":"unlink","path":"dangling/x"}]"#,
    ),
    (
        "remove what is no file",
        r#"[{"do":"unlink","path":"folder"},{"do":"unlink","path":"empty"},{"do":"unlink","path":"empty/"},{"do":"unlink","path":"file.txt/"},{"do":"unlink","path":"link/"},{"do":"unlink","path":"file.txt/."},{"do":"unlink","path":"."},{"do":"unlink","path":".."},{"do":"unlink","path":""},{"do":"unlink","path":"/"},{"do":"unlink","path":"folder/.."},{"do":"unlink","path":"../outside.txt"},{"do":"unlink","path":"missing"}]"#,
    ),
    (
        "remove a file that is open",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read write"},{"do":"unlink","path":"file.txt"},{"do":"read","handle":"f"},{"do":"write","handle":"f","text":"still"},{"do":"read","handle":"f"},{"do":"stat","handle":"f"},{"do":"set_size","handle":"f","size":2},{"do":"link","path":"hard","to":"file.txt"},{"do":"unlink","path":"file.txt"},{"do":"unlink","path":"hard"},{"do":"set_times","handle":"f","modified":1000000},{"do":"stat","handle":"f"}]"#,
    ),
    // Renaming.
    (
        "rename a file",
        r#"[{"do":"rename","path":"file.txt","to":"new"},{"do":"cat","path":"new"},{"do":"cat","path":"link"},{"do":"stat_at","path":"hard"}]"#,
    ),
    (
        "rename into a folder",
        r#"[{"do":"rename","path":"file.txt","to":"folder/new"},{"do":"rename","path":"folder/inside.txt","to":"inside.txt"},{"do":"rename","path":"folder/deep/er.txt","to":"to-folder/er.txt"},{"do":"list"}]"#,
    ),
    (
        "rename onto a file",
        r#"[{"do":"rename","path":"file.txt","to":"empty.txt"},{"do":"cat","path":"empty.txt"},{"do":"rename","path":"folder","to":"empty.txt"},{"do":"rename","path":"empty.txt","to":"folder"}]"#,
    ),
    (
        "rename a folder",
        r#"[{"do":"rename","path":"folder","to":"moved"},{"do":"list"},{"do":"rename","path":"moved","to":"empty"},{"do":"cat","path":"empty/inside.txt"}]"#,
    ),
    (
        "rename onto a full folder",
        r#"[{"do":"rename","path":"empty","to":"folder"},{"do":"rename","path":"folder","to":"folder/deep"},{"do":"rename","path":"folder/deep","to":"folder"},{"do":"rename","path":"folder","to":"folder"}]"#,
    ),
    (
        "rename links",
        r#"[{"do":"rename","path":"link","to":"new"},{"do":"rename","path":"to-folder","to":"newer"},{"do":"rename","path":"dangling","to":"newest"},{"do":"rename","path":"outside","to":"folder/out"},{"do":"readlink","path":"new"},{"do":"list"}]"#,
    ),
    (
        "rename onto links",
        r#"[{"do":"rename","path":"file.txt","to":"link"},{"do":"stat_at","path":"link"},{"do":"rename","path":"empty","to":"to-folder"},{"do":"rename","path":"hard","to":"dangling"},{"do":"list"}]"#,
    ),
    (
        "rename to the same file",
        r#"[{"do":"rename","path":"file.txt","to":"hard"},{"do":"list"},{"do":"rename","path":"file.txt","to":"file.txt"},{"do":"stat_at","path":"file.txt"}]"#,
    ),
    (
        "rename at odd paths",
        r#"[{"do":"rename","path":"folder/","to":"one"},{"do":"rename","path":"one","to":"two/"},{"do":"rename","path":"file.txt/","to":"three"},{"do":"rename","path":"file.txt","to":"four/"},{"do":"rename","path":"link/","to":"five"},{"do":"rename","path":"./file.txt","to":".//six"},{"do":"list"}]"#,
    ),
    (
        "rename what has no name of its own",
        r#"[{"do":"rename","path":".","to":"new"},{"do":"rename","path":"folder/.","to":"new"},{"do":"rename","path":"folder/..","to":"new"},{"do":"rename","path":"empty","to":"."},{"do":"rename","path":"empty","to":"folder/."},{"do":"rename","path":"empty","to":"folder/.."},{"do":"rename","path":"","to":"new"},{"do":"rename","path":"empty","to":""},{"do":"rename","path":"..","to":"new"}]"#,
    ),
    (
        "rename out and in",
        r#"[{"do":"rename","path":"file.txt","to":"../new"},{"do":"rename","path":"../outside.txt","to":"new"},{"do":"rename","path":"/file.txt","to":"new"},{"do":"rename","path":"file.txt","to":"/new"},{"do":"rename","path":"file.txt","to":"outside-folder/new"},{"do":"rename","path":"outside-folder/outside.txt","to":"new"}]"#,
    ),
    (
        "rename what is missing",
        r#"[{"do":"rename","path":"missing","to":"new"},{"do":"rename","path":"file.txt","to":"missing/new"},{"do":"rename","path":"file.txt/x","to":"new"},{"do":"rename","path":"file.txt","to":"empty.txt/new"}]"#,
    ),
    (
        "rename between handles",
        r#"[{"do":"open","path":"folder","as":"d","with":"read"},{"do":"open","path":"empty","as":"e","with":"read"},{"do":"rename","at":"d","path":"inside.txt","to_at":"e","to":"moved"},{"do":"rename","at":"e","path":"moved","to":"back"},{"do":"rename","path":"back","to_at":"d","to":"deep/back"},{"do":"cat","path":"folder/deep/back"}]"#,
    ),
    // Links.
    (
        "make hard links",
        r#"[{"do":"link","path":"file.txt","to":"new"},{"do":"stat_at","path":"new"},{"do":"link","path":"folder/inside.txt","to":"folder/deep/other"},{"do":"open","path":"new","as":"f","with":"write"},{"do":"write","handle":"f","text":"X"},{"do":"cat","path":"file.txt"},{"do":"same_hash","handle":"f","path":"file.txt"}]"#,
    ),
    (
        "make hard links that cannot be",
        r#"[{"do":"link","path":"file.txt","to":"empty.txt"},{"do":"link","path":"file.txt","to":"file.txt"},{"do":"link","path":"folder","to":"new"},{"do":"link","path":"missing","to":"new"},{"do":"link","path":"file.txt","to":"missing/new"},{"do":"link","path":"file.txt","to":"folder"},{"do":"link","path":"file.txt","follow":true,"to":"new"}]"#,
    ),
    (
        "make hard links of links",
        r#"[{"do":"link","path":"link","to":"new"},{"do":"readlink","path":"new"},{"do":"link","path":"dangling","to":"newer"},{"do":"link","path":"to-folder/inside.txt","to":"newest"},{"do":"link","path":"outside","to":"out"},{"do":"list"}]"#,
    ),
    (
        "make hard links at odd paths",
        r#"[{"do":"link","path":"file.txt/","to":"one"},{"do":"link","path":"file.txt","to":"two/"},{"do":"link","path":".","to":"three"},{"do":"link","path":"file.txt","to":"."},{"do":"link","path":"file.txt","to":""},{"do":"link","path":"","to":"four"},{"do":"link","path":"folder/../file.txt","to":"./five"},{"do":"link","path":"file.txt","to":"folder/.."}]"#,
    ),
    (
        "make hard links out and in",
        r#"[{"do":"link","path":"file.txt","to":"../new"},{"do":"link","path":"../outside.txt","to":"new"},{"do":"link","path":"outside-folder/outside.txt","to":"new"},{"do":"link","path":"/file.txt","to":"new"},{"do":"link","path":"file.txt","to":"outside-folder/new"}]"#,
    ),
    (
        "make symbolic links",
        r#"[{"do":"symlink","target":"file.txt","path":"new"},{"do":"readlink","path":"new"},{"do":"cat","path":"new"},{"do":"symlink","target":"../file.txt","path":"folder/new"},{"do":"cat","path":"folder/new"},{"do":"symlink","target":"nowhere","path":"newer"},{"do":"stat_at","path":"newer"},{"do":"symlink","target":"folder/","path":"slash"},{"do":"list"}]"#,
    ),
    (
        "make symbolic links that lead out",
        r#"[{"do":"symlink","target":"../outside.txt","path":"new"},{"do":"cat","path":"new"},{"do":"symlink","target":"/etc/passwd","path":"newer"},{"do":"symlink","target":"../../..","path":"folder/up-up"},{"do":"open","path":"folder/up-up","follow":true,"with":"read"}]"#,
    ),
    (
        "make symbolic links that cannot be",
        r#"[{"do":"symlink","target":"x","path":"file.txt"},{"do":"symlink","target":"x","path":"link"},{"do":"symlink","target":"x","path":"folder"},{"do":"symlink","target":"x","path":"missing/new"},{"do":"symlink","target":"","path":"new"},{"do":"symlink","target":"x","path":"../new"},{"do":"symlink","target":"x","path":"/new"},{"do":"symlink","target":"x","path":""},{"do":"symlink","target":"x","path":"."},{"do":"symlink","target":"x","path":"new/"},{"do":"symlink","target":"x","path":"folder/.."},{"do":"symlink","target":"x","path":"outside-folder/new"}]"#,
    ),
    (
        "read links",
        r#"[{"do":"readlink","path":"link"},{"do":"readlink","path":"to-folder"},{"do":"readlink","path":"dangling"},{"do":"readlink","path":"loop"},{"do":"readlink","path":"outside"},{"do":"readlink","path":"absolute"},{"do":"readlink","path":"folder/up"},{"do":"readlink","path":"to-folder/up"}]"#,
    ),
    (
        "read links that are none",
        r#"[{"do":"readlink","path":"file.txt"},{"do":"readlink","path":"folder"},{"do":"readlink","path":"missing"},{"do":"readlink","path":"link/"},{"do":"readlink","path":"to-folder/"},{"do":"readlink","path":"."},{"do":"readlink","path":""},{"do":"readlink","path":"../outside.txt"},{"do":"readlink","path":"/link"}]"#,
    ),
    // Metadata.
    (
        "stat names",
        r#"[{"do":"stat_at","path":"file.txt"},{"do":"stat_at","path":"hard"},{"do":"stat_at","path":"folder"},{"do":"stat_at","path":"folder/inside.txt"},{"do":"stat_at","path":"missing"},{"do":"stat_at","path":"file.txt/x"},{"do":"stat_at","path":"fifo"}]"#,
    ),
    (
        "stat links",
        r#"[{"do":"stat_at","path":"link"},{"do":"stat_at","path":"link","follow":true},{"do":"stat_at","path":"to-folder"},{"do":"stat_at","path":"to-folder","follow":true},{"do":"stat_at","path":"to-folder/inside.txt"},{"do":"stat_at","path":"dangling"},{"do":"stat_at","path":"dangling","follow":true},{"do":"stat_at","path":"loop","follow":true},{"do":"stat_at","path":"outside"},{"do":"stat_at","path":"outside","follow":true},{"do":"stat_at","path":"absolute","follow":true},{"do":"stat_at","path":"chain","follow":true}]"#,
    ),
    (
        "stat odd paths",
        r#"[{"do":"stat_at","path":""},{"do":"stat_at","path":"."},{"do":"stat_at","path":".."},{"do":"stat_at","path":"/"},{"do":"stat_at","path":"folder/"},{"do":"stat_at","path":"file.txt/"},{"do":"stat_at","path":"to-folder/"},{"do":"stat_at","path":"link/"},{"do":"stat_at","path":"folder/.."},{"do":"stat_at","path":"folder/../file.txt"},{"do":"stat_at","path":"file.txt/."},{"do":"stat_at","path":"file.txt/.."},{"do":"stat_at","path":"../outside.txt"},{"do":"stat_at","path":"empty//"}]"#,
    ),
    (
        "stat what is open",
        r#"[{"do":"stat"},{"do":"open","path":"hard","as":"f","with":"read"},{"do":"stat","handle":"f"},{"do":"unlink","path":"file.txt"},{"do":"stat","handle":"f"},{"do":"unlink","path":"hard"},{"do":"stat","handle":"f"}]"#,
    ),
    ("flags and type of the root", r#"[{"do":"flags"},{"do":"type"}]"#),
    (
        "the same object",
        r#"[{"do":"open","path":"file.txt","as":"a","with":"read"},{"do":"open","path":"hard","as":"b","with":"read"},{"do":"open","path":"empty.txt","as":"c","with":"read"},{"do":"same","a":"a","b":"b"},{"do":"same","a":"a","b":"c"},{"do":"same","a":"a","b":"/"},{"do":"open","path":".","as":"d","with":"read"},{"do":"same","a":"d","b":"/"}]"#,
    ),
    (
        "hashes",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"same_hash","handle":"f","path":"file.txt"},{"do":"same_hash","handle":"f","path":"hard"},{"do":"same_hash","handle":"f","path":"link"},{"do":"same_hash","handle":"f","path":"link","follow":true},{"do":"same_hash","handle":"f","path":"folder"},{"do":"same_hash","handle":"f","path":"missing"},{"do":"same_hash","handle":"f","path":"dangling","follow":true},{"do":"same_hash","handle":"f","path":"../outside.txt"}]"#,
    ),
    (
        "set times of names",
        r#"[{"do":"set_times_at","path":"file.txt","accessed":1000000,"modified":2000000},{"do":"stat_at","path":"file.txt"},{"do":"set_times_at","path":"folder","modified":3000000},{"do":"stat_at","path":"folder"},{"do":"set_times_at","path":"folder/inside.txt","follow":true,"modified":4000000},{"do":"stat_at","path":"folder/inside.txt"},{"do":"set_times_at","path":"file.txt"},{"do":"stat_at","path":"file.txt"}]"#,
    ),
    (
        "set times of links",
        r#"[{"do":"set_times_at","path":"link","modified":1000000},{"do":"stat_at","path":"link"},{"do":"set_times_at","path":"link","follow":true,"modified":2000000},{"do":"stat_at","path":"file.txt"},{"do":"set_times_at","path":"dangling","modified":3000000},{"do":"stat_at","path":"dangling"},{"do":"set_times_at","path":"dangling","follow":true,"modified":4000000},{"do":"set_times_at","path":"outside","follow":true,"modified":4000000},{"do":"set_times_at","path":"to-folder","follow":true,"modified":5000000},{"do":"stat_at","path":"folder"}]"#,
    ),
    (
        "set times at odd paths",
        r#"[{"do":"set_times_at","path":".","modified":1000000},{"do":"stat"},{"do":"set_times_at","path":"folder/","modified":2000000},{"do":"stat_at","path":"folder"},{"do":"set_times_at","path":"empty/.","modified":3000000},{"do":"stat_at","path":"empty"},{"do":"set_times_at","path":"folder/..","modified":4000000},{"do":"stat"},{"do":"set_times_at","path":"","modified":1},{"do":"set_times_at","path":"missing","modified":1},{"do":"set_times_at","path":"missing","follow":true,"modified":1},{"do":"set_times_at","path":"file.txt/","modified":1},{"do":"set_times_at","path":"to-folder/","modified":5000000},{"do":"stat_at","path":"folder"}]"#,
    ),
    (
        "set times outside",
        r#"[{"do":"set_times_at","path":"..","modified":1},{"do":"set_times_at","path":"../outside.txt","modified":1},{"do":"set_times_at","path":"/etc/passwd","follow":true,"modified":1},{"do":"set_times_at","path":"absolute","follow":true,"modified":1},{"do":"set_times_at","path":"outside-folder/outside.txt","modified":1}]"#,
    ),
    (
        "set times that cannot be",
        r#"[{"do":"set_times_at","path":"file.txt","modified":18446744073709551615},{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"set_times","handle":"f","modified":18446744073709551615}]"#,
    ),
    (
        "set times of what is open",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"set_times","handle":"f","accessed":1000000,"modified":2000000},{"do":"stat","handle":"f"},{"do":"open","path":"folder","as":"d","with":"read"},{"do":"set_times","handle":"d","modified":3000000},{"do":"stat","handle":"d"},{"do":"open","path":"empty.txt","as":"w","with":"write"},{"do":"set_times","handle":"w","modified":4000000},{"do":"stat","handle":"w"}]"#,
    ),
    ("set times of the root", r#"[{"do":"set_times","modified":1000000}]"#),
    (
        "synchronise",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read write"},{"do":"sync","handle":"f"},{"do":"sync_data","handle":"f"},{"do":"open","path":"folder","as":"d","with":"read"},{"do":"sync","handle":"d"},{"do":"sync_data","handle":"d"},{"do":"sync","handle":"/"},{"do":"advise","handle":"f"}]"#,
    ),
    // What is neither file, folder nor link.
    (
        "a fifo by name",
        r#"[{"do":"stat_at","path":"fifo"},{"do":"set_times_at","path":"fifo","modified":1000000},{"do":"stat_at","path":"fifo"},{"do":"rename","path":"fifo","to":"folder/fifo"},{"do":"link","path":"folder/fifo","to":"fifo"},{"do":"mkdir","path":"fifo"},{"do":"rmdir","path":"fifo"},{"do":"open","path":"fifo/x","with":"read"},{"do":"unlink","path":"fifo"},{"do":"list"}]"#,
    ),
    // Whole errands.
    (
        "replace a file by way of another",
        r#"[{"do":"open","path":"file.txt.tmp","as":"f","with":"create exclusive write"},{"do":"stream_write","handle":"f","text":"new content"},{"do":"sync","handle":"f"},{"do":"close","handle":"f"},{"do":"rename","path":"file.txt.tmp","to":"file.txt"},{"do":"cat","path":"file.txt"},{"do":"cat","path":"hard"}]"#,
    ),
    (
        "build a tree and take it down",
        r#"[{"do":"mkdir","path":"t"},{"do":"mkdir","path":"t/a"},{"do":"open","path":"t/a/f","with":"create write"},{"do":"symlink","target":"a","path":"t/l"},{"do":"cat","path":"t/l/f"},{"do":"rmdir","path":"t"},{"do":"unlink","path":"t/l/f"},{"do":"unlink","path":"t/l"},{"do":"rmdir","path":"t/a"},{"do":"rmdir","path":"t"},{"do":"list"}]"#,
    ),
    (
        "swap two files",
        r#"[{"do":"rename","path":"file.txt","to":"swap"},{"do":"rename","path":"empty.txt","to":"file.txt"},{"do":"rename","path":"swap","to":"empty.txt"},{"do":"cat","path":"empty.txt"},{"do":"cat","path":"file.txt"}]"#,
    ),
    (
        "write through two handles",
        r#"[{"do":"open","path":"file.txt","as":"a","with":"read write"},{"do":"open","path":"hard","as":"b","with":"read write"},{"do":"write","handle":"a","text":"AAA"},{"do":"write","handle":"b","text":"BB","offset":1},{"do":"read","handle":"a"},{"do":"set_size","handle":"b","size":2},{"do":"read","handle":"a"}]"#,
    ),
    (
        "closed handles",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"close","handle":"f"},{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"read","handle":"f"}]"#,
    ),
    (
        "a link swapped for a folder",
        r#"[{"do":"unlink","path":"to-folder"},{"do":"mkdir","path":"to-folder"},{"do":"open","path":"to-folder/inside.txt","with":"create write"},{"do":"cat","path":"folder/inside.txt"},{"do":"cat","path":"to-folder/inside.txt"}]"#,
    ),
    (
        "names with dots",
        r#"[{"do":"mkdir","path":"..."},{"do":"open","path":".../..x","with":"create write"},{"do":"rename","path":".../..x","to":"x.."},{"do":"stat_at","path":"x.."},{"do":"mkdir","path":".hidden"},{"do":"list"}]"#,
    ),
    (
        "a name as long as can be",
        r#"[{"do":"mkdir","path":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},{"do":"list"}]"#,
    ),
    (
        "the guards' own work names are like any other",
        r#"[{"do":"mkdir","path":"tmp"},{"do":"open","path":"tmp/x","with":"create write"},{"do":"cat","path":"tmp/x"},{"do":"rename","path":"tmp","to":"data"},{"do":"list"}]"#,
    ),
    (
        "read only a part",
        r#"[{"do":"open","path":"file.txt","as":"f","with":"read"},{"do":"read","handle":"f","offset":1,"length":3},{"do":"read","handle":"f","offset":6,"length":100},{"do":"read","handle":"f","offset":7,"length":1}]"#,
    ),
    (
        "names that differ in case",
        r#"[{"do":"cat","path":"FILE.TXT"},{"do":"open","path":"FILE.TXT","with":"create exclusive write"},{"do":"rename","path":"Folder","to":"x"},{"do":"list"}]"#,
    ),
];

pub(crate) const WITH_OPENAT2: bool = true;
pub(crate) const WITHOUT_OPENAT2: bool = false;

/// What the guard answers otherwise on purpose, why, and with what.
const DIFFERENT: &[(&str, &str, &str, &str)] = &[
    (
        "create through a link that leads nowhere",
        "nothing is made through a link: what it names has not been looked at",
        r#"[{"do":"open","path":"dangling","follow":true,"with":"create write"},{"do":"stat_at","path":"nowhere"}]"#,
        r#"[{"error":"not-permitted"},{"error":"no-entry"}]"#,
    ),
    (
        "list a name that is no UTF-8",
        "one name that cannot be told does not hide a whole folder",
        r#"[{"do":"open","path":"odd-names","as":"d","with":"read"},{"do":"list","handle":"d"}]"#,
        r#"[{"ok":"directory"},{"ok":["regular-file a","regular-file z"]}]"#,
    ),
    (
        "write to what other programs obey",
        "protected paths need a person's yes",
        r#"[{"do":"mkdir","path":".git"},{"do":"open","path":"AGENTS.md","with":"create write"},{"do":"rename","path":"file.txt","to":".envrc"}]"#,
        r#"[{"error":"not-permitted"},{"error":"not-permitted"},{"error":"not-permitted"}]"#,
    ),
    (
        "name more than a path may be",
        "a path costs the host time for every part of it",
        r#"[{"do":"stat_at","path":"LONG"},{"do":"mkdir","path":"LONG"},{"do":"open","path":"LONG"}]"#,
        r#"[{"error":"name-too-long"},{"error":"name-too-long"},{"error":"name-too-long"}]"#,
    ),
];

/// What plain wasmtime-wasi answers otherwise where the kernel has no `openat2`, which the guard does
/// not: it opens before it creates.
const QUIRKS_WITHOUT_OPENAT2: [&str; 2] = ["create alone", "create with a slash at the end"];

/// A folder with one of everything.
fn fixture(root: &Path) {
    let write = |path: &str, text: &str| fs::write(root.join(path), text).unwrap();
    let link = |target: &str, path: &str| symlink(target, root.join(path)).unwrap();
    for folder in ["folder/deep", "empty", "odd-names"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for (path, text) in [
        ("file.txt", "content"),
        ("empty.txt", ""),
        ("folder/inside.txt", "inside"),
        ("folder/deep/er.txt", "deep"),
        ("ünïcödé 名", "odd"),
        ("with blank", "blank"),
        ("odd-names/a", ""),
        ("odd-names/z", ""),
    ] {
        write(path, text);
    }
    let odd = std::ffi::OsStr::from_bytes(b"bad-\xff");
    use std::os::unix::ffi::OsStrExt;
    fs::write(root.join("odd-names").join(odd), "").unwrap();
    for (target, path) in [
        ("file.txt", "link"),
        ("folder", "to-folder"),
        ("empty", "to-empty"),
        ("nowhere", "dangling"),
        ("loop", "loop"),
        ("link", "chain"),
        ("../file.txt", "folder/up"),
        ("../outside.txt", "outside"),
        ("..", "outside-folder"),
        ("/etc/passwd", "absolute"),
    ] {
        link(target, path);
    }
    fs::hard_link(root.join("file.txt"), root.join("hard")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, root.join("fifo"), fifo, mode, 0).unwrap();
}

/// What is left of a folder: kind, links, content or what a link says, and times that were set.
fn tree(root: &Path) -> BTreeMap<String, String> {
    fn walk(root: &Path, path: &Path, into: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_file() {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            } else if metadata.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else {
                String::new()
            };
            let links = if metadata.is_dir() { 0 } else { metadata.nlink() };
            let modified = Some(metadata.mtime()).filter(|time| *time < NOW);
            let facts = format!("{:o} {links} {modified:?} {content:?}", metadata.mode());
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            into.insert(name, facts);
            if metadata.is_dir() {
                walk(root, &path, into);
            }
        }
    }
    let mut tree = BTreeMap::new();
    walk(root, root, &mut tree);
    tree
}

/// Times after this are those at which the test ran.
const NOW: i64 = 1_500_000_000;

/// Answers without the time at which they were given.
fn timeless(mut answers: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(object) => {
                if object.get("modified").and_then(Value::as_i64).is_some_and(|time| time > NOW) {
                    object["modified"] = json!("now");
                }
                object.values_mut().for_each(strip);
            }
            Value::Array(array) => array.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut answers);
    answers
}

/// The folder that a host's guest works in: made anew for each case.
fn renew(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    fixture(folder);
}

/// Where in the granted folder a case is run.
fn arguments(steps: &str, base: Option<&str>) -> Value {
    let long = "./".repeat(2_100) + "file.txt";
    script(&serde_json::from_str(&steps.replace("LONG", &long)).unwrap(), base)
}

async fn guarded(sandbox: &Sandbox, steps: &str, base: Option<&str>) -> Value {
    let report = run(sandbox, "raw__script", arguments(steps, base)).await;
    timeless(serde_json::from_str(text(&report)).unwrap())
}

async fn bare(bare: &Bare, folder: &Path, steps: &str, base: Option<&str>) -> Value {
    let answers = bare.call(folder, "script", &arguments(steps, base).to_string()).await;
    timeless(serde_json::from_str(&answers).unwrap())
}

/// Runs every case on both, in a folder `base` of the granted one or in that itself.
async fn compare(bench: &Bench, sandbox: &Sandbox, base: Option<&str>, quirks: &[&str]) {
    let plain = Bare::new(belljar_test_guests::RAW.bytes);
    let other = bench.root.path().join("bare/workspace");
    let mine = bench.workspace();
    let folder = |root: &Path| root.join(base.unwrap_or_default());
    for root in [&mine, &other] {
        fs::create_dir_all(folder(root)).unwrap();
        fs::write(folder(root).parent().unwrap().join("outside.txt"), "outside").unwrap();
    }
    let mut differences = Vec::new();
    for (name, steps) in CASES {
        renew(&folder(&mine));
        renew(&folder(&other));
        let expected = bare(&plain, &other, steps, base).await;
        let answers = guarded(sandbox, steps, base).await;
        let (left, left_there) = (tree(&folder(&mine)), tree(&folder(&other)));
        if quirks.contains(name) {
            assert_ne!(answers, expected, "{name} is no quirk");
        } else if answers != expected || left != left_there {
            differences.push(format!(
                "{name}\n  guarded {answers}\n  plain   {expected}\n  {left:?}\n  {left_there:?}"
            ));
        }
    }
    assert!(differences.is_empty(), "in {base:?}:\n{}", differences.join("\n"));
    for (name, reason, steps, expected) in DIFFERENT {
        renew(&folder(&mine));
        renew(&folder(&other));
        let theirs = bare(&plain, &other, steps, base).await;
        let answers = guarded(sandbox, steps, base).await;
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(answers, expected, "{name}, since {reason}");
        assert_ne!(answers, theirs, "{name} is no difference");
    }
    for root in [&mine, &other] {
        let outside = folder(root).parent().unwrap().join("outside.txt");
        assert_eq!(fs::read_to_string(outside).unwrap(), "outside");
    }
}

#[test]
fn the_table_is_as_long_as_is_promised() {
    let operations: usize = CASES
        .iter()
        .map(|(_, steps)| serde_json::from_str::<Vec<Value>>(steps).unwrap().len())
        .sum();
    assert!(CASES.len() >= 100 && operations >= 500, "{} cases, {operations}", CASES.len());
}

/// From the granted folder itself, from one below, and where rights hang on places: with globs that
/// close other names, a folder of our own and a nested grant, so that every place is looked at.
pub(crate) async fn everywhere(has_openat2: bool) {
    let quirks = if has_openat2 { &[] } else { &QUIRKS_WITHOUT_OPENAT2[..] };
    let bench = Bench::new();
    let sandbox = bench.raw().await;
    compare(&bench, &sandbox, None, quirks).await;
    let bench = Bench::new();
    let sandbox = bench.raw().await;
    compare(&bench, &sandbox, Some("base/deeper"), quirks).await;
    let bench = Bench::new();
    fs::create_dir_all(bench.workspace().join("elsewhere/granted")).unwrap();
    let mut grant = raw_grant(&["elsewhere/granted"], &["."]);
    grant.deny = vec!["**/*.secret".to_owned(), "elsewhere/keys/**".to_owned()];
    let own_folders = vec![bench.workspace().join("elsewhere/own")];
    let config = SandboxConfig { own_folders, ..bench.raw_config(grant) };
    let sandbox = Sandbox::open(config).await.unwrap();
    compare(&bench, &sandbox, Some("base"), quirks).await;
}

#[tokio::test]
async fn the_guard_answers_as_plain_wasi_does() {
    everywhere(WITH_OPENAT2).await;
}
