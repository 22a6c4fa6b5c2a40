//! What a server said, recorded and played by the scripted model: the same events.

use crate::{
    fixtures::{WIRES, model, request},
    server::Server,
    vector::{self, Pace},
};
use belljar_model::{Recorder, Script};
use belljar_types::{Model, ModelError, ModelEvent};
use futures::StreamExt;
use std::{sync::Arc, time::Duration};

type Items = Vec<Result<ModelEvent, ModelError>>;

#[tokio::test]
async fn a_recorded_answer_plays_to_the_same_events() {
    let folder = tempfile::tempdir().unwrap();
    for wire in WIRES {
        let path = folder.path().join(wire.name);
        let recorder = Recorder::create(&path).unwrap();
        let mut said = Vec::new();
        for answer in wire.answers() {
            let server = Server::start(vector::read(&answer, Pace::AtOnce)).await;
            let model = recorder.record(model(wire, &server.address));
            assert_eq!(format!("{}/{}", model.provider(), model.name()), wire.full_name());
            said.push((answer, items(&model).await));
        }
        assert_eq!(recorder.turns().unwrap(), said.len());

        let script: Arc<dyn Model> = Arc::new(Script::load(&path).unwrap().into_model("recorded"));
        for (answer, said) in said {
            let want: Items = said.into_iter().map(|item| item.map_err(whole_wait)).collect();
            assert_eq!(items(&script).await, want, "{}", answer.display());
        }
    }
}

async fn items(model: &Arc<dyn Model>) -> Items {
    model.stream(request()).collect().await
}

/// A script has waits in milliseconds, never shorter than what was asked for.
fn whole_wait(mut error: ModelError) -> ModelError {
    error.retry_after = error.retry_after.map(|wait| {
        let millis = wait.as_nanos().div_ceil(1_000_000);
        Duration::from_millis(u64::try_from(millis).unwrap())
    });
    error
}
