//! Names the library as the loader must see it: programs ask for `libnvidia-ml.so.1` and get the preloaded one.
//!
//! Next: `shim/link.rs`.

#[path = "../link.rs"]
mod link;

fn main() {
    link::preloaded("libnvidia-ml.so.1", ["build.rs", "../link.rs"]);
}
