//! A yes or no from the person at the terminal, for commands that change something for good.

use crate::{
    screen::{SharedScreen, Tone},
    tty::Tty,
    visible,
};
use anyhow::bail;

/// Asks until the answer is a clear one. The end of the input is a no.
///
/// # Errors
///
/// Nobody is there to ask.
pub(crate) async fn confirm(screen: &SharedScreen, question: &str) -> anyhow::Result<bool> {
    let is_seen = screen.lock().is_err_terminal();
    let Some(tty) = is_seen.then(Tty::open).flatten() else {
        bail!(
            "nobody is there to ask: look at what is shown above, and say `--yes` if you mean it"
        );
    };
    loop {
        tty.forget_typed();
        screen.lock().ask(&format!("{question} y or n: "));
        let Some(line) = tty.line().await? else { return Ok(false) };
        screen.lock().answered();
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            "" => {}
            other => {
                let other = visible::short(other, 60);
                screen.lock().toned(Tone::Plain, &format!("`{other}` is neither"));
            }
        }
    }
}
