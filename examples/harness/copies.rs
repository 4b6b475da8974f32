// Ways to hand over a Vec<f64>, for: dlprof time --program ./copies
// Build: rustc -O -o copies copies.rs
use std::hint::black_box;
use std::io::{stdin, stdout, BufRead, Write};
use std::time::Instant;

const HELLO: &str = r#""protocol":1,"language":"Rust","name":"std","paths":[
{"code":"v.clone()","promise":"copy"},
{"code":"&v[..]","promise":"view"}]"#;

// The numbers behind "name": in a request: "shape":[2,3] has two, "calls":5 has one.
fn numbers(line: &str, name: &str) -> Vec<usize> {
    let behind = line.split(&format!("\"{name}\":")).nth(1).unwrap_or("");
    let list = behind.trim_start_matches('[').split([']', '}', '"']).next();
    list.unwrap_or("").split(',').filter_map(|n| n.parse().ok()).collect()
}

fn main() {
    let mut v: Vec<f64> = Vec::new(); // the source
    let mut _kept: Vec<f64> = Vec::new(); // the result lives until the next `look`
    let mut is_borrowed = false;
    for line in stdin().lock().lines() {
        let line = line.unwrap();
        let path = numbers(&line, "path").first().copied().unwrap_or(0);
        let shape = numbers(&line, "shape");
        let answer = if line.contains("hello") {
            HELLO.replace('\n', "") + &format!(",\"pid\":{}", std::process::id())
        } else if line.contains("make") && line.contains("\"float64\"") && shape.len() == 1 {
            v = vec![1.0; shape[0]];
            format!("\"address\":{}", v.as_ptr() as usize)
        } else if line.contains("make") {
            "\"unsupported\":\"this example makes one axis of float64\"".to_string()
        } else if line.contains("time") {
            let begin = Instant::now();
            for _ in 0..numbers(&line, "calls")[0] {
                match path {
                    0 => drop(black_box(black_box(&v).clone())),
                    _ => { black_box(&black_box(&v)[..]); }
                }
            }
            format!("\"ns\":{}", begin.elapsed().as_nanos())
        } else if line.contains("look") {
            is_borrowed = path == 1;
            _kept = if is_borrowed { Vec::new() } else { v.clone() };
            let before = v[0];
            v[0] += 1.0;
            let result = if is_borrowed { &v[..] } else { &_kept[..] };
            format!(
                "\"address\":{},\"shape\":[{}],\"dtype\":\"float64\",\"sees_write\":{}",
                result.as_ptr() as usize,
                result.len(),
                result[0] != before
            )
        } else if line.contains("drop") && is_borrowed {
            "\"unsupported\":\"a borrow cannot outlive its owner in safe Rust\"".to_string()
        } else if line.contains("drop") {
            v = Vec::new();
            "\"ok\":true".to_string()
        } else {
            return;
        };
        println!("{{{answer}}}");
        stdout().flush().unwrap();
    }
}
