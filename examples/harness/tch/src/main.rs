// Ways from a Vec<f64> into tensors of tch-rs, for: dlprof time --program target/release/tch-harness
// Build: LIBTORCH_USE_PYTORCH=1 cargo build --release
use std::hint::black_box;
use std::io::{stdin, stdout, BufRead, Write};
use std::time::Instant;
use tch::{Device, Kind, Tensor};

const HELLO: &str = r#""protocol":1,"language":"Rust","name":"tch","version":"0.24.0","paths":[
{"code":"Tensor::from_slice(&v)","promise":"copy"},
{"code":"Tensor::from_blob(v.as_ptr(), ...)","promise":"view"},
{"code":"Tensor::try_from(&ndarray)"},
{"code":"from_blob(v.as_ptr(), ...).to_kind(Kind::Double)"},
{"code":"from_blob(v.as_ptr(), ...).copy()","promise":"copy"},
{"code":"Vec::try_from(from_slice(&v))","promise":"copy"},
{"code":"v.clone()","promise":"copy"}]"#; // the last one is what making the data again costs

enum Made {
    Nothing,
    Tensor(Tensor),
    Vec(Vec<f64>),
}

fn blob(v: &[f64]) -> Tensor {
    let (data, size) = (v.as_ptr() as *const u8, [v.len() as i64]);
    unsafe { Tensor::from_blob(data, &size, &[], Kind::Double, Device::Cpu) }
}

fn convert(path: usize, v: &[f64]) -> Made {
    match path {
        0 => Made::Tensor(Tensor::from_slice(v)),
        1 => Made::Tensor(blob(v)),
        2 => Made::Tensor(Tensor::try_from(&ndarray::ArrayView1::from(v)).unwrap()),
        3 => Made::Tensor(blob(v).to_kind(Kind::Double)),
        4 => Made::Tensor(blob(v).copy()),
        5 => Made::Vec(Vec::try_from(Tensor::from_slice(v)).unwrap()),
        _ => Made::Vec(v.to_vec()),
    }
}

impl Made {
    fn first(&self) -> f64 {
        match self {
            Made::Tensor(t) => t.double_value(&[0]),
            Made::Vec(v) => v[0],
            Made::Nothing => 0.0,
        }
    }

    fn address(&self) -> usize {
        match self {
            Made::Tensor(t) => t.data_ptr() as usize,
            Made::Vec(v) => v.as_ptr() as usize,
            Made::Nothing => 0,
        }
    }
}

// The numbers behind "name": in a request: "shape":[2,3] has two, "calls":5 has one.
fn numbers(line: &str, name: &str) -> Vec<usize> {
    let behind = line.split(&format!("\"{name}\":")).nth(1).unwrap_or("");
    let list = behind.trim_start_matches('[').split([']', '}', '"']).next();
    list.unwrap_or("").split(',').filter_map(|n| n.parse().ok()).collect()
}

fn main() {
    let mut v: Vec<f64> = Vec::new(); // the source
    let mut made = Made::Nothing; // the result lives until the next `look`
    for line in stdin().lock().lines() {
        let line = line.unwrap();
        let path = numbers(&line, "path").first().copied().unwrap_or(0);
        let shape = numbers(&line, "shape");
        let answer = if line.contains("hello") {
            HELLO.replace('\n', "")
        } else if line.contains("make") && line.contains("\"float64\"") && shape.len() == 1 {
            v = Vec::new(); // frees the old one first
            v.resize(shape[0], 1.0);
            format!("\"address\":{}", v.as_ptr() as usize)
        } else if line.contains("make") {
            "\"unsupported\":\"this harness makes one axis of float64\"".to_string()
        } else if line.contains("time") {
            let begin = Instant::now();
            for _ in 0..numbers(&line, "calls")[0] {
                drop(black_box(convert(path, black_box(&v))));
            }
            format!("\"ns\":{}", begin.elapsed().as_nanos())
        } else if line.contains("look") {
            drop(made); // two results might not fit into memory
            made = convert(path, &v);
            let before = made.first();
            v[0] += 1.0;
            let (address, sees) = (made.address(), made.first() != before);
            let size = v.len();
            format!("\"address\":{address},\"shape\":[{size}],\"dtype\":\"float64\",\"sees_write\":{sees}")
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
