//! Quota files nobody would write: each is read, or refused with a place that lies in it. The body is `fuzz.rs`.

use crate::fuzzing::{corpus, fuzz};

#[test]
fn every_text_is_a_configuration_or_a_list_of_mistakes_in_it() {
    let seeds = ["config/good", "config/broken"].map(corpus).concat();
    assert!(seeds.len() > 50, "the corpus of the quota file");
    fuzz("quota-file", seeds, super::fuzz::fuzz);
}
