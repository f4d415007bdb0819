//! `stint top`: the tables of `status`, refreshed in place. A thread asks the daemon (`top/feed.rs`), so that a daemon
//! that hangs never takes the keyboard away. Where stdout is no terminal it prints once, as `status` does.

mod feed;
mod screen;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::config::units;
use crate::exit::{Exit, Failure};
use crate::status;
use screen::Screen;

/// Longest wait for a key before signals and news are looked at.
const TICK: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Time between two looks
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = units::duration)]
    pub every: Duration,
}

/// Runs the verb until `q`, Escape, Ctrl-C or a signal.
pub fn main(args: Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    if !std::io::stdout().is_terminal() {
        return status::main(status::Args { json: false }, run_dir);
    }
    status::connect(run_dir)?; // a node that is not there is told before the screen changes
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, ends.clone()).map_err(Failure::failed)?;
    }
    let feed = feed::start(run_dir, args.every).map_err(Failure::failed)?;
    // Also puts a hook in place that restores the terminal before a panic is printed.
    let mut terminal =
        ratatui::try_init().map_err(|error| Failure::failed(format!("the terminal: {error}")))?;
    let mut screen = Screen::default();
    let outcome = loop {
        for news in feed.try_iter() {
            screen.news(news);
        }
        if let Err(error) = terminal.draw(|frame| screen.draw(frame)) {
            break Err(error);
        }
        match next_key() {
            Ok(Some(key)) if ends_it(key) => break Ok(()),
            Ok(Some(key)) => screen.key(key.code),
            Ok(None) => {}
            Err(error) => break Err(error),
        }
        if ends.load(Ordering::Relaxed) {
            break Ok(());
        }
    };
    ratatui::restore();
    outcome
        .map(|()| Exit::OK)
        .map_err(|error| Failure::failed(format!("the terminal: {error}")))
}

/// A key pressed within a tick. A resize wakes up early and is drawn like everything else.
fn next_key() -> std::io::Result<Option<KeyEvent>> {
    if !event::poll(TICK)? {
        return Ok(None);
    }
    Ok(match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(key),
        _ => None,
    })
}

fn ends_it(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c' | 'd') => control,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_end_it() {
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert!(ends_it(plain(KeyCode::Char('q'))));
        assert!(ends_it(plain(KeyCode::Esc)));
        assert!(ends_it(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!ends_it(plain(KeyCode::Char('c'))));
    }
}
