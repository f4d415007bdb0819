//! What `stint top` draws: the view of `status/view.rs` cut to the terminal, scrolled by the user.

use std::time::SystemTime;

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::feed::News;
use crate::protocol::node::Node;
use crate::status::view::{Table, View};

/// The last news and what the user looks at.
#[derive(Default)]
pub struct Screen {
    node: Option<Box<Node>>,
    /// Why what is shown is old.
    failure: Option<String>,
    /// Lines above the first one shown.
    scrolled: usize,
    /// Lines the last drawing had room for.
    room: usize,
    lines: usize,
}

impl Screen {
    pub fn news(&mut self, news: News) {
        match news {
            Ok(node) => (self.node, self.failure) = (Some(node), None),
            Err(failure) => self.failure = Some(failure.message),
        }
    }

    /// Scrolls.
    pub fn key(&mut self, code: KeyCode) {
        self.scrolled = match code {
            KeyCode::Down | KeyCode::Char('j') => self.scrolled + 1,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scrolled + self.room.max(1),
            KeyCode::PageUp => self.scrolled.saturating_sub(self.room.max(1)),
            KeyCode::Home => 0,
            KeyCode::End => self.lines,
            _ => self.scrolled,
        }
        .min(self.lines.saturating_sub(self.room));
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        self.draw_at(frame, SystemTime::now());
    }

    fn draw_at(&mut self, frame: &mut Frame<'_>, now: SystemTime) {
        let [body, foot] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
        let lines = self
            .node
            .as_ref()
            .map_or_else(Vec::new, |node| lines(&View::of(node, now)));
        (self.lines, self.room) = (lines.len(), usize::from(body.height));
        self.scrolled = self.scrolled.min(self.lines.saturating_sub(self.room));
        let shown: Vec<Line<'_>> = lines.into_iter().skip(self.scrolled).take(self.room).collect();
        frame.render_widget(Paragraph::new(shown), body);
        frame.render_widget(
            Line::from(self.foot()).style(Style::new().add_modifier(Modifier::REVERSED)),
            foot,
        );
    }

    fn foot(&self) -> String {
        let hidden = self.lines.saturating_sub(self.room);
        match &self.failure {
            Some(why) => format!(" OLD: {why}"),
            None if self.node.is_none() => " asking the daemon …   q quit".into(),
            None if hidden > 0 => format!(" q quit   ↑ ↓ scroll ({} of {hidden})", self.scrolled),
            None => " q quit".into(),
        }
    }
}

fn lines(view: &View) -> Vec<Line<'static>> {
    let strong = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![Line::styled(view.head.clone(), strong)];
    for table in &view.tables {
        let widths = table.widths();
        let line = |cells: Vec<&str>, style: Style| {
            let cells = table.columns.iter().zip(cells).zip(&widths);
            let spans =
                cells.map(|((column, cell), width)| Span::styled(Table::cell(column, cell, *width), style));
            Line::from_iter(spans.flat_map(|span| [span, Span::raw("  ")]))
        };
        lines.push(Line::default());
        lines.push(line(
            table.columns.iter().map(|column| column.title).collect(),
            strong,
        ));
        lines.extend(
            table
                .rows
                .iter()
                .map(|row| line(row.iter().map(String::as_str).collect(), Style::new())),
        );
    }
    if !view.notes.is_empty() {
        lines.push(Line::default());
        lines.extend(view.notes.iter().cloned().map(Line::raw));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Failure;
    use crate::status::view::tests::{node, now};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw_at(frame, now())).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn eighty_by_twenty_four_shows_the_tables() {
        let mut screen = Screen::default();
        assert!(drawn(&mut screen, 80, 24).contains("asking the daemon"));
        screen.news(Ok(Box::new(node())));
        let text = drawn(&mut screen, 80, 24);
        for part in ["enforcing", "NVIDIA H200", "4711  alice", "q quit"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        screen.news(Err(Failure::unreachable("gone")));
        let text = drawn(&mut screen, 80, 24);
        assert!(text.contains("OLD: gone") && text.contains("4711"), "{text}");
    }

    #[test]
    fn no_size_is_too_small_and_scrolling_has_ends() {
        let mut screen = Screen::default();
        screen.news(Ok(Box::new(node())));
        for (width, height) in [(1, 1), (1, 50), (300, 2), (20, 5), (300, 100)] {
            for key in [
                KeyCode::End,
                KeyCode::Down,
                KeyCode::PageUp,
                KeyCode::PageDown,
                KeyCode::Home,
                KeyCode::Up,
            ] {
                drawn(&mut screen, width, height);
                screen.key(key);
            }
        }
        drawn(&mut screen, 80, 6);
        screen.key(KeyCode::End);
        let text = drawn(&mut screen, 80, 6);
        assert!(
            text.contains("was refused") && !text.contains("enforcing"),
            "{text}"
        );
        assert!(
            drawn(&mut screen, 80, 24).contains("enforcing"),
            "more room shows the beginning again"
        );
    }
}
