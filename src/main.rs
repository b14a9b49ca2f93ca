//! The program `convo`.
fn main() {}
