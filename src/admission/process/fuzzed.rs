//! `/proc` as a process may have made it: its name, its maps and its groups are its own to choose.

use crate::fuzzing::fuzz;

use super::{first_fields, mapped_file, parse_stat, parse_status};

#[test]
fn no_name_or_path_of_a_process_confuses_its_reader() {
    let read = |path: &str| std::fs::read(path).expect("this process");
    let seeds = ["/proc/self/stat", "/proc/self/status", "/proc/self/maps"]
        .map(read)
        .to_vec();
    fuzz("proc", seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Some(stat) = parse_stat(7, &text) {
            assert_eq!(stat.identity.pid, 7);
        }
        if let Some((_, groups)) = parse_status(&text) {
            assert!(groups.is_sorted());
        }
        for line in bytes.split(|byte| *byte == b'\n') {
            let _ = first_fields(line).and_then(mapped_file);
        }
    });
}
