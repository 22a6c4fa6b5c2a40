//! Handles: all calls together cannot take them from the host.

use crate::{
    quiet::{Levels, quiet},
    support::{Bench, ignore, kind, run_with},
};
use belljar_capability::Limits;
use belljar_sandbox::{handles_for, open_files, raise_open_files};
use belljar_types::ToolErrorKind;
use futures::future::join_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::{
    net::{TcpListener, TcpStream},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

#[test]
fn the_host_can_open_a_socket_while_all_calls_hold_all_that_they_may() {
    quiet(async || {
        let whole = getrlimit(Resource::Nofile);
        // What many systems give a program.
        setrlimit(Resource::Nofile, Rlimit { current: Some(1_024), ..whole }).unwrap();
        raise_open_files();
        let limits = Limits { calls: 64, deadline: Duration::from_secs(60), ..Limits::default() };
        assert_eq!(open_files(), Some(handles_for(64, &limits)));

        let bench = Bench::new();
        bench.write("small", "x");
        let sandbox = bench.hostile(limits).await;
        let cancel = CancellationToken::new();
        let arguments = json!({"path": "small", "count": 10_000, "hold": true});
        let holding = (0..64).map(|_| {
            let arguments = arguments.clone();
            run_with(&sandbox, "hostile__open_many", arguments, ignore(), cancel.clone())
        });
        let looking = async {
            // Each holds at least 200 of its 256.
            while Levels::now().handles < 64 * 200 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
            server.accept().unwrap();
            drop(client);
            cancel.cancel();
        };
        let (reports, ()) = tokio::join!(join_all(holding), looking);
        for report in reports {
            assert_eq!(kind(&report), ToolErrorKind::Canceled, "{report:?}");
        }
        setrlimit(Resource::Nofile, whole).unwrap();
    });
}
