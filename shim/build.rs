//! Names the library as the loader must see it: programs ask for `libcuda.so.1` and get the preloaded one.
//!
//! Next: `link.rs`.

mod link;

fn main() {
    link::preloaded("libcuda.so.1", ["build.rs", "link.rs"]);
}
