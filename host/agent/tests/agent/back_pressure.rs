//! The loop waits for its reader.

use crate::support::{Stage, call, done, text};
use futures::StreamExt;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn the_loop_runs_ahead_by_no_more_than_its_buffer() {
    for buffer in [1, 4] {
        let turn = (0..100).map(|_| text("x")).chain([done()]).collect();
        let stage = Stage::new(vec![turn]).settings(|settings| settings.event_buffer = buffer);
        let mut run = stage.start();
        let mut read = 0;
        loop {
            // Far more time than the loop needs to come to a halt.
            tokio::time::sleep(Duration::from_secs(1)).await;
            // One more is in the loop's hands, waiting for room.
            let ahead = (stage.model.yielded() + 2).saturating_sub(read);
            let most = if stage.model.yielded() == 0 { 2 } else { buffer + 1 };
            assert!(ahead <= most, "{ahead} ahead of {read} with room for {buffer}");
            if run.next().await.is_none() {
                break;
            }
            read += 1;
        }
        // Start, round, a hundred deltas, the whole text, stop.
        assert_eq!(read, 104);
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_runs_while_nobody_reads() {
    let stage = Stage::new(vec![vec![call("c1", "read", ""), done()]])
        .settings(|settings| settings.event_buffer = 1);
    let run = stage.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
    run.finish().await.unwrap();
    assert_eq!(stage.toolbox.ran(), ["c1"]);
}
