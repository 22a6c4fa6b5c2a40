//! `belljar plugin revoke`: a person takes back what a plugin was granted.

use crate::{
    arguments::RevokeArguments,
    exit::{self, Usage},
    screen::SharedScreen,
    visible,
};
use belljar_capability::{GrantSpec, SpecError, Withdrawal};
use belljar_workspace::{Change, GrantStore, Places, Revoked};

pub(super) fn revoke(arguments: &RevokeArguments, screen: &SharedScreen) -> anyhow::Result<u8> {
    let RevokeArguments { name, specs, config } = arguments;
    let parts: Result<Vec<_>, SpecError> = specs.iter().map(|spec| what(name, spec)).collect();
    let parts = parts.map_err(|error| Usage(error.to_string()))?;
    let told = match parts.as_slice() {
        [] => "everything, and the yes to its file".to_owned(),
        parts => parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let what = if parts.is_empty() { Revoked::All } else { Revoked::Parts(parts) };
    let store = GrantStore::new(&Places::from_env()?, config.as_deref());
    store.apply(&Change::Revoke { plugin: name.clone(), what })?;
    let (name, told) = (visible::line(name), visible::line(&told));
    let file = store.file().display();
    screen.lock().note(&format!("taken back from `{name}`: {told}; written to `{file}`"));
    Ok(exit::COMPLETED)
}

/// One thing with or without the plugin's name in front, as it is listed.
fn what(name: &str, spec: &str) -> Result<Withdrawal, SpecError> {
    match spec.parse::<GrantSpec>() {
        Ok(GrantSpec { plugin, part }) if plugin == name => part.to_string().parse(),
        _ => spec.parse(),
    }
}
