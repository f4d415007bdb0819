//! Live progress of the demo on a terminal: what runs, and who holds how much by the device's own truth.

use std::io::Write;

use crate::config::units::Bytes;

/// Cells of a bar.
const BAR: u64 = 24;

/// Lines that are drawn over again. Silent where there is no terminal.
pub struct Progress {
    live: bool,
    /// Lines of the last drawing.
    drawn: usize,
    act: &'static str,
}

/// One client's line.
pub struct Line<'a> {
    pub name: &'a str,
    pub pid: u32,
    pub used: u64,
    pub cap: u64,
    pub launches: Option<u64>,
}

impl Progress {
    pub fn new(live: bool) -> Progress {
        Progress {
            live,
            drawn: 0,
            act: "",
        }
    }

    /// Another promise is put to the test.
    pub fn act(&mut self, name: &'static str) {
        self.act = name;
        self.show(&[]);
    }

    /// Draws the clients of the act.
    pub fn show(&mut self, lines: &[Line<'_>]) {
        if !self.live {
            return;
        }
        let mut text = self.erasing();
        text += &format!("putting to the test: {}\n", self.act);
        for line in lines {
            text += &format!("{}\n", of(line));
        }
        self.drawn = 1 + lines.len();
        self.write(&text);
    }

    /// Takes the lines away.
    pub fn clear(&mut self) {
        if self.live {
            let text = self.erasing();
            self.drawn = 0;
            self.write(&text);
        }
    }

    /// Up to the first line, and everything below it away.
    fn erasing(&self) -> String {
        if self.drawn == 0 {
            String::new()
        } else {
            format!("\x1b[{}A\x1b[J", self.drawn)
        }
    }

    fn write(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush()); // progress nobody sees is no failure
    }
}

fn of(line: &Line<'_>) -> String {
    let filled = if line.cap == 0 {
        0
    } else {
        (u128::from(line.used) * u128::from(BAR) / u128::from(line.cap)) as u64
    };
    let (full, over) = (
        filled.min(BAR) as usize,
        if line.used > line.cap { '!' } else { ' ' },
    );
    let bar = format!("{}{}", "█".repeat(full), "·".repeat(BAR as usize - full));
    let launches = line.launches.filter(|launches| *launches > 0);
    let launches = launches.map_or(String::new(), |launches| format!("  {launches} kernels"));
    let (used, cap) = (Bytes(line.used).to_string(), Bytes(line.cap).to_string());
    format!(
        "  {:<12} {:>7} {bar}{over}{used:>9} of {cap}{launches}",
        line.name, line.pid
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_leaves_its_cells() {
        for (used, cap) in [(0, 0), (1, 2), (2, 2), (u64::MAX, 1)] {
            let line = of(&Line {
                name: "a",
                pid: 1,
                used,
                cap,
                launches: None,
            });
            assert_eq!(line.matches(['█', '·']).count() as u64, BAR, "{line}");
            assert_eq!(line.contains('!'), used > cap);
        }
    }
}
