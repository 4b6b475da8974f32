// Ways to hand over a Vec<f64>, for: dlprof time --program ./copies
// Build: rustc -O -o copies copies.rs
use std::hint::black_box;
use std::io::{stdin, stdout, Write};
use std::time::Instant;

const HELLO: &str = r#"{"protocol":1,"language":"Rust","name":"std","paths":[{"code":"v.clone()","promise":"copy"},{"code":"&v[..]","promise":"view"}]}"#;

fn main() {
    let mut v: Vec<f64> = Vec::new(); // the source
    let mut copy: Option<Vec<f64>> = None; // the result, if it is no borrow, lives until the next `look`
    for line in stdin().lines().map(Result::unwrap) {
        // {"do":"time","path":0,"calls":100} has the words do, time, path, 0, calls, 100
        let words: Vec<&str> = line.split(|c| "{}[]\":,".contains(c)).filter(|w| !w.is_empty()).collect();
        println!("{}", match words[1..] {
            ["hello"] => HELLO.to_string(),
            ["make", "shape", size, "dtype", "float64"] => {
                v = vec![1.0; size.parse().unwrap()];
                format!(r#"{{"address":{}}}"#, v.as_ptr() as usize)
            }
            ["make", ..] => r#"{"unsupported":"this example makes one axis of float64"}"#.to_string(),
            ["time", "path", path, "calls", calls] => {
                let begin = Instant::now();
                for _ in 0..calls.parse().unwrap() {
                    if path == "0" { drop(black_box(black_box(&v).clone())) } else { black_box(&black_box(&v)[..]); }
                }
                format!(r#"{{"ns":{}}}"#, begin.elapsed().as_nanos())
            }
            ["look", "path", path] => {
                copy = if path == "0" { Some(v.clone()) } else { None };
                let before = v[0];
                v[0] += 1.0;
                let result = copy.as_ref().unwrap_or(&v);
                let (address, sees_write) = (result.as_ptr() as usize, result[0] != before);
                format!(r#"{{"address":{address},"shape":[{}],"dtype":"float64","sees_write":{sees_write}}}"#, result.len())
            }
            ["drop", ..] if copy.is_none() => r#"{"unsupported":"a borrow cannot outlive its owner in safe Rust"}"#.to_string(),
            ["drop", ..] => { v = Vec::new(); r#"{"ok":true}"#.to_string() }
            _ => return,
        });
        stdout().flush().unwrap();
    }
}
