//! Names the library as the loader must see it: programs ask for `libnvidia-ml.so.1` and get the preloaded one. It is
//! never unloaded, since other threads may run in its functions at any time.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
